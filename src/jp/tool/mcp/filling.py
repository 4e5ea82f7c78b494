"""Answers to what a server asks while a tool runs: a form field by field, through the tool's inquirer."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from jp.conversation.entries import Question
from jp.mcp.forms import Elicitation, Field, Filled, Form, Page, Value, value_of
from jp.tool.base import Inquirer, Unanswered

_MOST_TRIES = 3

_GO_ON = "go on"


async def answer(elicitation: Elicitation, inquirer: Inquirer, say: Callable[[str], None]) -> Filled:
    """What is answered. An address is never opened for a server: it is shown, and declined."""
    match elicitation:
        case Page(server=server, message=message, url=url):
            say(f"the MCP server {server!r} asks you to open {url} ({message}); jp declines: open it and ask again")
            return Filled(action="decline")
        case Form():
            return await _fill(elicitation, inquirer)
        case _:
            assert_never(elicitation)


async def _fill(form: Form, inquirer: Inquirer) -> Filled:
    if not form.fields:
        question = Question(id=_GO_ON, text=_headed(form, "go on?"), kind="boolean")
        reply = await inquirer.ask(question, person_only=True)
        if isinstance(reply, Unanswered):
            return _without(reply)
        return Filled(action="accept" if reply.value is True else "decline")
    values: dict[str, Value | None] = {}
    for position, field in enumerate(form.fields):
        asked = field if position else _introduced(form, field)
        value = await _ask(asked, inquirer)
        if isinstance(value, Unanswered):
            return _without(value)
        if value is not None:
            values[field.question.id] = value
        elif field.required:
            return Filled(action="decline")
    return Filled(action="accept", values=values)


def _introduced(form: Form, field: Field) -> Field:
    """The first field, with what the form is about."""
    question = field.question
    return replace(field, question=replace(question, text=_headed(form, question.text)))


def _headed(form: Form, text: str) -> str:
    return f"{form.server}: {form.message}\n{text}"


def _without(reply: Unanswered) -> Filled:
    return Filled(action="decline" if reply.cause == "declined" else "cancel")


async def _ask(field: Field, inquirer: Inquirer) -> Value | Unanswered | None:
    """The value of a field, None where it is left empty. What it cannot be is asked for again, a few times."""
    for attempt in range(_MOST_TRIES):
        question = field.question
        if attempt:
            # What was answered to a question is not asked again in a turn.
            question = replace(question, id=f"{question.id}#{attempt + 1}", text=f"that does not fit. {question.text}")
        reply = await inquirer.ask(question)
        if isinstance(reply, Unanswered):
            return reply
        value = value_of(field, reply.value)
        if value is not None or (not field.required and reply.value in {None, ""}):
            return value
    return None
