from __future__ import annotations

from typing import Any

import pytest

from jp.conversation.entries import Question
from jp.tool.consent import answer_schema, expected, fits

BOOLEAN = Question(id="b", text="?", kind="boolean")
SELECT = Question(id="s", text="?", kind="select", options=("a", "b"))
TEXT = Question(id="t", text="?", kind="text")


@pytest.mark.parametrize(
    ("question", "good", "bad"),
    [
        (BOOLEAN, [True, False], ["yes", 1, None]),
        (SELECT, ["a", "b"], ["c", "", None, ["a"]]),
        (TEXT, ["", "any"], [1, None, ["a"]]),
    ],
)
def test_an_answer_is_of_the_questions_kind(question: Question, good: list[Any], bad: list[Any]) -> None:
    assert [value for value in good if not fits(question, value)] == []
    assert [value for value in bad if fits(question, value)] == []


@pytest.mark.parametrize(
    ("question", "schema", "words"),
    [
        (BOOLEAN, {"type": "boolean"}, "true or false"),
        (SELECT, {"type": "string", "enum": ["a", "b"]}, "one of 'a', 'b'"),
        (TEXT, {"type": "string"}, "a text"),
    ],
)
def test_what_is_expected_is_told_as_a_schema_and_in_words(
    question: Question, schema: dict[str, Any], words: str
) -> None:
    assert answer_schema(question) == {
        "type": "object",
        "properties": {"answer": schema},
        "required": ["answer"],
        "additionalProperties": False,
    }
    assert expected(question) == words
