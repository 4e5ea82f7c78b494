from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from jp.conversation.entries import Facts, JsonObject, Question
from jp.conversation.resource import Block, Resource, ResourceBlock, ResourceLink, TextBlock
from jp.conversation.thread import ToolDefinition
from jp.mcp.definitions import Elicitation, FormAnswer, Hints, ServerError, ServerTool, UrlRequest, form_of
from jp.mcp.session import Call, CallResult
from jp.tool.base import Answer, Inquirer, NobodyToAsk, ToolInvocation, ToolOutput, Unanswered
from jp.tool.mcp import McpTool, OfferedTool

SCHEMA: JsonObject = {"type": "object", "properties": {}}
OFFERED = OfferedTool(
    name="s_look",
    server="s",
    tool=ServerTool(name="look", description="Look.", parameters=SCHEMA, hints=Hints(reads_only=True)),
)
FORM = form_of(
    "s",
    "Who are you?",
    {
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
    },
)

PLAN = Resource(uri="plan://1", title="The plan", text="x")

Respond = Callable[[Call], Awaitable[CallResult]]


class Scripted:
    """A server that does what it was told."""

    def __init__(self, respond: Respond) -> None:
        self._respond = respond

    async def call(self, call: Call) -> CallResult:
        return await self._respond(call)


class Person:
    """Answers questions in order; None for one that is declined."""

    def __init__(self, *answers: object) -> None:
        self.asked: list[Question] = []
        self.is_consent = False
        self._answers = list(answers)

    async def ask(self, question: Question, *, person_only: bool = False) -> Answer | Unanswered:
        self.asked.append(question)
        self.is_consent = person_only
        answer = self._answers.pop(0)
        return Unanswered(cause="declined") if answer is None else Answer(value=answer, by="user")


def run(respond: Respond, *, inquirer: Inquirer | None = None, said: list[str] | None = None) -> ToolOutput:
    heard: list[str] = [] if said is None else said
    invocation = ToolInvocation(
        arguments={"a": 1},
        root=Path("/"),
        inquirer=inquirer or NobodyToAsk(),
        progress=lambda text: heard.append(f"progress: {text}"),
        notice=heard.append,
    )
    return anyio.run(McpTool(OFFERED, Scripted(respond)).run, invocation)


def filled(elicitation: Elicitation, inquirer: Inquirer, said: list[str] | None = None) -> FormAnswer:
    """What the server gets for what it asks."""
    got: list[FormAnswer] = []

    async def respond(call: Call) -> CallResult:
        got.append(await call.elicit(elicitation))
        return CallResult(content=(), is_error=False)

    run(respond, inquirer=inquirer, said=said)
    return got[0]


def test_a_tool_is_offered_as_its_server_defines_it_or_in_the_words_of_the_user() -> None:
    async def respond(call: Call) -> CallResult:
        raise AssertionError(call)

    tool = McpTool(OFFERED, Scripted(respond))

    assert tool.definition == ToolDefinition(name="s_look", description="Look.", parameters=SCHEMA)
    assert McpTool(OFFERED, Scripted(respond), summary="Mine.").definition.description == "Mine."
    assert tool.source.text == "mcp.s.look"
    assert tool.hints == ("changes nothing",)


def test_what_a_server_returns_is_the_result() -> None:
    said: list[str] = []

    async def respond(call: Call) -> CallResult:
        assert (call.tool, call.arguments) == ("look", {"a": 1})
        call.progress("half way")
        return CallResult(content=(TextBlock(text="seen"),), is_error=True)

    assert run(respond, said=said) == ToolOutput(content=(TextBlock(text="seen"),), is_error=True)
    assert said == ["progress: half way"]


def test_a_server_that_fails_is_an_error_result() -> None:
    async def respond(call: Call) -> CallResult:
        raise ServerError("the MCP server 's' has ended")

    assert run(respond) == ToolOutput(content=(TextBlock(text="the MCP server 's' has ended"),), is_error=True)


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ((TextBlock(text="a"), ResourceBlock(resource=PLAN)), Facts(url="plan://1", title="The plan")),
        ((ResourceLink(uri="plan://2"),), Facts(url="plan://2")),
        ((ResourceBlock(resource=PLAN), ResourceLink(uri="plan://2")), None),
    ],
    ids=["embedded", "named", "two"],
)
def test_the_one_resource_that_came_is_known_by_its_address(content: tuple[Block, ...], facts: Facts | None) -> None:
    async def respond(call: Call) -> CallResult:
        return CallResult(content=content, is_error=False)

    assert run(respond).facts == facts


def test_nothing_is_a_result_too() -> None:
    async def respond(call: Call) -> CallResult:
        return CallResult(content=(), is_error=False)

    assert run(respond).content == (TextBlock(text=""),)


def test_a_form_is_asked_field_by_field() -> None:
    person = Person("Ada", "36")

    assert filled(FORM, person) == FormAnswer(action="accept", values={"name": "Ada", "age": 36})
    assert [question.text for question in person.asked] == [
        "s: Who are you?\nname",
        "age (a number) (may be left empty)",
    ]


@pytest.mark.parametrize(
    ("answers", "came"),
    [
        (("Ada", ""), FormAnswer(action="accept", values={"name": "Ada"})),
        (("Ada", "old", "36"), FormAnswer(action="accept", values={"name": "Ada", "age": 36})),
        (("Ada", "a", "b", "c"), FormAnswer(action="accept", values={"name": "Ada"})),
        (("", "", ""), FormAnswer(action="decline")),
        ((None,), FormAnswer(action="decline")),
        (("Ada", None), FormAnswer(action="decline")),
    ],
)
def test_what_does_not_fit_is_asked_for_again_and_a_person_may_decline(
    answers: tuple[object, ...], came: FormAnswer
) -> None:
    person = Person(*answers)

    assert filled(FORM, person) == came
    assert len({question.id for question in person.asked}) == len(answers)


def test_where_nobody_can_be_asked_the_server_is_told_that_nobody_chose() -> None:
    assert filled(FORM, NobodyToAsk()) == FormAnswer(action="cancel")


@pytest.mark.parametrize(("answer", "action"), [(True, "accept"), (False, "decline"), (None, "decline")])
def test_a_form_without_fields_asks_whether_to_go_on(answer: object, action: str) -> None:
    person = Person(answer)

    assert filled(form_of("s", "Delete it?", {}), person).action == action
    assert person.asked == [Question(id="go on", text="s: Delete it?\ngo on?", kind="boolean")]
    assert person.is_consent


def test_an_address_is_shown_and_declined() -> None:
    said: list[str] = []
    page = UrlRequest(server="s", message="Sign in", url="https://example.com")

    assert filled(page, Person(), said) == FormAnswer(action="decline")
    assert said == [
        "the MCP server 's' asks you to open https://example.com (Sign in); jp declines: open it and ask again"
    ]
