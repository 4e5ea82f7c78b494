from __future__ import annotations

import pytest

from jp.config.entries import CommandConfig, Enable, ToolConfig
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.toolbox import build_toolbox, check_offered, definitions, enabled_names, settings_over, unknown_tool


class Named:
    """A tool with a name and nothing to do."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def definition(self) -> ToolDefinition:
        return ToolDefinition(name=self._name, description="", parameters={})

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        return ToolOutput(content=())


TOOLS = (Named("write"), Named("read"), Named("list"))


def modes(settings: dict[str, ToolConfig]) -> dict[str, str]:
    return {name: configured.settings.run or "ask" for name, configured in build_toolbox(TOOLS, settings).items()}


def test_tools_are_off_until_they_are_enabled() -> None:
    assert modes({}) == {}
    assert modes({"read": ToolConfig(run="unattended")}) == {}


def test_a_tool_asks_until_it_is_told_otherwise() -> None:
    assert modes({"read": ToolConfig(enable=True)}) == {"read": "ask"}


def test_the_star_speaks_for_tools_that_say_nothing() -> None:
    star = ToolConfig(enable=True, run="unattended")

    assert modes({"*": star, "write": ToolConfig(run="ask"), "list": ToolConfig(enable=False)}) == {
        "read": "unattended",
        "write": "ask",
    }


def test_definitions_are_sorted_by_name() -> None:
    toolbox = build_toolbox(TOOLS, {"*": ToolConfig(enable=True)})

    assert [definition.name for definition in definitions(toolbox)] == ["list", "read", "write"]


@pytest.mark.parametrize(
    ("name", "hint"), [("raed", "did you mean 'read'?"), ("zzzzzz", "the tools are: list, read, write")]
)
def test_an_unknown_name_is_an_error_that_names_the_nearest(name: str, hint: str) -> None:
    error = unknown_tool("--approve", name, {"write", "read", "list"})

    assert error.message == f"--approve names an unknown tool {name!r}"
    assert error.hint == hint


def test_only_true_and_always_offer_a_tool() -> None:
    enables: dict[str, Enable | None] = {"a": True, "b": "always", "c": "explicit", "d": False, "e": None}
    settings = {name: ToolConfig(enable=enable) for name, enable in enables.items()}

    assert enabled_names(enables, settings) == ["a", "b"]
    assert enabled_names(enables, {"*": ToolConfig(enable="always"), **settings}) == ["a", "b", "e"]


@pytest.mark.parametrize("name", ["read", "_read", "mcp-git_Log2", "a" * 64])
def test_a_name_that_all_providers_take_is_offered(name: str) -> None:
    check_offered(name)


@pytest.mark.parametrize("name", ["", "git.log", "3d", "-x", "größe", "a b", "a" * 65])
def test_a_name_that_some_provider_refuses_is_not_offered(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^the tool {name!r} cannot be offered"):
        build_toolbox([Named(name)], {"*": ToolConfig(enable=True)})


def test_a_command_that_is_a_table_is_taken_whole() -> None:
    table, words = CommandConfig(program="a", args=("b",)), ToolConfig(command="c")

    assert settings_over(words, ToolConfig(command=table)).command == table
    assert settings_over(ToolConfig(command=table), words).command == "c"
    assert settings_over(ToolConfig(command=table), ToolConfig()).command == table
    assert settings_over(ToolConfig(command=CommandConfig(program="d")), ToolConfig(command=table)).command == table
