"""What the API's grammar takes of a schema, for every class of keywords that it restricts."""

from __future__ import annotations

from copy import deepcopy

import anthropic
import pytest

from jp.conversation.entries import JsonObject
from jp.provider.anthropic.messages import answer_format, strict_schema
from jp.provider.models import find_model
from jp.provider.schemas import WRAPPED

STRING: JsonObject = {"type": "string"}
POINT: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
CLOSED_POINT: JsonObject = {**POINT, "additionalProperties": False}


def of(member: JsonObject, **more: object) -> JsonObject:
    """An object with one property."""
    return {"type": "object", "properties": {"a": member}, **more}


def member(schema: JsonObject) -> JsonObject | None:
    """How the property comes out, None where the grammar cannot hold the schema."""
    strict = strict_schema(of(schema))
    return None if strict is None else strict["properties"]["a"]


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 9}, ("integer", "{minimum: 1, maximum: 9}")),
        (
            {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
            ("number", "{exclusiveMinimum: 0, multipleOf: 0.5}"),
        ),
        ({"type": "string", "minLength": 1, "maxLength": 5}, ("string", "{minLength: 1, maxLength: 5}")),
        ({"type": "string", "pattern": "^a+$"}, ("string", '{pattern: "^a+$"}')),
        ({"type": "string", "format": "color"}, ("string", '{format: "color"}')),
        ({"type": "string", "default": "x", "examples": ["y"]}, ("string", '{default: "x", examples: ["y"]}')),
        ({"type": "string", "not": {"const": "x"}}, ("string", '{not: {"const":"x"}}')),
        (
            {"type": "string", "anyOf": [{"maxLength": 1}, {"pattern": "a"}]},
            ("string", '{anyOf: [{"maxLength":1},{"pattern":"a"}]}'),
        ),
        ({"type": "string", "nullable": True}, ("string", "{nullable: true}")),
        ({"type": "string", "description": "A name.", "maxLength": 5}, ("string", "A name.\n\n{maxLength: 5}")),
    ],
    ids=["bounds", "multiples", "lengths", "pattern", "format", "annotations", "not", "choice", "unknown", "described"],
)
def test_what_narrows_a_value_is_said_in_its_description(schema: JsonObject, strict: tuple[str, str]) -> None:
    name, description = strict

    assert member(schema) == {"type": name, "description": description}


