from __future__ import annotations

from typing import Any

import pytest

from jp.app.schema_checker import Checker, InvalidSchemaError
from jp.conversation.entries import JsonObject

STRING: JsonObject = {"type": "string"}
HINT = "a reference names a part of the schema itself, as `#/$defs/NAME` does; nothing is fetched"


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (
            {"properties": {"a": {"type": "strng"}}},
            '/properties/a/type: "strng" fits none of the 2 alternatives; the nearest: "strng" is none of "array", ',
        ),
        ({"properties": 3}, "is not valid at /properties: 3 is not of type object"),
        (
            {"type": "string", "pattern": "("},
            'is not valid at /pattern: "(" is no regular expression of Python: missing ), unterminated subpattern',
        ),
        (
            {"patternProperties": {"\\p{L}": {}}},
            r'at /patternProperties: "\\p{L}" is no regular expression of Python: bad escape \p at position 0',
        ),
        ({"name": "string", "age": "int"}, "says nothing: 'name', 'age' is no keyword of JSON Schema"),
        ({"$schema": 3}, "is not valid at /$schema: 3 is no version of JSON Schema that is known here"),
        (
            {"$schema": "https://example.com/own"},
            "is not valid at /$schema: 'https://example.com/own' is no version of JSON Schema that is known here",
        ),
        ({"$ref": "https://example.com/x"}, "cannot be used: 'https://example.com/x' at /$ref is not in it"),
        (
            {"properties": {"a/b": {"$ref": "file:///etc/passwd"}}},
            "cannot be used: 'file:///etc/passwd' at /properties/a~1b/$ref is not in it",
        ),
        ({"$ref": "http://["}, "cannot be used: 'http://[' at /$ref is not in it"),
        ({"$ref": "#/$defs/a", "$defs": {"b": {}}}, "cannot be used: '#/$defs/a' at /$ref is not in it"),
        ({"$ref": "#/other/a", "other": {"a": {"$ref": "x"}}}, "cannot be used: 'x' at /$ref/$ref is not in it"),
        ({"$ref": "#"}, "cannot be used: its top refers to itself without end"),
        (
            {
                "properties": {"x": {"$ref": "#/$defs/a"}},
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}},
            },
            "refers to itself without end",
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_and_says_where(schema: JsonObject, problem: str) -> None:
    with pytest.raises(InvalidSchemaError) as caught:
        Checker(schema)

    assert caught.value.message.startswith("the schema ")
    assert problem in caught.value.message


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"type": "strin"}, 'did you mean "string"?'),
        ({"properties": {"a": {"type": ["string", "int"]}}}, 'did you mean "integer"?'),
        ({"type": "nonsense"}, "an object is described as"),
        ({"properties": {"type": "strin"}}, "an object is described as"),
    ],
)
def test_a_type_that_there_is_not_is_explained(schema: JsonObject, hint: str) -> None:
    with pytest.raises(InvalidSchemaError) as caught:
        Checker(schema)

    assert str(caught.value.hint).startswith(hint)


def test_a_reference_that_leads_out_is_explained() -> None:
    with pytest.raises(InvalidSchemaError) as caught:
        Checker({"$ref": "https://example.com/x"})

    assert caught.value.hint == HINT


def test_a_schema_that_is_too_deep_is_refused() -> None:
    schema: JsonObject = STRING
    for _ in range(2000):
        schema = {"items": schema}

    with pytest.raises(InvalidSchemaError, match="nested too deeply"):
        Checker(schema)


NODE: JsonObject = {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}


VALUES: list[tuple[JsonObject, Any, Any, str | None]] = [
    ({}, 3, None, None),
    ({"$ref": "#/$defs/any", "$defs": {"any": True}}, 3, None, None),
    (
        {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
        {"below": [{}]},
        {"below": [{"below": 1}]},
        "/below/0/below",
    ),
    (
        {"properties": {"a": {"$ref": "#name"}}, "$defs": {"x": {"$anchor": "name", **STRING}}},
        {"a": ""},
        {"a": 1},
        "/a",
    ),
    (
        {
            "$id": "https://example.com/top",
            "properties": {"a": {"$ref": "b"}},
            "$defs": {"b": {"$id": "b", **STRING}},
        },
        {"a": ""},
        {"a": 1},
        "/a",
    ),
    (
        {"$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}, "type": "object"},
        {"a": {}},
        {"a": 1},
        "/a",
    ),
    (
        {
            "$schema": "http://json-schema.org/draft-07/schema",
            "items": [{"$ref": "#/definitions/s"}],
            "definitions": {"s": STRING},
        },
        [""],
        [1],
        "/0",
    ),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}, 2, 1, ""),
    ({"$schema": "https://json-schema.org/draft/2020-12/schema#", **STRING}, "", 1, ""),
    ({"type": "string", "format": "date-time"}, "2026-02-28T10:00:00Z", "yesterday", ""),
    ({"type": "string", "format": "ipv4"}, "127.0.0.1", "x", ""),
    ({"format": "date-time"}, 3, "x", ""),
]


@pytest.mark.parametrize(
    ("schema", "good", "bad", "pointer"),
    VALUES,
    ids=[
        "anything",
        "true",
        "recursion",
        "anchor",
        "base",
        "dynamic",
        "draft 7",
        "draft 4",
        "newest",
        "format",
        "ipv4",
        "no text",
    ],
)
def test_values_are_held_against_a_schema(schema: JsonObject, good: Any, bad: Any, pointer: str | None) -> None:
    checker = Checker(schema)

    assert checker.misfits(good) == []
    assert [misfit.pointer for misfit in checker.misfits(bad)] == ([] if pointer is None else [pointer])


def test_a_value_that_is_too_deep_does_not_fit() -> None:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    checker = Checker({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}})

    assert [str(misfit) for misfit in checker.misfits(value)] == ["the top: it is nested too deeply"]


def test_a_pattern_that_python_does_not_know_is_explained() -> None:
    with pytest.raises(InvalidSchemaError) as caught:
        Checker({"type": "string", "pattern": r"^\p{L}+$"})

    assert caught.value.hint is not None
    assert caught.value.hint.startswith("patterns are read as regular expressions of Python")


OLD = "http://json-schema.org/draft-03/schema#"


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"multipleOf": 0.01}, 19.99, True),
        ({"multipleOf": 0.01}, 19.995, False),
        ({"multipleOf": 2}, 5, False),
        ({"multipleOf": 2}, "no number", True),
        ({"multipleOf": 2}, True, True),
        ({"$schema": OLD, "divisibleBy": 0.1}, 0.3, True),
        ({"$schema": OLD, "divisibleBy": 0.1}, 0.35, False),
        (
            {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "properties": {"a": {"$ref": "#"}},
                "multipleOf": 0.1,
            },
            {"a": {"a": 0.3}},
            True,
        ),
    ],
)
def test_multiples_are_those_of_the_numbers_as_they_are_written(schema: JsonObject, value: Any, *, fits: bool) -> None:
    assert (Checker(schema).misfits(value) == []) is fits
