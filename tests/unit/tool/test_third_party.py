from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError
from jp.tool.base import Previewed, ReadsOnly, ToolInvocation, ToolOutput
from jp.tool.toolbox import ToolDefectError, load, third_party_tools


class Echo:
    """What another package might provide."""

    definition = ToolDefinition(name="echo", description="Say it again.", parameters={"type": "object"})

    reads_only = True

    async def preview(self, invocation: ToolInvocation) -> str | None:
        return "say it"

    async def run(self, invocation: ToolInvocation) -> object:
        if "defect" in invocation.arguments:
            return "text"
        return ToolOutput(content=(TextBlock(text=str(invocation.arguments)),))


ECHO = Echo()
INVOCATION = ToolInvocation(arguments={"a": 1}, root=Path("/"))


class Nameless:
    definition = "echo"


def fail() -> object:
    raise KeyError("why")


@pytest.mark.parametrize("value", [f"{__name__}:Echo", f"{__name__} : ECHO [extra]"])
def test_a_tool_is_a_class_a_function_or_an_object(value: str) -> None:
    tool = load("echo", value)

    assert tool.definition == Echo.definition
    assert isinstance(tool, ReadsOnly)
    assert isinstance(tool, Previewed)
    assert tool.reads_only
    assert anyio.run(tool.preview, INVOCATION) == "say it"
    assert anyio.run(tool.run, INVOCATION).content == (TextBlock(text="{'a': 1}"),)


@pytest.mark.parametrize(
    ("name", "attribute", "said"),
    [
        ("echo", "missing", "failed to load: module"),
        ("echo", "fail", "failed to load: 'why'"),
        ("echo", "INVOCATION", "failed to load: it is neither a tool nor a callable"),
        ("echo", "Nameless", "is no tool of that name"),
        ("other", "Echo", "is no tool of that name"),
    ],
)
def test_what_is_no_tool_is_an_error_that_names_where_it_comes_from(name: str, attribute: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(name, f"{__name__}:{attribute}")

    assert f"the tool {name!r} comes from '{__name__}:{attribute}', which {said}" in raised.value.message
    assert "uninstall" in raised.value.hint


def test_an_output_that_is_none_is_the_tools_defect() -> None:
    tool = load("echo", f"{__name__}:Echo")

    with pytest.raises(ToolDefectError, match=r"^echo gave 'str' where a ToolOutput has to be$"):
        anyio.run(tool.run, ToolInvocation(arguments={"defect": True}, root=Path("/")))


def test_tools_are_found_by_entry_point_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "echo-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: echo\nVersion: 1.0\n", encoding="utf-8")
    (package / "entry_points.txt").write_text(
        "[jp.tools]\necho = echo:Echo\nEcho = echo:Other\n[jp.attachments]\nx = y\n", encoding="utf-8"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])

    found = third_party_tools(tmp_path / "cache")
    monkeypatch.delattr("importlib.metadata.entry_points")

    assert found == {"echo": "echo:Echo", "Echo": "echo:Other"}
    assert third_party_tools(tmp_path / "cache") == found
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["tools.json"]
