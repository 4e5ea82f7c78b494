from __future__ import annotations

import pytest

from jp.conversation.entries import JsonObject
from jp.tool.rules import argument_problems, fitted

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "line": {"type": "integer"},
        "ratio": {"type": "number"},
        "mode": {"type": "string", "enum": ["fast", "slow"]},
        "note": {"type": ["string", "null"]},
        "anything": {},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"old": {"type": "string"}},
                "required": ["old"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a"},
        {"path": "a", "line": 3, "ratio": 3, "mode": "slow", "note": None, "anything": [1], "edits": []},
        {"path": "a", "line": 3.0, "ratio": 0.5, "edits": [{"old": "x"}]},
    ],
)
def test_what_fits_has_no_problems(arguments: JsonObject) -> None:
    assert argument_problems(SCHEMA, arguments) == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "'path' is missing"),
        ({"path": None}, "'path' must be a string, not null"),
        ({"path": "a", "pathh": "b"}, "'pathh' is not known; did you mean 'path'?"),
        (
            {"path": "a", "zzz": 1},
            "'zzz' is not known; known are: 'anything', 'edits', 'line', 'mode', 'note', 'path', 'ratio'",
        ),
        ({"path": "a", "line": "3"}, "'line' must be an integer, not a string"),
        ({"path": "a", "line": True}, "'line' must be an integer, not a boolean"),
        ({"path": "a", "line": 3.5}, "'line' must be an integer, not a number"),
        ({"path": "a", "ratio": {}}, "'ratio' must be a number, not an object"),
        ({"path": "a", "mode": "medium"}, "'mode' must be one of 'fast', 'slow'"),
        ({"path": "a", "note": 1}, "'note' must be a string or null, not an integer"),
        ({"path": "a", "edits": "x"}, "'edits' must be an array, not a string"),
        ({"path": "a", "edits": [{"old": "x"}, {"new": "y"}]}, "'edits[1].old' is missing"),
        ({"path": "a", "edits": [{"old": "x", "new": "y"}]}, "'edits[0].new' is not known; known are: 'old'"),
    ],
)
def test_what_does_not_fit_is_named(arguments: JsonObject, problem: str) -> None:
    assert problem in argument_problems(SCHEMA, arguments)


def test_every_problem_is_named_at_once() -> None:
    assert argument_problems(SCHEMA, {"line": "x", "mode": 1}) == [
        "'path' is missing",
        "'line' must be an integer, not a string",
        "'mode' must be a string, not an integer",
    ]


def test_a_schema_that_is_open_takes_anything() -> None:
    assert argument_problems({"type": "object"}, {"whatever": [1, {"a": None}]}) == []


TYPED: JsonObject = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "default": 3},
        "ratio": {"type": "number"},
        "text": {"type": "string"},
        "either": {"type": ["string", "integer"]},
        "list": {"type": "array", "items": {"type": "integer"}},
        "options": {"type": "object", "properties": {"deep": {"type": "boolean", "default": False}}},
        "wrong": {"type": "string", "default": None},
        "any": True,
    },
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"count": "4"}, {"count": 4}),
        ({"count": "4.5"}, {"count": "4.5"}),
        ({"count": "many"}, {"count": "many"}),
        ({"ratio": "4"}, {"ratio": 4}),
        ({"text": "4"}, {"text": "4"}),
        ({"either": "4"}, {"either": "4"}),
        ({"list": "[1, 2]"}, {"list": [1, 2]}),
        ({"list": ["1", 2]}, {"list": [1, 2]}),
        ({"options": '{"deep": "true"}'}, {"options": {"deep": True}}),
        ({"options": {}}, {"options": {"deep": False}}),
        ({"any": "[1]", "unknown": "2"}, {"any": "[1]", "unknown": "2"}),
    ],
)
def test_what_models_get_wrong_is_put_right_and_what_is_omitted_has_its_default(
    given: JsonObject, expected: JsonObject
) -> None:
    assert fitted(TYPED, given) == {"count": 3, **expected}


def test_a_schema_that_allows_anything_finds_no_problem() -> None:
    assert argument_problems(TYPED, {"any": object()}) == []