@pytest.mark.parametrize("name", ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "uuid"])
def test_formats_that_the_grammar_has_are_kept(name: str) -> None:
    assert member({"type": "string", "format": name}) == {"type": "string", "format": name}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "array", "items": STRING, "minItems": 1}, {"type": "array", "items": STRING, "minItems": 1}),
        (
            {"type": "array", "items": STRING, "minItems": 2, "maxItems": 3, "uniqueItems": True},
            {"type": "array", "items": STRING, "description": "{minItems: 2, maxItems: 3, uniqueItems: true}"},
        ),
        (
            {"type": "array", "items": POINT, "contains": {"const": 1}},
            {"type": "array", "items": CLOSED_POINT, "description": '{contains: {"const":1}}'},
        ),
        ({"items": STRING}, {"type": "array", "items": STRING}),
        ({"type": "array"}, None),
        ({"type": "array", "items": True}, None),
        ({"type": "array", "items": [STRING]}, None),
        ({"type": "array", "prefixItems": [STRING], "items": STRING}, None),
    ],
    ids=["one", "sizes", "contains", "implied", "of anything", "of true", "old tuple", "tuple"],
)
def test_lists_have_one_kind_of_items(schema: JsonObject, strict: JsonObject | None) -> None:
    assert member(schema) == strict


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (POINT, CLOSED_POINT),
        ({**POINT, "additionalProperties": True}, CLOSED_POINT),
        ({**POINT, "additionalProperties": False}, CLOSED_POINT),
        ({"properties": {"x": {"type": "integer"}}, "required": ["x"]}, CLOSED_POINT),
        (
            {"type": "object", "additionalProperties": False},
            {"type": "object", "properties": {}, "additionalProperties": False},
        ),
        ({**POINT, "minProperties": 1}, {**CLOSED_POINT, "description": "{minProperties: 1}"}),
        (
            {**POINT, "dependentRequired": {"x": ["x"]}},
            {**CLOSED_POINT, "description": '{dependentRequired: {"x":["x"]}}'},
        ),
        ({**POINT, "anyOf": [{"required": ["x"]}]}, {**CLOSED_POINT, "description": '{anyOf: [{"required":["x"]}]}'}),
        (
            {**POINT, "if": {"properties": {"x": {"const": 1}}}, "then": True},
            {**CLOSED_POINT, "description": '{if: {"properties":{"x":{"const":1}}}, then: true}'},
        ),
        ({"type": "object"}, None),
        ({"type": "object", "additionalProperties": STRING}, None),
        ({**POINT, "additionalProperties": STRING}, None),
        ({**POINT, "patternProperties": {"^y": STRING}}, None),
        ({**POINT, "required": ["x", "y"]}, None),
        ({**POINT, "minProperties": 2}, None),
        ({**POINT, "anyOf": [{"properties": {"y": STRING}}]}, None),
        ({**POINT, "anyOf": [{"required": ["y"]}]}, None),
        ({**POINT, "anyOf": [{"$ref": "#/$defs/y"}]}, None),
        ({**POINT, "anyOf": [{"anyOf": [{"required": ["y"]}]}]}, None),
        ({**POINT, "if": True, "then": {"properties": {"x": {"required": ["z"]}}}}, None),
        ({**POINT, "dependentRequired": {"x": ["y"]}}, None),
        ({**POINT, "dependentSchemas": {"x": {"required": ["y"]}}}, None),
    ],
)
def test_objects_are_closed_and_those_that_have_to_be_open_are_left_to_words(
    schema: JsonObject, strict: JsonObject | None
) -> None:
    assert member(schema) == strict


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"anyOf": [STRING, POINT]}, {"anyOf": [STRING, CLOSED_POINT]}),
        ({"oneOf": [STRING, {"type": "null"}], "title": "T"}, {"anyOf": [STRING, {"type": "null"}], "title": "T"}),
        (
            {"type": ["string", "null"], "maxLength": 3},
            {"anyOf": [{**STRING, "description": "{maxLength: 3}"}, {"type": "null"}]},
        ),
        (
            {"type": ["object", "integer"], "description": "D", "properties": {"x": STRING}, "minimum": 1},
            {
                "anyOf": [
                    {"type": "object", "properties": {"x": STRING}, "additionalProperties": False},
                    {"type": "integer", "description": "{minimum: 1}"},
                ],
                "description": "D",
            },
        ),
        ({"type": ["string"]}, STRING),
        ({"anyOf": [STRING, True]}, None),
        ({"anyOf": [STRING], "oneOf": [STRING]}, None),
        ({"anyOf": [STRING], "not": STRING}, None),
        ({"type": ["string", "null"], "not": {"const": "x"}}, None),
        ({"not": STRING}, None),
        ({"if": STRING}, None),
        ({}, None),
        ({"description": "anything"}, None),
        ({"type": "nothing"}, None),
        ({"type": []}, None),
    ],
)
def test_alternatives(schema: JsonObject, strict: JsonObject | None) -> None:
    assert member(schema) == strict


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "string", "enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"enum": ["a", 1, None], "description": "D"}, {"enum": ["a", 1, None], "description": "D"}),
        ({"type": ["string", "null"], "enum": ["a", None]}, {"enum": ["a", None]}),
        ({"const": 1}, {"const": 1}),
        ({"type": "object", "const": 1}, {"const": 1}),
        (
            {"type": "string", "const": "a", "maxLength": 2},
            {"type": "string", "const": "a", "description": "{maxLength: 2}"},
        ),
        (
            {"type": "array", "items": STRING, "enum": [["a"]]},
            {"type": "array", "items": STRING, "description": '{enum: [["a"]]}'},
        ),
        ({"enum": [["a"]]}, None),
        ({"const": {"a": 1}}, None),
        ({"enum": []}, None),
    ],
)
def test_constants_are_of_simple_types(schema: JsonObject, strict: JsonObject | None) -> None:
    assert member(schema) == strict


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"allOf": [POINT]}, CLOSED_POINT),
        ({"allOf": [{"$ref": "#/$defs/point"}], "description": "D"}, {**CLOSED_POINT, "description": "D"}),
        ({"allOf": [STRING, {"maxLength": 3}]}, {**STRING, "description": "{maxLength: 3}"}),
        (
            {"allOf": [POINT, {"type": "object", "properties": {"y": STRING}, "required": ["y", "x"]}]},
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": STRING},
                "required": ["x", "y"],
                "additionalProperties": False,
            },
        ),
        (
            {**POINT, "allOf": [{"allOf": [{"description": "D", "required": ["x"]}]}]},
            {**CLOSED_POINT, "description": "D"},
        ),
        ({"title": "A", "allOf": [{**STRING, "title": "B"}]}, {**STRING, "title": "A"}),
        ({"allOf": [{**POINT, "additionalProperties": False}, POINT]}, CLOSED_POINT),
        ({"allOf": [CLOSED_POINT, {"properties": {"y": STRING}}]}, None),
        ({"allOf": [STRING, {"type": "integer"}]}, None),
        ({"allOf": [POINT, {"properties": {"x": STRING}}]}, None),
        ({"allOf": [STRING, True]}, None),
        ({"allOf": [STRING, {"$ref": "#/elsewhere"}]}, None),
    ],
)
def test_what_has_to_hold_at_once_is_merged(schema: JsonObject, strict: JsonObject | None) -> None:
    translated = strict_schema({**of(schema), "$defs": {"point": POINT}})

    assert (None if translated is None else translated["properties"]["a"]) == strict


