"""Can a call be run: is there such a tool, and do the arguments fit. Pure.

What cannot be run is answered in words that the model can act on.
"""

from __future__ import annotations

import msgspec

from jp.conversation.entries import JsonObject, ToolCallRequest
from jp.errors import reason_of
from jp.tool.arguments import argument_problems, fitted
from jp.tool.base import ConfiguredTool, Toolbox, ToolOutput, error_output

_NAMES_SHOWN = 50


class CheckedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that can be run, with the arguments that it is run with: what was left out has its default.

    `is_edited`: a person has changed them. `is_agreed`: a person has seen this call and lets it run.
    """

    call: ToolCallRequest
    configured: ConfiguredTool
    arguments: JsonObject
    is_edited: bool = False
    is_agreed: bool = False


def check(call: ToolCallRequest, toolbox: Toolbox) -> CheckedCall | ToolOutput:
    """The call as it can be run, or what the model is told."""
    configured = toolbox.get(call.name)
    if configured is None:
        return _unknown_tool(call.name, toolbox)
    given = _object(call.arguments)
    if isinstance(given, str):
        return error_output(f"The arguments are {given}, so nothing ran. Send the call again with a JSON object.")
    checked = with_arguments(CheckedCall(call=call, configured=configured, arguments=given), given)
    if isinstance(checked, CheckedCall):
        return checked
    problems = "; ".join(checked)
    end = "" if problems.endswith("?") else "."
    return error_output(f"The arguments do not fit, so nothing ran: {problems}{end}")


def with_arguments(checked: CheckedCall, arguments: JsonObject) -> CheckedCall | list[str]:
    """The same call with other arguments, or what is wrong with them."""
    schema = checked.configured.tool.definition.parameters
    arguments = fitted(schema, arguments)
    problems = argument_problems(schema, arguments)
    return problems or msgspec.structs.replace(checked, arguments=arguments)


def problems_of(checked: CheckedCall | list[str]) -> list[str]:
    """What is wrong, where something is."""
    return checked if isinstance(checked, list) else []


def _object(arguments: JsonObject | str) -> JsonObject | str:
    """The arguments; where they are no object, what they are. An object that was written as a text is one."""
    if not isinstance(arguments, str):
        return arguments
    try:
        decoded: object = msgspec.json.decode(arguments)
        if isinstance(decoded, str):
            decoded = msgspec.json.decode(decoded)
        return msgspec.convert(decoded, JsonObject)
    except msgspec.ValidationError:
        return "JSON, but not an object"
    except (msgspec.DecodeError, RecursionError) as error:
        return f"not JSON ({reason_of(error)})"


def _unknown_tool(name: str, toolbox: Toolbox) -> ToolOutput:
    from difflib import get_close_matches

    names = sorted(toolbox)
    near = get_close_matches(name, names, n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    listed = ", ".join(map(repr, names[:_NAMES_SHOWN])) or "none"
    return error_output(f"There is no tool {name!r}, so nothing ran.{meant} Tools that may be called: {listed}{more}.")
