"""The schemas of a server's tools, made what jp and providers can work with, whatever the server sent. Pure."""

from __future__ import annotations

from typing import Any, TypeGuard

from jp.config.kinds import JsonObject

_DEEPEST = 32
"""What lies deeper is any value: nobody writes such schemas by hand, and providers refuse them."""

_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE = frozenset({"items", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems"})


def object_schema(schema: object) -> JsonObject:
    """A JSON Schema of type object, whose keywords have the types that JSON Schema gives them.

    What a keyword cannot be is left out, so that it constrains nothing. `$schema` goes: every provider has a dialect.
    """
    cleaned = _cleaned(schema, 0)
    cleaned.pop("$schema", None)
    return {**cleaned, "type": "object", "properties": cleaned.get("properties", {})}


def _is_object(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _cleaned(schema: object, depth: int) -> JsonObject:
    """A schema without what no schema has. `true` allows anything, and so does what is none at all."""
    if schema is False:
        return {"not": {}}
    if not _is_object(schema) or depth > _DEEPEST:
        return {}
    cleaned: JsonObject = {}
    for keyword, value in schema.items():
        kept = _keyword(keyword, value, depth)
        if kept is not None:
            cleaned[keyword] = kept
    return cleaned


def _keyword(keyword: str, value: object, depth: int) -> object:
    """The value of a keyword; None where it cannot be that."""
    if keyword in _NAMED:
        return {name: _cleaned(below, depth + 1) for name, below in value.items()} if _is_object(value) else None
    if keyword in _LISTED:
        return [_cleaned(below, depth + 1) for below in value] or None if _is_list(value) else None
    if keyword in _SINGLE:
        return _cleaned(value, depth + 1)
    if keyword == "additionalProperties":
        return value if isinstance(value, bool) else _cleaned(value, depth + 1)
    if keyword in {"required", "enum"}:
        return _listed(keyword, value)
    return _type(value) if keyword == "type" else value


def _listed(keyword: str, value: object) -> list[Any] | None:
    if not _is_list(value):
        return None
    return value if keyword == "enum" else [name for name in value if isinstance(name, str)]


def _type(value: object) -> str | list[str] | None:
    if isinstance(value, str):
        return value
    return ([name for name in value if isinstance(name, str)] or None) if _is_list(value) else None
