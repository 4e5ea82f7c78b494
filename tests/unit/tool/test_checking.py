from __future__ import annotations

import pytest

from jp.config.entries import ToolConfig
from jp.conversation.entries import JsonObject, ToolCallRequest
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ConfiguredTool, ToolInvocation, ToolOutput
from jp.tool.rules import CheckedCall, check, problems_of, with_arguments

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "integer", "default": 1}},
    "required": ["path"],
    "additionalProperties": False,
}


class Reader:
    definition = ToolDefinition(name="read", description="", parameters=PARAMETERS)

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        raise NotImplementedError


TOOLBOX = {"read": ConfiguredTool(tool=Reader(), settings=ToolConfig())}


def checked(arguments: JsonObject | str, name: str = "read") -> CheckedCall | ToolOutput:
    return check(ToolCallRequest(id="e1", call_id="x", name=name, arguments=arguments), TOOLBOX)


def told(output: CheckedCall | ToolOutput) -> str:
    assert isinstance(output, ToolOutput)
    assert output.is_error
    (block,) = output.content
    assert isinstance(block, TextBlock)
    return block.text or ""


@pytest.mark.parametrize(
    "arguments",
    [{"path": "a"}, {"path": "a", "lines": "1"}, '{"path":"a"}', '"{\\"path\\": \\"a\\"}"'],
)
def test_a_call_that_fits_has_its_defaults_and_its_types(arguments: JsonObject | str) -> None:
    call = checked(arguments)

    assert isinstance(call, CheckedCall)
    assert call.arguments == {"path": "a", "lines": 1}
    assert call.call.arguments == arguments
    assert problems_of(call) == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("[1]", "The arguments are JSON, but not an object, so nothing ran. Send the call again with a JSON object."),
        ('"3"', "The arguments are JSON, but not an object, so nothing ran. Send the call again with a JSON object."),
        ('"so be it"', "The arguments are not JSON (JSON is malformed: invalid character (byte 0)), so nothing ran."),
        ("{" * 3000, "The arguments are not JSON ("),
        ('{"path": "a"', "The arguments are not JSON (Input data was truncated), so nothing ran."),
        ({"pth": "a"}, "so nothing ran: 'path' is missing; 'pth' is not known; did you mean 'path'?"),
    ],
)
def test_what_does_not_fit_is_told_so_that_it_can_be_fixed(arguments: JsonObject | str, why: str) -> None:
    assert why in told(checked(arguments))


def test_an_unknown_tool_is_told_the_nearest_name_and_all() -> None:
    assert told(checked({}, "raed")) == (
        "There is no tool 'raed', so nothing ran. Did you mean 'read'? Tools that may be called: 'read'."
    )
    assert told(checked({}, "zzz")) == "There is no tool 'zzz', so nothing ran. Tools that may be called: 'read'."


def test_of_very_many_tools_not_all_are_listed() -> None:
    toolbox = {f"t{number:02}": TOOLBOX["read"] for number in range(60)}
    output = check(ToolCallRequest(id="e1", call_id="x", name="zzz", arguments={}), toolbox)

    assert told(output).endswith("'t48', 't49' and 10 more.")


def test_other_arguments_are_looked_at_in_the_same_way() -> None:
    call = checked({"path": "a"})
    assert isinstance(call, CheckedCall)

    changed = with_arguments(call, {"path": "b", "lines": "2"})
    assert isinstance(changed, CheckedCall)
    assert changed.arguments == {"path": "b", "lines": 2}
    assert problems_of(with_arguments(call, {})) == ["'path' is missing"]
