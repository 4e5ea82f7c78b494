from __future__ import annotations

from typing import Any

import pytest

from jp.mcp.session import object_schema

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (None, {}),
        ("text", {}),
        (True, {}),
        ({"type": "array", "items": {}}, {"items": {}}),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema"}, {}),
        ({"properties": []}, {}),
        ({"properties": {"a": True, "b": False, "c": 5}}, {"properties": {"a": {}, "b": {"not": {}}, "c": {}}}),
        ({"properties": {"a": {"type": ["string", 5]}}}, {"properties": {"a": {"type": ["string"]}}}),
        ({"properties": {"a": {"type": 5}}}, {"properties": {"a": {}}}),
        ({"properties": {"a": {"type": []}}}, {"properties": {"a": {}}}),
        ({"properties": {"a": {"enum": "x"}, "b": {"enum": [1]}}}, {"properties": {"a": {}, "b": {"enum": [1]}}}),
        ({"required": ["a", 5]}, {"required": ["a"]}),
        ({"required": "a"}, {}),
        ({"anyOf": [{"type": "string"}, True], "oneOf": {}, "allOf": []}, {"anyOf": [{"type": "string"}, {}]}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        ({"additionalProperties": {"$ref": "#/$defs/a"}}, {"additionalProperties": {"$ref": "#/$defs/a"}}),
        ({"properties": {"a": {"items": True}}}, {"properties": {"a": {"items": {}}}}),
        ({"title": "A tool", "x-own": [1]}, {"title": "A tool", "x-own": [1]}),
    ],
)
def test_whatever_a_server_sends_becomes_a_schema_of_an_object(sent: object, kept: dict[str, Any]) -> None:
    assert object_schema(sent) == {**NOTHING, **kept, "type": "object"}


def test_what_lies_too_deep_is_any_value() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(1000):
        deep = {"items": deep}

    schema = object_schema({"properties": {"a": deep}})

    depth = 0
    while schema:
        schema = schema.get("items") or schema.get("properties", {}).get("a")
        depth += 1
    assert 10 < depth < 50
