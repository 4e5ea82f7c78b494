from __future__ import annotations

import pytest

from jp.conversation.entries import JsonObject
from jp.provider.grammar import open_schema

STRING: JsonObject = {"type": "string"}


def members(**properties: object) -> JsonObject:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "translated"),
    [
        (members(b=STRING, a=STRING), {**members(b=STRING, a=STRING), "propertyOrdering": ["b", "a"]}),
        ({"properties": {"a": STRING}}, {**members(a=STRING), "propertyOrdering": ["a"]}),
        (
            {**members(a=STRING), "required": ["a"], "additionalProperties": False, "title": "T", "description": "D"},
            {
                **members(a=STRING),
                "propertyOrdering": ["a"],
                "required": ["a"],
                "additionalProperties": False,
                "title": "T",
                "description": "D",
            },
        ),
        ({"additionalProperties": STRING}, {"type": "object", "additionalProperties": STRING}),
        ({"items": STRING, "minItems": 1}, {"type": "array", "items": STRING, "minItems": 1}),
        ({"type": "array", "items": True}, {"type": "array", "items": {}}),
        ({"prefixItems": [STRING]}, {"type": "array", "prefixItems": [STRING]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"const": 3}, {"type": "integer", "enum": [3]}),
        ({"type": "number", "enum": [1, 2.5]}, {"type": "number", "enum": [1, 2.5]}),
        ({"enum": [1, 2.5]}, {"type": "number", "enum": [1, 2.5]}),
        ({"const": True}, {"type": "boolean", "description": "{const: true}"}),
        ({"const": None}, {"type": "null", "description": "{const: null}"}),
        ({"type": "string", "enum": ["a", None]}, {"type": "string", "description": '{enum: ["a",null]}'}),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        ({"type": "string", "format": "email"}, {"type": "string", "description": '{format: "email"}'}),
        (
            {"type": "string", "pattern": "^a", "description": "A."},
            {"type": "string", "description": 'A.\n\n{pattern: "^a"}'},
        ),
        ({"oneOf": [STRING, {"type": "null"}], "title": "T"}, {"anyOf": [STRING, {"type": "null"}], "title": "T"}),
        (
            {"type": "string", "anyOf": [{"enum": ["a"]}, {"minLength": 2}]},
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "string", "description": "{minLength: 2}"}]},
        ),
        ({"$schema": "x", "$defs": {"a": STRING}, "$ref": "#/$defs/a"}, STRING),
        (
            {"$defs": {"a": {**STRING, "title": "A"}}, **members(x={"$ref": "#/$defs/a", "title": "X"})},
            {**members(x={"type": "string", "title": "X"}), "propertyOrdering": ["x"]},
        ),
        ({"definitions": {"a/b~": STRING}, "$ref": "#/definitions/a~1b~0"}, STRING),
        (
            {
                "allOf": [
                    {**members(a=STRING), "required": ["a"], "allOf": [{"minProperties": 1}]},
                    {**members(b=STRING), "required": ["b"], "allOf": [{"maxProperties": 3}]},
                ]
            },
            {
                **members(b=STRING, a=STRING),
                "propertyOrdering": ["b", "a"],
                "required": ["a", "b"],
                "description": "{minProperties: 1, maxProperties: 3}",
            },
        ),
        (
            {"type": "integer", "minimum": 3, "allOf": [{"minimum": 5}]},
            {"type": "integer", "minimum": 3, "description": '{and: [{"minimum":5}]}'},
        ),
    ],
)
def test_a_schema_is_told_as_far_as_the_api_knows_it(schema: JsonObject, translated: JsonObject) -> None:
    assert open_schema(schema) == translated


TREE: JsonObject = {"$defs": {"t": members(t={"$ref": "#/$defs/t"})}, "$ref": "#/$defs/t"}
LARGE: JsonObject = {
    "$defs": {f"d{n}": {"type": "array", "prefixItems": [{"$ref": f"#/$defs/d{n + 1}"}] * 9} for n in range(5)},
    "$ref": "#/$defs/d0",
}
LARGE["$defs"]["d5"] = STRING


@pytest.mark.parametrize(
    "schema",
    [
        TREE,
        LARGE,
        {},
        {"$ref": "#/$defs/none"},
        {"$ref": "https://example.org/schema"},
        {"type": "strange"},
        members(a=False),
        {"type": 3},
        {"properties": [1]},
        {"anyOf": 3},
    ],
)
def test_what_the_api_cannot_be_told_is_told_in_words(schema: JsonObject) -> None:
    assert open_schema(schema) is None


def test_a_reference_may_be_used_more_than_once() -> None:
    schema: JsonObject = {"$defs": {"a": STRING}, **members(x={"$ref": "#/$defs/a"}, y={"$ref": "#/$defs/a"})}

    assert open_schema(schema) == {**members(x=STRING, y=STRING), "propertyOrdering": ["x", "y"]}
