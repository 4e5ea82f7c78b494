"""Do a call's arguments fit the tool's definition, and what can be done so that they do?

Reads the part of JSON Schema that definitions use: `type`, `properties`, `required`, `additionalProperties: false`,
`items`, `enum` and `default`. Other keywords are the tool's own business.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import msgspec

from jp.conversation.entries import JsonObject
from jp.likeness import nearest

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
"""What JSON Schema calls the types of values."""


def argument_problems(schema: JsonObject, arguments: JsonObject) -> list[str]:
    """What is wrong with `arguments`, one sentence each, in words that the model can act on. Empty: nothing."""
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
    """What `text` says as JSON where that is of one of the `types`, else the text."""
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
    near = nearest(name, properties)
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
