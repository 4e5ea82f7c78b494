from __future__ import annotations

from typing import Any

import pytest

from jp.app.schema_checker import Checker, in_one_line
from jp.conversation.entries import JsonObject

PAIR: JsonObject = {
    "type": "object",
    "properties": {"k": {"const": 1}, "l": {"type": "integer"}},
    "required": ["k", "l"],
    "additionalProperties": False,
}


def problems(schema: JsonObject, value: Any) -> list[str]:
    return [str(misfit) for misfit in Checker(schema).misfits(value)]


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": "integer"}, "x", ['the top: "x" is not of type integer']),
        ({"type": ["integer", "null"]}, True, ["the top: true is not of type integer or null"]),
        ({"enum": ["a", None]}, "b", ['the top: "b" is none of "a", null']),
        ({"const": {"a": 1}}, [], ['the top: [] is not {"a":1}']),
        (PAIR, {}, ["the top: 'k', 'l' are missing"]),
        (PAIR, {"k": 1}, ["the top: 'l' is missing"]),
        (
            PAIR,
            {"k": 2, "l": 0.5, "m": 1},
            ["the top: 'm' is not expected", "/k: 2 is not 1", "/l: 0.5 is not of type integer"],
        ),
        (
            {"additionalProperties": False, "patternProperties": {"^x": {}}},
            {"a/b": 1},
            ["the top: 'a/b' is not expected"],
        ),
        ({"additionalProperties": {"type": "string"}}, {"a/b": 1}, ["/a~1b: 1 is not of type string"]),
        ({"minimum": 3}, 1, ["the top: 1 does not have minimum 3"]),
        ({"maxLength": 1}, "ab", ['the top: "ab" does not have maxLength 1']),
        ({"pattern": "^a"}, "b", ['the top: "b" does not have pattern "^a"']),
        ({"uniqueItems": True}, [1, 1], ["the top: [1,1] does not have uniqueItems true"]),
        ({"not": {"type": "string"}}, "a", ['the top: "a" fits what is ruled out: {"type":"string"}']),
        (
            {"anyOf": [{"type": "null"}, {"type": "string"}]},
            1,
            ["the top: 1 fits none of the 2 alternatives; the nearest: 1 is not of type null"],
        ),
        (
            {"items": {"oneOf": [{"type": "null"}, PAIR]}},
            [{"k": 2, "l": 1}],
            ['/0: {"k":2,"l":1} fits none of the 2 alternatives; the nearest: /0/k: 2 is not 1'],
        ),
        (
            {"oneOf": [{"type": "number"}, {"type": "integer"}]},
            1,
            ["the top: 1 fits more than one of the 2 alternatives"],
        ),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, ["the top: 'b' is a dependency of 'a'"]),
        (
            {"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"a": {"required": True}}},
            {},
            ["/a: 'a' is a required property"],
        ),
        ({"maxLength": 1}, "x" * 100, [f'the top: "{"x" * 78}… does not have maxLength 1']),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(schema: JsonObject, value: Any, said: list[str]) -> None:
    assert problems(schema, value) == said


def test_a_line_has_a_few_of_many() -> None:
    assert in_one_line(["a"]) == "a"
    assert in_one_line(list("abcde")) == "a; b; c; d; e"
    assert in_one_line(list("abcdefg")) == "a; b; c; d; e; and 2 more"
