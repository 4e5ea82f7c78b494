from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from doubles import MemoryRecorder
from jp.config.kinds import RunMode
from jp.config.tools import ToolConfig
from jp.conversation.entries import JsonObject, Question, ToolCallRequest
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import JpError
from jp.tool.base import (
    Answer,
    CallOutcome,
    CallStarted,
    ConfiguredTool,
    Inquired,
    ToolEvent,
    ToolInvocation,
    ToolOutput,
    Unanswered,
)
from jp.tool.consent import Consent
from jp.tool.coordinator import ToolCoordinator, ToolPorts
from jp.tool.permission import Answers

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}

Behaviour = Callable[[ToolInvocation], Awaitable[ToolOutput]]


async def echo(invocation: ToolInvocation) -> ToolOutput:
    return ToolOutput(content=(TextBlock(text=f"{invocation.root}: {invocation.arguments['text']}"),))


class Behaving:
    """A tool that does what it was given, and keeps what it was run with."""

    def __init__(self, name: str, behaviour: Behaviour = echo) -> None:
        self._name = name
        self._behaviour = behaviour
        self.ran: list[JsonObject] = []

    @property
    def definition(self) -> ToolDefinition:
        return ToolDefinition(name=self._name, description="", parameters=PARAMETERS)

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        self.ran.append(invocation.arguments)
        return await self._behaviour(invocation)


class Screen:
    """Keeps what a person is told."""

    def __init__(self) -> None:
        self.notices: list[str] = []


def coordinator_of(*tools: Behaving, run: RunMode = "unattended", screen: Screen | None = None) -> ToolCoordinator:
    toolbox = {tool.definition.name: ConfiguredTool(tool=tool, settings=ToolConfig(run=run)) for tool in tools}
    notice = (screen or Screen()).notices.append
    return ToolCoordinator(toolbox, ToolPorts(root=Path("/work"), consent=Consent(Answers(), None), notice=notice))


def call(name: str = "echo", arguments: JsonObject | str | None = None) -> ToolCallRequest:
    return ToolCallRequest(
        id=f"entry of {name}", call_id="1", name=name, arguments={"text": "hi"} if arguments is None else arguments
    )


def events_of(coordinator: ToolCoordinator, *calls: ToolCallRequest) -> list[ToolEvent]:
    events: list[ToolEvent] = []

    async def collect() -> None:
        with anyio.fail_after(10):
            await coordinator.run(calls, MemoryRecorder(), events.append)

    anyio.run(collect)
    return events


def outcomes(coordinator: ToolCoordinator, *calls: ToolCallRequest) -> list[CallOutcome]:
    return [event for event in events_of(coordinator, *calls) if isinstance(event, CallOutcome)]


def text_of(outcome: CallOutcome) -> str:
    (block,) = outcome.output.content
    assert isinstance(block, TextBlock)
    return block.text or ""


def test_a_call_runs_with_its_arguments_in_the_root() -> None:
    (outcome,) = outcomes(coordinator_of(Behaving("echo")), call())

    assert text_of(outcome) == "/work: hi"
    assert outcome.call == call()
    assert outcome.duration_ms is not None
    assert not outcome.output.is_error
    assert not outcome.denied


def test_a_result_is_told_while_other_calls_still_run() -> None:
    told = anyio.Event()

    async def wait(invocation: ToolInvocation) -> ToolOutput:
        await told.wait()
        return ToolOutput(content=())

    ended: list[str] = []

    def tell(event: ToolEvent) -> None:
        if isinstance(event, CallOutcome):
            ended.append(event.call.name)
            told.set()

    async def run() -> None:
        with anyio.fail_after(10):
            calls = [call("wait"), call("echo")]
            await coordinator_of(Behaving("wait", wait), Behaving("echo")).run(calls, MemoryRecorder(), tell)

    anyio.run(run)

    assert ended == ["echo", "wait"]


def test_an_unknown_tool_is_a_result_that_names_the_known_ones() -> None:
    (outcome,) = outcomes(coordinator_of(Behaving("echo"), Behaving("add")), call("ehco"))

    assert (
        text_of(outcome)
        == "There is no tool 'ehco', so nothing ran. Did you mean 'echo'? Tools that may be called: 'add', 'echo'."
    )
    assert outcome.output.is_error
    assert outcome.duration_ms is None
    assert not outcome.denied


