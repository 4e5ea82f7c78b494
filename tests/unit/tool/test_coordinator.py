from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from doubles import MemoryRecorder
from jp.config.entries import RunMode, ToolConfig
from jp.conversation.entries import AnyEntry, JsonObject, Question, ToolCallRequest
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import JpError
from jp.tool.base import (
    Answer,
    CallOutcome,
    CallStarted,
    ConfiguredTool,
    Inquired,
    Progressed,
    Stream,
    ToolEvent,
    ToolInvocation,
    ToolOutput,
    Unanswered,
)
from jp.tool.consent import Answers, Consent, Declined, Edited, Granted, Nobody, Proposal
from jp.tool.coordinator import AT_ONCE, CEILING, TIMEOUT_SECS, ToolCoordinator, ToolPorts, timeout_of

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

        self.parameters = PARAMETERS

    @property
    def definition(self) -> ToolDefinition:
        return ToolDefinition(name=self._name, description="", parameters=self.parameters)

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
    return ToolCoordinator(toolbox, ToolPorts(root=Path("/srv"), consent=Consent(Answers(), None), notice=notice))


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

    assert text_of(outcome) == "/srv: hi"
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
    assert text_of(echoed) == "/srv: hi"


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

    def answering(_call: ToolCallRequest, _stream: Stream) -> Answering:
        return Answering(answer)

    ports = ToolPorts(root=Path("/srv"), consent=Consent(Answers(), None), inquirer_for=answering)

    events = events_of(ToolCoordinator(toolbox, ports), call("ask"))

    assert [event.answer for event in events if isinstance(event, Inquired)] == [answer] * inquired
    assert [event.denied for event in events if isinstance(event, CallOutcome)] == [denied]


def tools(*, run: RunMode = "unattended", **behaviours: Behaviour) -> list[ConfiguredTool]:
    return [
        ConfiguredTool(tool=Behaving(name, behaviour), settings=ToolConfig(run=run))
        for name, behaviour in behaviours.items()
    ]


def coordinating(*configured: ConfiguredTool, **ports: Any) -> ToolCoordinator:
    toolbox = {each.tool.definition.name: each for each in configured}
    given: dict[str, Any] = {"root": Path("/srv"), "consent": Consent(Answers(), None), **ports}
    return ToolCoordinator(toolbox, ToolPorts(**given))


def numbered(name: str, number: int, text: str = "hi") -> ToolCallRequest:
    return ToolCallRequest(id=f"e{number}", call_id="1", name=name, arguments={"text": text})


def test_calls_run_side_by_side_but_not_all_at_once() -> None:
    running: list[int] = []
    most: list[int] = []

    async def count(invocation: ToolInvocation) -> ToolOutput:
        running.append(1)
        most.append(len(running))
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        running.pop()
        return ToolOutput(content=())

    ended = outcomes(coordinating(*tools(count=count)), *(numbered("count", number) for number in range(AT_ONCE + 3)))

    assert max(most) == AT_ONCE
    assert len(ended) == AT_ONCE + 3


def test_calls_with_the_same_id_of_the_provider_have_each_their_own_result() -> None:
    calls = [numbered("echo", 1, "one"), numbered("echo", 2, "two")]

    ended = {outcome.call.id: text_of(outcome) for outcome in outcomes(coordinating(*tools(echo=echo)), *calls)}

    assert ended == {"e1": "/srv: one", "e2": "/srv: two"}


def test_calls_about_the_same_file_run_in_their_order() -> None:
    texts: list[str] = []

    async def slow_first(invocation: ToolInvocation) -> ToolOutput:
        if invocation.arguments["text"] == "first":
            await anyio.wait_all_tasks_blocked()
        texts.append(invocation.arguments["text"])
        return ToolOutput(content=())

    tool = Behaving("write", slow_first)
    tool.parameters = {"type": "object", "properties": {"text": {"type": "string"}, "path": {"type": "string"}}}
    coordinator = coordinating(ConfiguredTool(tool=tool, settings=ToolConfig(run="unattended")))

    def writing(number: int, text: str) -> ToolCallRequest:
        return ToolCallRequest(id=f"e{number}", call_id="1", name="write", arguments={"text": text, "path": "a"})

    events_of(coordinator, writing(1, "first"), writing(2, "second"))

    assert texts == ["first", "second"]


class Refusing:
    """Says no to everything."""

    async def approve(self, proposal: Proposal) -> Declined:
        return Declined()

    async def edit(self, proposal: Proposal) -> Nobody:
        return Nobody()

    async def deliver(self, call: ToolCallRequest, output: ToolOutput) -> Nobody:
        return Nobody()

    async def edit_result(self, call: ToolCallRequest, output: ToolOutput) -> Nobody:
        return Nobody()


