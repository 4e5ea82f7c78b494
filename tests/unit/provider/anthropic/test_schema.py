from __future__ import annotations

from copy import deepcopy

import anthropic
import pytest

from jp.provider.anthropic.schema import strict_schema


def test_objects_are_closed_at_every_depth() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}}},
        "required": ["a"],
    }

    strict = strict_schema(schema)

    assert strict["additionalProperties"] is False
    assert strict["required"] == ["a"]
    assert strict["properties"]["a"]["items"]["additionalProperties"] is False


def test_what_the_grammar_lacks_is_said_in_words() -> None:
    assert strict_schema({"type": "integer", "minimum": 1, "description": "A count."}) == {
        "type": "integer",
        "description": "A count.\n\n{minimum: 1}",
    }
    assert strict_schema({"type": "string", "format": "color"}) == {
        "type": "string",
        "description": '{format: "color"}',
    }


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        ({"type": "array", "minItems": 1}, True),
        ({"type": "array", "minItems": 2}, False),
        ({"type": "string", "format": "date"}, True),
        ({"type": "string", "enum": ["a"]}, True),
        ({"$ref": "#/$defs/a"}, True),
        ({"type": "string", "pattern": "a+"}, False),
    ],
)
def test_what_the_grammar_has_is_kept(schema: dict[str, object], *, kept: bool) -> None:
    assert (strict_schema(schema) == schema) is kept


def test_one_of_becomes_any_of() -> None:
    assert strict_schema({"oneOf": [{"type": "string"}, True]}) == {"anyOf": [{"type": "string"}, {}]}


def test_definitions_are_made_strict_too() -> None:
    schema = {"$defs": {"a": {"type": "object"}}, "$schema": "x", "$ref": "#/$defs/a", "additionalProperties": True}

    assert strict_schema(schema) == {
        "$defs": {"a": {"type": "object", "additionalProperties": False}},
        "$ref": "#/$defs/a",
    }


def test_a_map_of_values_is_described() -> None:
    strict = strict_schema({"type": "object", "additionalProperties": {"type": "string"}})

    assert strict["additionalProperties"] is False
    assert strict["description"] == '{additionalProperties: {"type":"string"}}'


def test_keywords_of_the_wrong_form_do_no_harm() -> None:
    assert strict_schema({"anyOf": "x", "properties": 3, "items": 3}) == {
        "items": {},
        "description": '{anyOf: "x", properties: 3}',
        "additionalProperties": False,
    }


def test_the_sdk_means_the_same() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "description": "A number"},
            "s": {"type": "string", "format": "date-time"},
            "l": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "u": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["n"],
    }

    assert strict_schema(schema) == anthropic.transform_schema(deepcopy(schema))
