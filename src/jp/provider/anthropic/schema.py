"""A JSON Schema as the API's grammar takes it. What it cannot express is told to the model in words. Pure."""

from __future__ import annotations

from typing import cast

import msgspec

from jp.conversation.entries import JsonObject

_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
_KEPT = frozenset({"type", "title", "description", "enum", "const", "required", "$ref"})
_VARIANTS = {"anyOf": "anyOf", "oneOf": "anyOf", "allOf": "allOf"}
_NAMED = frozenset({"properties", "$defs", "definitions"})
_SILENT = frozenset({"$schema", "$id"})


def _schema(value: object) -> JsonObject:
    """A schema inside another. `true` and everything that is none stand for the schema of anything."""
    return strict_schema(cast("JsonObject", value)) if isinstance(value, dict) else {}


def _nested(name: str, value: object) -> tuple[str, object] | None:
    """A keyword that holds schemas, with all of them made strict; None where it is another."""
    if name in _VARIANTS and isinstance(value, list):
        return _VARIANTS[name], [_schema(variant) for variant in cast("list[object]", value)]
    if name in _NAMED and isinstance(value, dict):
        return name, {key: _schema(member) for key, member in cast("JsonObject", value).items()}
    return (name, _schema(value)) if name == "items" else None


def _is_expressible(name: str, value: object) -> bool:
    is_format = name == "format" and value in _FORMATS
    return name in _KEPT or is_format or (name == "minItems" and value in (0, 1))


def _in_words(described: object, rules: JsonObject) -> str:
    listed = ", ".join(f"{name}: {msgspec.json.encode(value).decode()}" for name, value in rules.items())
    return f"{described}\n\n{{{listed}}}" if described else f"{{{listed}}}"


def strict_schema(schema: JsonObject) -> JsonObject:
    """`schema` with closed objects, `anyOf` for `oneOf`, and unsupported keywords moved into the descriptions."""
    strict: JsonObject = {}
    rules: JsonObject = {}
    for name, value in schema.items():
        if (nested := _nested(name, value)) is not None:
            strict[nested[0]] = nested[1]
        elif _is_expressible(name, value):
            strict[name] = value
        elif name not in _SILENT and not (name == "additionalProperties" and isinstance(value, bool)):
            rules[name] = value
    if rules:
        strict["description"] = _in_words(strict.get("description"), rules)
    if schema.get("type") == "object" or "properties" in schema:
        strict["additionalProperties"] = False
    return strict