def test_a_call_does_not_wait_for_one_about_the_same_file_that_was_declined() -> None:
    configured = [*tools(declined=echo, run="ask"), *tools(allowed=echo)]
    for each in configured:
        assert isinstance(each.tool, Behaving)
        each.tool.parameters = {"type": "object", "properties": {"text": {"type": "string"}, "path": {}}}
    arguments: JsonObject = {"text": "x", "path": "a"}
    calls = [
        ToolCallRequest(id=f"e{number}", call_id=f"{number}", name=name, arguments=arguments)
        for number, name in enumerate(("declined", "allowed"))
    ]

    ended = outcomes(coordinating(*configured, consent=Consent(Answers(), Refusing())), *calls)

    assert [(outcome.call.name, outcome.denied) for outcome in ended] == [("declined", True), ("allowed", False)]


class Person:
    """Says yes as soon as the other call has run."""

    def __init__(self, ran: anyio.Event) -> None:
        self._ran = ran
        self.asked: list[str] = []

    async def approve(self, proposal: Proposal) -> Granted:
        await self._ran.wait()
        self.asked.append(str(proposal.arguments["text"]))
        return Granted()

    async def edit(self, proposal: Proposal) -> Edited:
        return Edited(arguments={"text": "edited"})

    async def deliver(self, call: ToolCallRequest, output: ToolOutput) -> Nobody:
        return Nobody()

    async def edit_result(self, call: ToolCallRequest, output: ToolOutput) -> Nobody:
        return Nobody()


def test_what_may_run_runs_while_a_person_is_asked_in_order_about_the_rest() -> None:
    ran = anyio.Event()

    async def announce(invocation: ToolInvocation) -> ToolOutput:
        ran.set()
        return ToolOutput(content=())

    person = Person(ran)
    coordinator = coordinating(
        *tools(echo=echo, run="ask"), *tools(announce=announce), consent=Consent(Answers(), person)
    )

    ended = outcomes(coordinator, numbered("echo", 1, "one"), numbered("echo", 2, "two"), numbered("announce", 3))

    assert ended[0].call.id == "e3"
    assert person.asked == ["one", "two"]


def test_the_model_is_told_which_arguments_a_person_made_of_its_own() -> None:
    ran = anyio.Event()
    ran.set()
    coordinator = coordinating(*tools(echo=echo, run="edit"), consent=Consent(Answers(), Person(ran)))

    (outcome,) = outcomes(coordinator, numbered("echo", 1))

    assert [block.text for block in outcome.output.content if isinstance(block, TextBlock)] == [
        'The user changed the arguments, and the call ran with these: {"text":"edited"}',
        "/srv: edited",
    ]


def test_a_result_that_nobody_lets_pass_is_kept_back_and_counts_as_denied() -> None:
    tool = Behaving("echo", echo)
    settings = ToolConfig(run="unattended", result="ask")

    (outcome,) = outcomes(coordinating(ConfiguredTool(tool=tool, settings=settings)), numbered("echo", 1))

    assert outcome.denied
    assert "you are not given its result" in text_of(outcome)


def test_a_result_is_delivered_in_the_log_as_it_stands() -> None:
    seen: list[int] = []

    def deliver(configured: ConfiguredTool, output: ToolOutput, entries: Sequence[AnyEntry]) -> ToolOutput:
        seen.append(len(entries))
        return ToolOutput(content=(TextBlock(text=f"{configured.tool.definition.name}: short"),))

    (outcome,) = outcomes(coordinating(*tools(echo=echo), delivery=deliver), numbered("echo", 1))

    assert text_of(outcome) == "echo: short"
    assert seen == [1]


def test_a_result_beyond_the_ceiling_is_cut() -> None:
    async def flood(invocation: ToolInvocation) -> ToolOutput:
        return ToolOutput(content=(TextBlock(text="x" * (CEILING + 1)),))

    (outcome,) = outcomes(coordinating(*tools(flood=flood)), numbered("flood", 1))

    text, note = outcome.output.content
    assert isinstance(text, TextBlock)
    assert isinstance(note, TextBlock)
    assert len(text.text or "") == CEILING
    assert "Only the beginning of the result was kept" in (note.text or "")


def test_a_call_that_takes_too_long_is_stopped_and_the_others_are_not() -> None:
    async def hang(invocation: ToolInvocation) -> ToolOutput:
        await anyio.sleep_forever()
        return ToolOutput(content=())

    hanging = ConfiguredTool(tool=Behaving("hang", hang), settings=ToolConfig(run="unattended", timeout_secs=0.001))

    ended = {each.call.name: each for each in outcomes(coordinating(hanging, *tools(echo=echo)), call("hang"), call())}

    assert text_of(ended["hang"]) == "hang was stopped: it took longer than 0.001 s. What it did until then stays."
    assert ended["hang"].output.is_error
    assert not ended["echo"].output.is_error


def time_left() -> float:
    return anyio.current_effective_deadline() - anyio.current_time()


class Patient:
    """Answers with how long the answer may take."""

    async def ask(self, question: Question, *, person_only: bool = False) -> Answer | Unanswered:
        return Answer(value=time_left(), by="user") if question.id == "name" else Unanswered(cause="declined")


