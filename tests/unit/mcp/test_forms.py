from __future__ import annotations

from typing import Any

import pytest

from jp.conversation.entries import Question
from jp.mcp.definitions import MOST_FIELDS, Field, form_of, value_of


def field(schema: dict[str, Any], *, required: bool = True) -> Field:
    names = ["f"] if required else []
    return form_of("s", "?", {"properties": {"f": schema}, "required": names}).fields[0]


@pytest.mark.parametrize(
    ("schema", "question", "answers"),
    [
        ({"type": "string"}, Question(id="f", text="f", kind="text"), {"a": "a", "": None, 5: "5"}),
        (
            {"type": "string", "title": "Name", "description": "in full", "default": "Ada"},
            Question(id="f", text="Name: in full", kind="text", default="Ada"),
            {"x": "x"},
        ),
        (
            {"type": "integer", "default": 3},
            Question(id="f", text="f (a number)", kind="text", default="3"),
            {"4": 4, " 5 ": 5, 6: 6, "7.5": None, "x": None, "": None},
        ),
        (
            {"type": "number"},
            Question(id="f", text="f (a number)", kind="text"),
            {"7.5": 7.5, "8": 8, "inf": None, "nan": None},
        ),
        (
            {"type": "boolean", "default": True},
            Question(id="f", text="f", kind="boolean", default=True),
            {True: True, False: False, "yes": None},
        ),
        ({"type": "boolean", "default": "yes"}, Question(id="f", text="f", kind="boolean"), {}),
        (
            {"enum": ["r", "b"], "enumNames": ["red", "blue"], "default": "b"},
            Question(id="f", text="f", kind="select", options=("red", "blue"), default="blue"),
            {"red": "r", "b": "b", "green": None},
        ),
        (
            {"type": "string", "oneOf": [{"const": "r", "title": "red"}, {"const": "b"}, 5, {"title": "x"}]},
            Question(id="f", text="f", kind="select", options=("red", "b")),
            {"red": "r", "b": "b"},
        ),
        (
            {"type": "array", "items": {"enum": ["mon", "tue"]}, "default": ["mon"]},
            Question(id="f", text="f (several of mon, tue, separated by commas)", kind="text", default="mon"),
            {"mon, tue": ["mon", "tue"], "tue,": ["tue"], "wed": None, "": None},
        ),
        (
            {"type": "array", "items": 5},
            Question(id="f", text="f (separated by commas)", kind="text"),
            {"a,b": ["a", "b"]},
        ),
        ({"type": "array", "items": {"anyOf": [{"const": "m", "title": "Mo"}]}}, None, {"Mo": ["m"], "m": ["m"]}),
        ({"type": "object"}, Question(id="f", text="f", kind="text"), {"x": "x"}),
    ],
)
def test_a_field_is_a_question_whose_answers_have_meanings(
    schema: dict[str, Any], question: Question | None, answers: dict[object, object]
) -> None:
    asked = field(schema)

    if question is not None:
        assert asked.question == question
    assert {answer: value_of(asked, answer) for answer in answers} == answers


def test_a_list_of_choices_may_be_answered_by_a_list() -> None:
    assert value_of(field({"type": "array", "items": {"enum": ["mon", "tue"]}}), ["tue"]) == ["tue"]


def test_a_field_that_may_be_left_empty_says_so() -> None:
    assert field({"type": "string"}, required=False).question.text == "f (may be left empty)"


@pytest.mark.parametrize("schema", [{}, {"properties": 5}, {"properties": {"a": 5}, "required": 5}])
def test_a_form_may_have_no_fields(schema: dict[str, Any]) -> None:
    assert form_of("s", "go on?", schema).fields == ()


def test_a_form_has_an_end() -> None:
    properties = {f"f{number}": {"type": "string"} for number in range(1000)}

    assert len(form_of("s", "?", {"properties": properties}).fields) == MOST_FIELDS
