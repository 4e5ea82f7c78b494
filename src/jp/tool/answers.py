"""What may be answered to a question. Pure."""

from __future__ import annotations

from typing import Any, assert_never

from jp.conversation.entries import JsonObject, Question

ANSWER = "answer"
"""The member that holds the answer, where it is asked for as JSON."""


def fits(question: Question, value: Any) -> bool:
    """Whether `value` answers `question`."""
    match question.kind:
        case "boolean":
            return isinstance(value, bool)
        case "select":
            return value in question.options
        case "text":
            return isinstance(value, str)
        case _:
            assert_never(question.kind)


def expected(question: Question) -> str:
    """What an answer has to be, in words."""
    match question.kind:
        case "boolean":
            return "true or false"
        case "select":
            return f"one of {', '.join(map(repr, question.options)) or 'no options'}"
        case "text":
            return "a text"
        case _:
            assert_never(question.kind)


def answer_schema(question: Question) -> JsonObject:
    """The JSON Schema of an object whose only member is the answer."""
    match question.kind:
        case "boolean":
            answer: JsonObject = {"type": "boolean"}
        case "select":
            answer = {"type": "string", "enum": list(question.options)}
        case "text":
            answer = {"type": "string"}
        case _:
            assert_never(question.kind)
    return {"type": "object", "properties": {ANSWER: answer}, "required": [ANSWER], "additionalProperties": False}
