"""Where schemas stand inside a JSON Schema. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from jp.conversation.entries import JsonObject

IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose schemas are about the same value as the schema that they stand in."""

_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_SINGLE = frozenset({
    *("items", "additionalItems", "unevaluatedItems", "contains", "not", "if", "then", "else"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema"),
})
_ASSERTIONS = frozenset({
    *("type", "enum", "const", "$ref", "$dynamicRef", "$recursiveRef", "required", "dependentRequired", "format"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "divisibleBy"),
    *("minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType", "uniqueItems"),
    *("minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties", "extends", "disallow"),
})
_ANNOTATIONS = frozenset({
    *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment"),
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
})

KEYWORDS = _NAMED | _LISTED | _SINGLE | _ASSERTIONS | _ANNOTATIONS
"""The keywords of all drafts."""

Place = tuple[str, ...]
"""The keywords, names and positions that lead to a part of a schema."""


def schemas_in(schema: JsonObject) -> Iterator[tuple[Place, JsonObject]]:
    """The schemas that stand directly in `schema`, and where. Those that are just `true` or `false` are left out."""
    for keyword, value in schema.items():
        for place, member in _members(keyword, value):
            if isinstance(member, dict):
                yield place, cast("JsonObject", member)


def _members(keyword: str, value: object) -> Iterator[tuple[Place, object]]:
    """What a keyword holds where it holds schemas."""
    if isinstance(value, list) and keyword in _LISTED:
        items = cast("list[object]", value)
        yield from (((keyword, str(position)), item) for position, item in enumerate(items))
    elif isinstance(value, dict) and keyword in _NAMED:
        named = cast("JsonObject", value)
        yield from (((keyword, name), member) for name, member in named.items())
    elif keyword in _SINGLE:
        yield (keyword,), value


def pointer(place: Place) -> str:
    """`place` as a JSON pointer (RFC 6901), empty for the top."""
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in place)