def test_references_are_kept_with_what_they_refer_to() -> None:
    point: JsonObject = {"$ref": "#/$defs/point"}
    schema = {
        "type": "object",
        "properties": {"a": point, "b": point},
        "$defs": {"point": {**POINT, "description": "P"}, "unused": {}},
    }

    assert strict_schema(schema) == {
        "type": "object",
        "properties": {"a": point, "b": point},
        "additionalProperties": False,
        "$defs": {"point": {**CLOSED_POINT, "description": "P"}},
    }


def test_a_reference_with_notes_beside_it_is_written_out() -> None:
    schema = of({"$ref": "#/definitions/point", "description": "Where."}, definitions={"point": POINT})

    strict = strict_schema(schema)

    assert strict is not None
    assert strict["properties"]["a"] == {**CLOSED_POINT, "description": "Where."}
    assert "definitions" not in strict


def test_a_reference_at_the_top_is_written_out() -> None:
    assert strict_schema({"$ref": "#/$defs/point", "$defs": {"point": POINT}}) == CLOSED_POINT


NODE: JsonObject = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
ALL_NODE: JsonObject = {"type": "object", "properties": {"next": {"allOf": [{"$ref": "#/$defs/node"}]}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
        of({"$ref": "#/$defs/node"}, **{"$defs": {"node": NODE}}),
        of({"$ref": "#/$defs/node"}, **{"$defs": {"node": ALL_NODE}}),
        of({"allOf": [{"$ref": "#/$defs/a"}]}, **{"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
        of({"$ref": "#"}),
        of({"$ref": "#/properties/b"}, b=STRING),
        of({"$ref": "#/$defs/missing"}),
        of({"$ref": "#/$defs/point", "maxProperties": 1}, **{"$defs": {"point": POINT}}),
        of({"$ref": "https://example.com/point"}),
        of({"$ref": 3}),
        of({"$id": "other", "$ref": "#/$defs/point"}, **{"$defs": {"point": POINT}}),
    ],
    ids=[
        "recursion",
        "recursion below",
        "recursion in allOf",
        "circle",
        "the top",
        "a place",
        "missing",
        "narrowed",
        "remote",
        "no text",
        "another base",
    ],
)
def test_other_references_are_left_to_words(schema: JsonObject) -> None:
    assert strict_schema(schema) is None


@pytest.mark.parametrize("schema", [STRING, {"type": "array", "items": POINT}, {"anyOf": [POINT, {"type": "null"}]}])
def test_an_answer_that_is_no_object_is_wrapped_in_one(schema: JsonObject) -> None:
    strict = strict_schema(schema)

    assert strict is not None
    assert strict == {
        "type": "object",
        "properties": {WRAPPED: member(schema)},
        "required": [WRAPPED],
        "additionalProperties": False,
    }


def test_definitions_of_what_is_wrapped_stay_at_the_top() -> None:
    strict = strict_schema({"type": "array", "items": {"$ref": "#/$defs/point"}, "$defs": {"point": POINT}})

    assert strict is not None
    assert strict["$defs"] == {"point": CLOSED_POINT}
    assert strict["properties"][WRAPPED]["items"] == {"$ref": "#/$defs/point"}


def test_what_is_too_large_for_the_grammar_is_left_to_words() -> None:
    def optional(count: int) -> JsonObject:
        return {"type": "object", "properties": {f"p{number}": STRING for number in range(count)}}

    def unions(count: int) -> JsonObject:
        names = [f"p{number}" for number in range(count)]
        return {
            "type": "object",
            "properties": {name: {"type": ["string", "null"]} for name in names},
            "required": names,
        }

    def nested(depth: int) -> JsonObject:
        return STRING if depth == 0 else of(nested(depth - 1), required=["a"])

    def doubled(depth: int) -> JsonObject:
        defs = {
            f"d{level}": {
                "type": "object",
                "properties": {name: {"$ref": f"#/$defs/d{level + 1}", "title": name} for name in "ab"},
                "required": ["a", "b"],
            }
            for level in range(depth)
        }
        return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": STRING}}

    assert strict_schema(optional(24)) is not None
    assert strict_schema(optional(25)) is None
    assert strict_schema(unions(16)) is not None
    assert strict_schema(unions(17)) is None
    assert strict_schema(nested(40)) is not None
    assert strict_schema(nested(60)) is None
    assert strict_schema(doubled(4)) is not None
    assert strict_schema(doubled(40)) is None


@pytest.mark.parametrize("schema", [{"properties": 3}, of({"anyOf": "x"}), of({"required": 3}), {"type": {"a": 1}}])
def test_what_is_no_schema_is_left_to_words(schema: JsonObject) -> None:
    assert strict_schema(schema) is None


def test_models_that_know_no_schemas_are_told_in_words() -> None:
    assert answer_format(POINT, find_model("anthropic", "claude-sonnet-5-5")) == {
        "type": "json_schema",
        "schema": CLOSED_POINT,
    }
    assert answer_format(POINT, find_model("anthropic", "claude-opus-4-1")) is None
    assert answer_format(POINT, find_model("anthropic", "another-server/model")) is None
    assert answer_format(of({}), find_model("anthropic", "claude-sonnet-5-5")) is None


def test_the_sdk_means_the_same() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "description": "A number"},
            "s": {"type": "string", "format": "date-time"},
            "l": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "m": {"type": "array", "items": {"$ref": "#/$defs/point"}, "minItems": 3},
            "u": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "e": {"enum": ["a", None, 3]},
            "c": {"const": "x"},
        },
        "required": ["n"],
        "$defs": {"point": POINT},
    }

    assert strict_schema(schema) == anthropic.transform_schema(deepcopy(schema))
