"""Validation of calls: whether the tool exists and the arguments fit, with coercions. Pure."""

from __future__ import annotations

from typing import Any, TypeGuard

import msgspec

from jp.conversation.entries import JsonObject, ToolCallRequest
from jp.errors import reason_of
from jp.suggestions import closest_names
from jp.tool.base import ConfiguredTool, Toolbox, ToolOutput, error_output

_ARTICLED = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
TYPES = tuple(_ARTICLED)
"""Names of types in JSON Schema."""


def argument_problems(schema: JsonObject, arguments: JsonObject) -> list[str]:
    """Return what is wrong with `arguments`, one sentence each, in words that the model can act on. Empty: nothing."""
    return _object_problems(schema, arguments, "")


def fitted(schema: JsonObject, arguments: JsonObject) -> JsonObject:
    """`arguments` with what models often get wrong put right.

    A text that stands where none may is what its JSON says, if that may stand there: models write `"[1, 2]"` for
    `[1, 2]`. What is left out has its default.
    """
    properties: JsonObject = schema.get("properties", {})
    given = {
        name: _fitted(properties[name], value) if name in properties else value for name, value in arguments.items()
    }
    left_out = {
        name: item["default"]
        for name, item in properties.items()
        if name not in given and _is_object(item) and "default" in item and not _problems(item, item["default"], name)
    }
    return {**given, **left_out}


def _fitted(schema: object, value: object) -> object:
    if not _is_object(schema):
        return value
    types = _types(schema)
    if isinstance(value, str) and types and "string" not in types:
        value = _meant(value, types)
    if _is_object(value):
        return fitted(schema, value)
    if _is_array(value) and "items" in schema:
        return [_fitted(schema["items"], item) for item in value]
    return value


def _meant(text: str, types: list[str]) -> object:
    """Return what `text` says as JSON where that is of one of the `types`, else the text."""
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return value if _is_of(value, types) else text


def _is_of(value: object, types: list[str]) -> bool:
    found = _type_of(value)
    return found in types or (found == "integer" and "number" in types)


def _is_object(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def _is_array(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case _:
            return "array" if _is_array(value) else "object"


def _types(schema: JsonObject) -> list[str]:
    declared = schema.get("type", [])
    return [declared] if isinstance(declared, str) else list(declared)


def _object_problems(schema: JsonObject, value: JsonObject, place: str) -> list[str]:
    properties: JsonObject = schema.get("properties", {})
    problems = [f"{_join(place, name)!r} is missing" for name in schema.get("required", ()) if name not in value]
    for name, item in value.items():
        if name in properties:
            problems += _problems(properties[name], item, _join(place, name))
        elif schema.get("additionalProperties") is False:
            problems.append(_unknown(name, properties, place))
    return problems


def _unknown(name: str, properties: JsonObject, place: str) -> str:
    near = closest_names(name, properties)
    known = ", ".join(repr(other) for other in sorted(properties)) or "none"
    meant = f"did you mean {near[0]!r}?" if near else f"known are: {known}"
    return f"{_join(place, name)!r} is not known; {meant}"


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _problems(schema: object, value: object, place: str) -> list[str]:
    if not _is_object(schema):  # `true`: anything
        return []
    types = _types(schema)
    if types and not _is_of(value, types):
        wanted = " or ".join(_ARTICLED.get(name, name) for name in types)
        return [f"{place!r} must be {wanted}, not {_ARTICLED[_type_of(value)]}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{place!r} must be one of {', '.join(repr(choice) for choice in schema['enum'])}"]
    if _is_object(value):
        return _object_problems(schema, value, place)
    if _is_array(value) and "items" in schema:
        items = [_problems(schema["items"], item, f"{place}[{index}]") for index, item in enumerate(value)]
        return [problem for problems in items for problem in problems]
    return []


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
    """Return the call as it can be run, or what the model is told."""
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
    """Return the same call with other arguments, or what is wrong with them."""
    schema = checked.configured.tool.definition.parameters
    arguments = fitted(schema, arguments)
    problems = argument_problems(schema, arguments)
    return problems or msgspec.structs.replace(checked, arguments=arguments)


def problems_of(checked: CheckedCall | list[str]) -> list[str]:
    """Return what is wrong, where something is."""
    return checked if isinstance(checked, list) else []


def _object(arguments: JsonObject | str) -> JsonObject | str:
    """Return the arguments; where they are no object, what they are. An object that was written as a text is one."""
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
