from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import pytest

from doubles import FakeClock, MemoryRecorder, Screen, ScriptedProvider, kinds
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.projection import project
from jp.context.markers import marker
from jp.conversation.entries import (
    ChatRequest,
    Facts,
    Header,
    InquiryRequest,
    InquiryResponse,
    JsonObject,
    Question,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Usage,
)
from jp.conversation.resource import INTERRUPTED_CONTENT, NOT_STARTED_CONTENT, TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import JpError
from jp.provider.transcript import WireCall, WireResult
from jp.tool.base import Answer, CallOutcome, CallProgress, CallStarted, QuestionAnswered, ToolEvent, ToolOutput
from jp.turn.loop import CallsRun
from jp.turn.ports import Recorder, TurnPorts
from threads import in_wire_order

NONCE = "5eed5eed"
QUESTION = Question(id="overwrite", text="Overwrite it?", kind="boolean")


class Played:
    """Tools that tell of what was written for them; an error in it is raised."""

    definitions: tuple[ToolDefinition, ...] = ()

    def __init__(self, *events: ToolEvent | Exception) -> None:
        self._events = events
        self.called: list[str] = []

    async def run(self, calls: Sequence[ToolCallRequest], stream: Recorder, tell: Callable[[ToolEvent], None]) -> None:
        self.called = [call.id for call in calls]
        for event in self._events:
            if isinstance(event, Exception):
                raise event
            tell(event)


class Stage:
    """A cycle whose calls have been recorded, and their run."""

    def __init__(self, count: int, *, arguments: JsonObject | None = None) -> None:
        self.recorder = MemoryRecorder([Header(id="header", format=1, created_at="", nonce=NONCE)])
        self.screen = Screen()
        self.recorder.append(TurnStart())
        self.recorder.append(ChatRequest(content="Hi"))
        self.calls = [self._call(number, arguments or {}) for number in range(count)]
        self.before = len(self.recorder.entries)

    def _call(self, number: int, arguments: JsonObject) -> ToolCallRequest:
        call = ToolCallRequest(call_id="repeated", name=f"tool{number}", arguments=arguments)
        recorded = self.recorder.append(call)
        assert isinstance(recorded, ToolCallRequest)
        return recorded

    def play(self, tools: Played) -> CallsRun:
        ports = TurnPorts(
            provider=ScriptedProvider(),
            recorder=self.recorder,
            renderer=self.screen,
            tools=tools,
            clock=FakeClock(),
            status_formatter=StatusLineFormatter(),
        )
        run = CallsRun(ports, self.calls)
        anyio.run(run.run)
        return run

    def outcome(self, number: int, *, denied: bool = False) -> CallOutcome:
        output = ToolOutput(content=(TextBlock(text=f"result {number}"),), facts=Facts(path=f"{number}.py"))
        duration = None if denied else 7
        return CallOutcome(call=self.calls[number], output=output, duration_ms=duration, denied=denied)

    def responses(self) -> dict[str, ToolCallResponse]:
        return {each.request: each for each in self.recorder.entries if isinstance(each, ToolCallResponse)}


def test_results_are_recorded_as_they_come_and_sent_in_the_order_of_the_calls() -> None:
    stage = Stage(3)

    stage.play(Played(stage.outcome(2), stage.outcome(0), stage.outcome(1)))

    recorded = [entry for entry in stage.recorder.entries[stage.before :] if isinstance(entry, ToolCallResponse)]
    assert [entry.request for entry in recorded] == [stage.calls[2].id, stage.calls[0].id, stage.calls[1].id]
    assert (recorded[0].duration_ms, recorded[0].facts) == (7, Facts(path="2.py"))
    assert stage.screen.results == ["tool2: ok", "tool0: ok", "tool1: ok"]
    assert stage.screen.entries == recorded

    sent = list(in_wire_order(project(stage.recorder.entries, StatusLineFormatter()).events))
    called = [event for event in sent if isinstance(event, WireCall)]
    answered = [event for event in sent if isinstance(event, WireResult)]
    assert [event.wire_id for event in called] == [event.wire_id for event in answered]
    assert len({event.wire_id for event in called}) == 3
    assert [event.content for event in answered] == [(TextBlock(text=f"result {number}"),) for number in range(3)]


def test_a_question_and_its_answer_are_recorded_and_shown() -> None:
    stage = Stage(1)
    answer = Answer(value=True, by="assistant", model="script/m", usage=Usage(input=3))
    inquired = QuestionAnswered(call=stage.calls[0], question=QUESTION, answer=answer)

    stage.play(Played(inquired, stage.outcome(0)))

    asked, answered, _ = stage.recorder.entries[stage.before :]
    assert isinstance(asked, InquiryRequest)
    assert (asked.request, asked.question) == (stage.calls[0].id, QUESTION)
    assert isinstance(answered, InquiryResponse)
    assert (answered.request, answered.answer, answered.answered_by) == (asked.id, True, "assistant")
    assert (answered.model, answered.usage) == ("script/m", Usage(input=3))
    assert stage.screen.inquiries == ["tool0: Overwrite it? True"]
    assert kinds(stage.screen.entries) == ["inquiry_request", "inquiry_response", "tool_call_response"]


def test_how_far_a_call_is_is_shown_and_not_recorded() -> None:
    stage = Stage(1)

    stage.play(Played(CallProgress(call=stage.calls[0], text="half"), stage.outcome(0)))

    assert stage.screen.progress == ["tool0: half"]
    assert kinds(stage.recorder.entries[stage.before :]) == ["tool_call_response"]


def test_what_was_denied_is_told_apart_from_what_nobody_answered() -> None:
    stage = Stage(2)
    unanswered = CallOutcome(call=stage.calls[1], output=ToolOutput(content=()), duration_ms=1, denied=True)

    run = stage.play(Played(stage.outcome(0, denied=True), unanswered))

    assert (run.denied, run.unanswered) == (["tool0"], ["tool1"])


def test_a_call_that_copies_a_marker_is_answered_and_not_handed_over() -> None:
    stage = Stage(2, arguments={"text": marker(NONCE, "0123abcd", 900)})
    tools = Played()

    stage.play(tools)

    assert tools.called == []
    assert [response.is_error for response in stage.responses().values()] == [True, True]


@pytest.mark.parametrize("failure", [JpError("the disk is full"), ZeroDivisionError()])
def test_where_the_tools_fail_every_call_is_answered_by_what_may_have_happened(failure: Exception) -> None:
    stage = Stage(3)

    with pytest.raises(type(failure)):
        stage.play(Played(stage.outcome(0), CallStarted(call=stage.calls[1]), failure))

    finished, started, waiting = (stage.responses()[call.id] for call in stage.calls)
    assert finished.content == (TextBlock(text="result 0"),)
    assert (started.content, started.is_error) == (INTERRUPTED_CONTENT, True)
    assert (waiting.content, waiting.is_error) == (NOT_STARTED_CONTENT, True)
