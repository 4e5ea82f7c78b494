from __future__ import annotations

import pytest

from jp.config.tools import ToolConfig
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.toolbox import build_toolbox, definitions


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
    with pytest.raises(ConfigurationError) as caught:
        build_toolbox(TOOLS, {name: ToolConfig(enable=False)})

    assert caught.value.message == f"'conversation.tools' names an unknown tool {name!r}"
    assert caught.value.hint == hint