def test_without_any_tool_the_result_says_so() -> None:
    (outcome,) = outcomes(coordinator_of(), call())

    assert text_of(outcome).endswith("Tools that may be called: none.")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            "so be it",
            (
                "The arguments are not JSON (JSON is malformed: invalid character (byte 0)), so nothing ran. "
                "Send the call again with a JSON object."
            ),
        ),
        (
            "[1]",
            "The arguments are JSON, but not an object, so nothing ran. Send the call again with a JSON object.",
        ),
        ({"text": 3}, "The arguments do not fit, so nothing ran: 'text' must be a string, not an integer."),
        ({}, "The arguments do not fit, so nothing ran: 'text' is missing."),
    ],
)
def test_arguments_that_do_not_fit_never_reach_the_tool(arguments: JsonObject | str, expected: str) -> None:
    tool = Behaving("echo")

    (outcome,) = outcomes(coordinator_of(tool), call("echo", arguments))

    assert text_of(outcome) == expected
    assert outcome.output.is_error
    assert tool.ran == []


def test_a_call_that_nobody_can_approve_does_not_run_and_counts_as_denied() -> None:
    tool = Behaving("echo")

    (outcome,) = outcomes(coordinator_of(tool, run="ask"), call())

    assert "nobody can be asked" in text_of(outcome)
    assert outcome.output.is_error
    assert outcome.denied
    assert tool.ran == []


def test_a_skipped_call_does_not_run_and_is_no_denial() -> None:
    tool = Behaving("echo")

    (outcome,) = outcomes(coordinator_of(tool, run="skip"), call())

    assert "are skipped" in text_of(outcome)
    assert outcome.output.is_error
    assert not outcome.denied
    assert tool.ran == []


def test_what_a_tool_raises_is_a_result_and_a_notice_and_the_next_call_runs() -> None:
    async def fail(invocation: ToolInvocation) -> ToolOutput:
        raise ZeroDivisionError("by zero")

    screen = Screen()
    failed, echoed = outcomes(
        coordinator_of(Behaving("fail", fail), Behaving("echo"), screen=screen), call("fail"), call()
    )

    assert text_of(failed) == "fail failed: ZeroDivisionError: by zero"
    assert failed.output.is_error
    assert screen.notices == ["tool 'fail' failed: ZeroDivisionError: by zero"]
    assert text_of(echoed) == "/work: hi"


def test_a_failure_in_words_for_a_person_goes_to_the_model_as_it_is() -> None:
    async def fail(invocation: ToolInvocation) -> ToolOutput:
        raise JpError("the disk is full")

    screen = Screen()
    (outcome,) = outcomes(coordinator_of(Behaving("fail", fail), screen=screen), call("fail"))

    assert text_of(outcome) == "the disk is full"
    assert outcome.output.is_error
    assert screen.notices == []


def test_cancelling_stops_what_runs_and_tells_of_nothing_more() -> None:
    started = anyio.Event()
    stopped: list[str] = []

    async def hang(invocation: ToolInvocation) -> ToolOutput:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append("hang")
        return ToolOutput(content=())

    events: list[ToolEvent] = []
    coordinator = coordinator_of(Behaving("hang", hang))

    async def cancel_it() -> None:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(coordinator.run, [call("hang")], MemoryRecorder(), events.append)
                await started.wait()
                group.cancel_scope.cancel()

    anyio.run(cancel_it)

    assert stopped == ["hang"]
    assert events == [CallStarted(call=call("hang"))]


def test_the_definitions_are_the_toolbox_s() -> None:
    coordinator = coordinator_of(Behaving("b"), Behaving("a"))

    assert [definition.name for definition in coordinator.definitions] == ["a", "b"]


async def asking(invocation: ToolInvocation) -> ToolOutput:
    answer = await invocation.inquirer.ask(Question(id="q", text="Sure?", kind="boolean"))
    return ToolOutput(content=(TextBlock(text=str(answer)),))


class Answering:
    def __init__(self, answer: Answer | Unanswered) -> None:
        self._answer = answer

    async def ask(self, question: Question, *, person_only: bool = False) -> Answer | Unanswered:
        return self._answer


@pytest.mark.parametrize(
    ("answer", "inquired", "denied"),
    [
        (Answer(value=True, by="user"), 1, False),
        (Unanswered(cause="declined"), 0, False),
        (Unanswered(cause="nobody"), 0, True),
    ],
)
def test_what_a_tool_asks_is_told_and_a_call_that_nobody_answers_counts_as_denied(
    answer: Answer | Unanswered, inquired: int, *, denied: bool
) -> None:
    toolbox = {"ask": ConfiguredTool(tool=Behaving("ask", asking), settings=ToolConfig(run="unattended"))}
    ports = ToolPorts(root=Path("/work"), consent=Consent(Answers(), None), inquirer_for=lambda *_: Answering(answer))

    events = events_of(ToolCoordinator(toolbox, ports), call("ask"))

    assert [event.answer for event in events if isinstance(event, Inquired)] == [answer] * inquired
    assert [event.denied for event in events if isinstance(event, CallOutcome)] == [denied]