def patient(_call: ToolCallRequest, _stream: Stream) -> Patient:
    return Patient()


def test_the_time_that_an_answer_takes_is_not_the_calls_and_questions_and_progress_are_told() -> None:
    async def ask(invocation: ToolInvocation) -> ToolOutput:
        answer = await invocation.inquirer.ask(Question(id="name", text="Who?", kind="text"))
        assert isinstance(answer, Answer)
        assert answer.value > 1 >= time_left()
        assert isinstance(await invocation.inquirer.ask(Question(id="none", text="?", kind="text")), Unanswered)
        invocation.progress("half")
        return ToolOutput(content=(TextBlock(text="done"),))

    asking = ConfiguredTool(tool=Behaving("ask", ask), settings=ToolConfig(run="unattended", timeout_secs=1))
    events = events_of(coordinating(asking, inquirer_for=patient), call("ask"))

    assert [type(event) for event in events] == [CallStarted, Inquired, Progressed, CallOutcome]
    assert isinstance(events[1], Inquired)
    assert events[1].answer.by == "user"
    assert isinstance(events[3], CallOutcome)
    assert text_of(events[3]) == "done"


class Gone:
    """A person whose terminal fails."""

    async def approve(self, proposal: Proposal) -> Nobody:
        raise OSError("the terminal is gone")

    edit = approve

    async def deliver(self, call: ToolCallRequest, output: ToolOutput) -> Nobody:
        raise OSError("the terminal is gone")

    edit_result = deliver


@pytest.mark.parametrize("settings", [ToolConfig(run="ask"), ToolConfig(run="unattended", result="ask")])
def test_where_asking_fails_that_is_raised_as_it_is(settings: ToolConfig) -> None:
    coordinator = coordinating(
        ConfiguredTool(tool=Behaving("echo"), settings=settings), consent=Consent(Answers(), Gone())
    )

    with pytest.raises(OSError, match="the terminal is gone"):
        events_of(coordinator, call())


def test_a_tool_that_wants_to_end_the_program_has_failed() -> None:
    async def leave(invocation: ToolInvocation) -> ToolOutput:
        raise SystemExit(3)

    (outcome,) = outcomes(coordinating(*tools(leave=leave)), call("leave"))

    assert text_of(outcome) == "leave failed: SystemExit: 3"


def test_what_a_person_stops_is_answered_with_their_words_and_what_ended_keeps_its_result() -> None:
    events: list[ToolEvent] = []
    hanging = anyio.Event()

    async def hang(invocation: ToolInvocation) -> ToolOutput:
        hanging.set()
        await anyio.sleep_forever()
        return ToolOutput(content=())

    ran = anyio.Event()
    coordinator = coordinating(
        *tools(hang=hang, echo=echo), *tools(ask=echo, run="ask"), consent=Consent(Answers(), Person(ran))
    )

    async def stop_them() -> None:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                calls = [call("hang"), call("ask"), call("echo")]
                group.start_soon(coordinator.run, calls, MemoryRecorder(), events.append)
                await hanging.wait()
                await anyio.wait_all_tasks_blocked()
                assert coordinator.is_running
                coordinator.stop("use the index")

    anyio.run(stop_them)

    ended = {event.call.name: event for event in events if isinstance(event, CallOutcome)}
    assert text_of(ended["echo"]) == "/srv: hi"
    assert text_of(ended["hang"]) == (
        "The user stopped this call while it ran; what it did until then stays. The user says: use the index"
    )
    assert text_of(ended["ask"]) == (
        "This call did not run: the user stopped the calls before it began. The user says: use the index"
    )
    assert not coordinator.is_running
    coordinator.stop()


def test_where_who_hears_of_it_fails_everything_stops_and_the_failure_is_raised_as_it_is() -> None:
    async def hang(invocation: ToolInvocation) -> ToolOutput:
        await anyio.sleep_forever()
        return ToolOutput(content=())

    def tell(event: ToolEvent) -> None:
        if isinstance(event, CallOutcome):
            raise JpError("the disk is full")

    async def run() -> None:
        with anyio.fail_after(10):
            await coordinating(*tools(echo=echo, hang=hang)).run([call("hang"), call()], MemoryRecorder(), tell)

    with pytest.raises(JpError, match="the disk is full"):
        anyio.run(run)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ToolConfig(), None),
        (ToolConfig(source="builtin"), None),
        (ToolConfig(command="ls"), TIMEOUT_SECS),
        (ToolConfig(source="local"), TIMEOUT_SECS),
        (ToolConfig(source="mcp.server.tool"), TIMEOUT_SECS),
        (ToolConfig(source="mcp.server", timeout_secs=0), None),
        (ToolConfig(timeout_secs=3), 3),
    ],
)
def test_commands_and_servers_have_a_time_unless_another_is_set(settings: ToolConfig, expected: float | None) -> None:
    assert timeout_of(ConfiguredTool(tool=Behaving("echo"), settings=settings)) == expected
