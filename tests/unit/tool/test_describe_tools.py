from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from jp.config.entries import ParameterConfig, ToolConfig
from jp.conversation.entries import JsonObject
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ConfiguredTool, ToolInvocation, ToolOutput
from jp.tool.context_tools import DescribeTools, has_more_to_say

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "mode": {"type": "string", "description": "How."},
        "count": {"type": ["integer", "null"]},
        "any": {},
    },
    "required": ["mode"],
}


class Described:
    def __init__(self, name: str, description: str, parameters: JsonObject) -> None:
        self.definition = ToolDefinition(name=name, description=description, parameters=parameters)

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        raise NotImplementedError


SETTINGS = ToolConfig(
    summary="Do it.",
    description="Do it, and do it well.",
    examples="do(mode='fast')",
    parameters={
        "mode": ParameterConfig(summary="How.", description="As quickly as that.", examples="fast, slow"),
        "gone": ParameterConfig(description="Not in the schema."),
    },
)
TOOLBOX = {
    "do": ConfiguredTool(tool=Described("do", "Do it.", SCHEMA), settings=SETTINGS),
    "bare": ConfiguredTool(tool=Described("bare", "", {}), settings=ToolConfig()),
}


def described(*names: str) -> tuple[str, bool]:
    invocation = ToolInvocation(arguments={"tools": list(names)}, root=Path("/"))
    tool = DescribeTools(lambda: TOOLBOX)
    assert tool.definition.name == "describe_tools"
    output = anyio.run(tool.run, invocation)
    (block,) = output.content
    assert isinstance(block, TextBlock)
    return block.text or "", output.is_error


def test_a_tool_is_described_with_all_that_the_configuration_says() -> None:
    assert described("do", "bare", "do") == (
        """\
# do

Do it.

Do it, and do it well.

Examples:
do(mode='fast')

Parameters:
- `mode` (string, required): How. As quickly as that. Examples: fast, slow
- `count` (integer or null, optional)
- `any` (any, optional)

# bare

It takes no parameters.""",
        False,
    )


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("x",), "There is no tool 'x'. The tools are: bare, do."),
        ((), "The tools are: bare, do."),
    ],
)
def test_a_name_that_no_tool_has_is_a_failure(names: tuple[str, ...], text: str) -> None:
    assert described(*names) == (text, True)


def test_of_some_names_those_that_there_are_are_described() -> None:
    text, is_error = described("bare", "x")

    assert (text.startswith("# bare\n"), "There is no tool 'x'. " in text, is_error) == (True, True, False)


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        (ToolConfig(), False),
        (ToolConfig(description="The description is the summary, then."), False),
        (ToolConfig(summary="Short.", description="Long."), True),
        (ToolConfig(examples="x"), True),
        (ToolConfig(parameters={"a": ParameterConfig(summary="A.")}), False),
        (ToolConfig(parameters={"a": ParameterConfig(description="A.")}), False),
        (ToolConfig(parameters={"a": ParameterConfig(summary="A.", description="More.")}), True),
        (ToolConfig(parameters={"a": ParameterConfig(examples="1")}), True),
    ],
)
def test_whether_there_is_more_to_say_than_every_request_says(settings: ToolConfig, *, more: bool) -> None:
    assert has_more_to_say(ConfiguredTool(tool=Described("x", "", {}), settings=settings)) is more
