from __future__ import annotations

import itertools

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from doubles import (
    C,
    EchoTools,
    FakeClock,
    MemoryRecorder,
    Screen,
    ScriptedProvider,
    Step,
    answer,
    call,
    kinds,
    messages,
)
from jp.compaction.status_lines import INSIST, PlainStatusFormatter
from jp.conversation.entries import ChatRequest, CycleEnd, Header, RequestContext, ToolCallResponse, TurnStart, Usage
from jp.conversation.resource import INTERRUPTED_CONTENT, NOT_STARTED_CONTENT, Block, Resource
from jp.conversation.thread import (
    AssistantReasoning,
    AssistantText,
    Parameters,
    Thread,
    ToolDefinition,
    ToolResult,
    UserText,
)
from jp.errors import StorageError
from jp.provider.base import (
    BlockEnd,
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
)
from jp.provider.errors import ProviderError
from jp.turn.loop import TurnLoop, TurnOutcome
from jp.turn.machine import Limits, RetryPolicy
from jp.turn.ports import TurnPorts
from jp.turn.request import RequestSettings

SETTINGS = RequestSettings(provider="scripted", model="m", renderer=1, system=("Be brief.",))


class Stage:
    """A turn with its doubles."""

    def __init__(
        self, *answers: list[Step], tools: EchoTools | None = None, recorder: MemoryRecorder | None = None
    ) -> None:
        self.provider = ScriptedProvider(*answers)
        self.recorder = recorder or MemoryRecorder()
        self.screen = Screen()
        self.clock = FakeClock()
        self.tools = tools or EchoTools()

    def turn(self, *, settings: RequestSettings = SETTINGS, max_cycles: int = 50) -> TurnLoop:
        ports = TurnPorts(
            provider=self.provider,
            recorder=self.recorder,
            renderer=self.screen,
            tools=self.tools,
            clock=self.clock,
            status_formatter=PlainStatusFormatter(),
        )
        return TurnLoop(ports, settings, limits=Limits(max_cycles=max_cycles), retry=RetryPolicy(max_retries=2))

    def play(self, *, settings: RequestSettings = SETTINGS, max_cycles: int = 50) -> TurnOutcome:
        turn = self.turn(settings=settings, max_cycles=max_cycles)
        return anyio.run(turn.run, ChatRequest(content="Hi"))

    def ends(self) -> list[CycleEnd]:
        return [entry for entry in self.recorder.entries if isinstance(entry, CycleEnd)]


def shifted(steps: list[Step]) -> list[Step]:
    """The parts of a block behind another one."""
    blocks = (TextDelta, BlockEnd, ToolCallStart, ToolArgumentsDelta)
    return [replace(step, index=1) if isinstance(step, blocks) else step for step in steps]


def overloaded() -> ProviderError:
    return ProviderError("overloaded", kind="transient")


def test_an_answer_is_shown_and_recorded() -> None:
    stage = Stage([UsageReport(Usage(input=3, output=1)), *answer("Hello")])

    outcome = stage.play()

    assert (outcome.ending, outcome.usage) == ("answered", Usage(input=3, output=1))
    assert stage.screen.shown == "Hello"
    assert kinds(stage.recorder.entries) == [
        "turn_start",
        "chat_request",
        "request_context",
        "chat_response",
        "cycle_end",
    ]
    assert stage.screen.entries == stage.recorder.entries[1:]
    assert stage.screen.is_closed


def test_the_request_is_recorded_before_the_provider_is_called() -> None:
    seen: list[list[str]] = []
    stage = Stage([])
    stage.provider = ScriptedProvider([lambda: seen.append(kinds(stage.recorder.entries)), *answer("Hello")])

    stage.play()

    assert seen == [["turn_start", "chat_request", "request_context"]]


def test_a_call_that_copies_a_marker_does_not_run_and_the_others_do() -> None:
    header = Header(id="header", format=1, created_at="", nonce="5eed5eed")
    copied = '{"text":"def f():[[cut:5eed5eed:0123abcd:+900]]"}'
    stage = Stage(call(copied, '{"b":2}'), call(copied), answer("Done"), recorder=MemoryRecorder([header]))

    assert stage.play().ending == "answered"

    responses = [entry for entry in stage.recorder.entries if isinstance(entry, ToolCallResponse)]
    assert [response.is_error for response in responses] == [True, False, True]
    assert stage.screen.results == ["echo: error", "echo: ok", "echo: error"]
    results = [event for event in stage.provider.threads[1].events if isinstance(event, ToolResult)]
    assert [result.call_id for result in results] == ["call-0", "call-1"]


def test_calls_run_and_their_results_are_sent() -> None:
    stage = Stage(call('{"a":1}', '{"b":2}'), answer("Done"))

    outcome = stage.play()

    assert outcome.ending == "answered"
    assert kinds(stage.recorder.entries)[3:] == [
        "tool_call_request",
        "tool_call_request",
        "cycle_end",
        "tool_call_response",
        "tool_call_response",
        "chat_response",
        "cycle_end",
    ]
    results = [event for event in stage.provider.threads[1].events if isinstance(event, ToolResult)]
    assert [result.call_id for result in results] == ["call-0", "call-1"]
    assert stage.screen.results == ["echo: ok", "echo: ok"]


def test_a_denied_call_is_told_and_counted() -> None:
    stage = Stage(call("{}"), answer("Without it"), tools=EchoTools(deny=True))

    outcome = stage.play()

    assert (outcome.ending, outcome.denied) == ("answered", ("echo",))


def test_a_failed_attempt_is_retried_with_the_same_request() -> None:
    stage = Stage([overloaded()], [overloaded()], answer("Hello"))

    outcome = stage.play()

    assert outcome.ending == "answered"
    assert stage.provider.threads[0] == stage.provider.threads[1] == stage.provider.threads[2]
    assert [(end.attempt, end.finish, end.error) for end in stage.ends()] == [
        (1, "error", "transient"),
        (2, "error", "transient"),
        (3, "stop", None),
    ]
    assert stage.clock.waits == [1.0, 2.0]
    assert stage.screen.notices == ["overloaded; retry 1 of 2 in 1.0 s", "overloaded; retry 2 of 2 in 2.0 s"]


def test_retries_come_to_an_end() -> None:
    stage = Stage([overloaded()], [overloaded()], [overloaded()])

    outcome = stage.play()

    assert outcome.ending == "failed"
    assert outcome.error is not None
    assert outcome.error.kind == "transient"


def test_an_error_that_will_not_pass_is_not_retried() -> None:
    stage = Stage([ProviderError("no such key", kind="authentication")])

    assert stage.play().ending == "failed"
    assert stage.clock.waits == []


def test_a_message_that_was_cut_is_continued_and_never_started_over() -> None:
    stage = Stage(
        [TextDelta(0, "The answer is forty"), overloaded()],
        [overloaded()],
        [ReasoningDelta(0, "I must go on"), BlockEnd(0), *shifted(answer("The answer is forty-two."))],
    )

    outcome = stage.play()

    assert outcome.ending == "answered"
    assert stage.screen.shown == "The answer is forty-two."
    assert messages(stage.recorder.entries) == ["The answer is forty", "-two."]
    assert stage.screen.thought == ""
    assert stage.provider.threads[1].events == stage.provider.threads[2].events
    nudge = stage.provider.threads[1].events[-1]
    assert isinstance(nudge, UserText)
    assert nudge.synthetic


def test_a_message_at_its_length_is_continued_in_a_new_cycle() -> None:
    stage = Stage(answer("one two three", reason="length"), answer("one two three four"), answer("next"))

    stage.play()

    assert stage.screen.shown == "one two three four"
    assert [(end.attempt, end.finish) for end in stage.ends()] == [(1, "length"), (1, "stop")]


def test_a_model_that_answers_in_other_words_is_asked_again_and_then_it_is_a_failure() -> None:
    other: list[Step] = [TextDelta(0, "No: 42"), BlockEnd(0), UsageReport(Usage(output=3)), Finished("stop")]
    stage = Stage([TextDelta(0, "The answer is"), overloaded()], other, other)

    outcome = stage.play()

    assert outcome.ending == "failed"
    assert outcome.error is not None
    assert (outcome.error.message, int(outcome.error.exit_code)) == (
        "scripted did not continue the answer where it was cut",
        5,
    )
    assert stage.screen.shown == "The answer is"
    assert messages(stage.recorder.entries) == ["The answer is"]


def test_an_empty_continuation_is_none() -> None:
    stage = Stage([TextDelta(0, "The answer is"), overloaded()], [Finished("stop")], answer("The answer is 42"))

    assert stage.play().ending == "answered"
    assert messages(stage.recorder.entries) == ["The answer is", " 42"]


def test_white_space_alone_is_not_continued() -> None:
    stage = Stage([TextDelta(0, "\n\n"), overloaded()], answer("\n\n42"))

    assert stage.play().ending == "answered"
    assert stage.screen.shown == "\n\n42"
    assert messages(stage.recorder.entries) == ["\n\n42"]


NO_CALLS = replace(SETTINGS, tools=())
CALLS = replace(SETTINGS, tools=EchoTools().definitions)
WHOLE: list[Step] = [TextDelta(0, "1337"), BlockEnd(0), ProviderError("cut", kind="cut")]


def test_a_complete_message_is_an_answer_where_nothing_can_follow_it() -> None:
    stage = Stage(WHOLE)

    assert stage.play(settings=NO_CALLS).ending == "answered"
    assert messages(stage.recorder.entries) == ["1337"]
    assert [(end.finish, end.message_complete) for end in stage.ends()] == [("error", True)]
    assert stage.screen.notices == ["the connection broke after the answer had come to its end"]


@pytest.mark.parametrize("said", ["END", "1337", ""])
def test_nothing_is_added_to_a_complete_message_where_nothing_was_to_follow(said: str) -> None:
    stage = Stage(WHOLE, answer(said))

    assert stage.play(settings=CALLS).ending == "answered"
    assert stage.screen.shown == "1337"
    assert messages(stage.recorder.entries) == ["1337"]


def test_a_call_that_was_to_follow_a_complete_message_is_asked_for() -> None:
    begun: list[Step] = [*WHOLE[:2], ToolCallStart(1, "c", "echo"), WHOLE[2]]
    stage = Stage(begun, [TextDelta(0, "Now."), BlockEnd(0), *shifted(call("{}"))], answer("done"))

    assert stage.play(settings=CALLS).ending == "answered"
    assert messages(stage.recorder.entries) == ["1337", "Now.", "done"]
    assert stage.screen.results == ["echo: ok"]


def test_another_answer_behind_a_complete_one_is_a_failure() -> None:
    stage = Stage(WHOLE, answer("I think it is 1338"), answer("It is 7"))

    assert stage.play(settings=CALLS).ending == "failed"
    assert messages(stage.recorder.entries) == ["1337"]


def test_an_answer_that_is_final_is_not_continued() -> None:
    stage = Stage([TextDelta(0, "one two"), BlockEnd(0), Finished("length", is_final=True)])

    assert stage.play().ending == "capped"


def test_every_request_of_a_turn_starts_with_the_one_before() -> None:
    stage = Stage(
        [TextDelta(0, "Let me"), overloaded()],
        [TextDelta(9, "Let me look"), BlockEnd(9), *call('{"a":1}')],
        answer("It is", reason="length"),
        answer("It is done"),
    )

    stage.play()

    threads = [thread.events for thread in stage.provider.threads]
    assert len(threads) == 4
    for before, after in itertools.pairwise(threads):
        assert after[: len(before)] == before


def test_a_refusal_ends_the_turn() -> None:
    stage = Stage([TextDelta(0, "I can"), Finished("refused", "policy")])

    outcome = stage.play()

    assert (outcome.ending, outcome.detail) == ("refused", "policy")
    assert messages(stage.recorder.entries) == ["I can"]


def test_a_turn_stops_at_its_last_cycle() -> None:
    stage = Stage(call("{}"), call("{}"))

    assert stage.play(max_cycles=2).ending == "capped"
    assert kinds(stage.recorder.entries)[-1] == "tool_call_response"


def test_half_a_call_is_dropped_with_a_notice_and_ends_the_turn() -> None:
    stage = Stage([TextDelta(0, "x"), BlockEnd(0), ToolCallStart(1, "c", "echo"), Finished("length")])

    assert stage.play().ending == "capped"

    assert stage.screen.notices == ["a call of 'echo' was cut off and did not run"]


def test_the_context_is_recorded_when_it_changes_only() -> None:
    stage = Stage(answer("one"), answer("two"), answer("three"))
    stage.play()
    stage.play()
    stage.play(settings=RequestSettings(provider="scripted", model="other", renderer=1, system=("Be brief.",)))

    contexts = [entry for entry in stage.recorder.entries if isinstance(entry, RequestContext)]
    assert [context.model for context in contexts] == ["m", "other"]


def test_equal_parameters_are_the_same_context_wherever_they_were_read() -> None:
    read = msgspec.json.decode(b'{"tool_choice":"auto","cache":"short","stop_words":[]}', type=Parameters)
    stage = Stage(answer("one"), answer("two"))
    stage.play()
    stage.play(settings=replace(SETTINGS, parameters=read))

    assert sum(isinstance(entry, RequestContext) for entry in stage.recorder.entries) == 1


def test_a_forced_tool_is_forced_once() -> None:
    settings = RequestSettings(
        provider="scripted", model="m", renderer=1, parameters=Parameters(tool_choice="required")
    )
    stage = Stage(call("{}"), answer("Done"))

    stage.play(settings=settings)

    assert [thread.parameters.tool_choice for thread in stage.provider.threads] == ["required", "auto"]


FORCED = RequestSettings(
    provider="scripted",
    model="m",
    renderer=1,
    tools=(ToolDefinition(name="echo", description="Echo.", parameters={"type": "object"}),),
    parameters=Parameters(tool_choice="required"),
)


def words_of(thread: Thread) -> list[str]:
    return [event.text for event in thread.events if isinstance(event, UserText)]


def test_a_demanded_call_that_does_not_come_is_demanded_again() -> None:
    stage = Stage(answer("No."), answer("No, no."), call("{}"), answer("Done"))

    outcome = stage.play(settings=FORCED)

    assert outcome.ending == "answered"
    assert [words_of(thread) for thread in stage.provider.threads] == [
        ["Hi"],
        ["Hi", INSIST[0]],
        ["Hi", INSIST[0], INSIST[1]],
        ["Hi", INSIST[0], INSIST[1]],
    ]
    choices = [thread.parameters.tool_choice for thread in stage.provider.threads]
    assert choices == ["required", "required", "required", "auto"]
    assert stage.screen.notices == [
        f"the model called no tool, although it has to: asking again, {number} of 3" for number in (1, 2)
    ]


def test_a_demand_survives_a_failure() -> None:
    stage = Stage(answer("No."), [overloaded()], [TextDelta(0, "Wait, "), overloaded()], [*call("{}")], answer("Done"))

    assert stage.play(settings=FORCED).ending == "answered"
    assert [words_of(thread)[1:2] for thread in stage.provider.threads] == [[], *[[INSIST[0]]] * 4]


def test_a_model_that_never_calls_what_it_has_to_is_said_to() -> None:
    stage = Stage(*[answer("No.")] * 4)

    outcome = stage.play(settings=FORCED)

    assert (outcome.ending, outcome.cycles) == ("uncalled", 4)


def rejected() -> ProviderError:
    return ProviderError("messages.1.content.0: bad signature", kind="rejected_reasoning", status=400)


def reasoned(signature: str, *, model: str = "m") -> list[Step]:
    metadata = {"provider": "scripted", "model": model, "signature": signature}
    return [ReasoningDelta(0, f"thought {signature}"), BlockEnd(0, metadata), *answer("…")[1:]]


def thoughts_of(thread: Thread) -> list[tuple[str, bool]]:
    events = (event for event in thread.events if isinstance(event, AssistantReasoning))
    return [(event.text, event.metadata is not None) for event in events]


def thoughtful_log(*answers: list[Step]) -> MemoryRecorder:
    """A log in which each answer is a turn."""
    recorder = MemoryRecorder()
    for given in answers:
        Stage([*given[:2], TextDelta(1, "Well"), BlockEnd(1), Finished("stop")], recorder=recorder).play()
    return recorder


def test_reasoning_that_is_rejected_is_omitted_from_then_on() -> None:
    recorder = thoughtful_log(reasoned("a"), reasoned("b"))
    first = Stage([rejected()], answer("Hello"), recorder=recorder)
    first.provider.located = (recorder.entries[4].id,)

    assert first.play().ending == "answered"
    second = Stage(answer("Hello again"), recorder=recorder)
    second.play()

    assert thoughts_of(first.provider.threads[0]) == [("thought a", True), ("thought b", True)]
    assert thoughts_of(first.provider.threads[1]) == [("thought a", False), ("thought b", True)]
    assert thoughts_of(second.provider.threads[0]) == [("thought a", False), ("thought b", True)]
    assert len(first.screen.notices) == 1
    assert first.clock.waits == []
    ends = [(end.attempt, end.error, end.rejected) for end in first.ends()[-3:-1]]
    assert ends == [(1, "rejected_reasoning", (recorder.entries[4].id,)), (2, None, ())]


def test_reasoning_that_is_rejected_without_a_place_is_all_omitted_but_another_model_s() -> None:
    recorder = thoughtful_log(reasoned("a"), reasoned("b"), reasoned("c", model="other"))
    stage = Stage([rejected()], answer("Hello"), recorder=recorder)

    assert stage.play().ending == "answered"
    left = [("thought a", False), ("thought b", False), ("thought c", True)]
    assert thoughts_of(stage.provider.threads[1]) == left


def test_signatures_of_messages_are_rejected_as_those_of_thoughts() -> None:
    recorder = MemoryRecorder()
    made = {"provider": "scripted", "model": "m", "signature": "s"}
    Stage([TextDelta(0, "Well"), BlockEnd(0, made), Finished("stop")], recorder=recorder).play()
    stage = Stage([rejected()], answer("Hello"), recorder=recorder)

    assert stage.play().ending == "answered"
    said = [
        [event.metadata for event in thread.events if isinstance(event, AssistantText)]
        for thread in stage.provider.threads
    ]
    assert said == [[made], [None]]


def test_a_second_rejection_leaves_out_all_and_a_third_ends_the_turn() -> None:
    recorder = thoughtful_log(reasoned("a"), reasoned("b"))
    stage = Stage([rejected()], [rejected()], [rejected()], recorder=recorder)
    stage.provider.located = (recorder.entries[4].id,)

    outcome = stage.play()

    assert outcome.ending == "failed"
    assert outcome.error is not None
    assert thoughts_of(stage.provider.threads[1]) == [("thought a", False), ("thought b", True)]
    assert thoughts_of(stage.provider.threads[2]) == [("thought a", False), ("thought b", False)]


def test_a_rejection_costs_no_retry() -> None:
    recorder = thoughtful_log(reasoned("a"))
    stage = Stage([rejected()], [overloaded()], [overloaded()], answer("Hello"), recorder=recorder)

    assert stage.play().ending == "answered"
    assert len(stage.clock.waits) == 2


def test_what_a_cancelled_answer_brought_is_in_the_log() -> None:
    stage = Stage()

    async def play() -> None:
        with anyio.CancelScope() as scope:
            stage.provider = ScriptedProvider([TextDelta(0, "Half an"), scope.cancel, TextDelta(0, "never")])
            await stage.turn().run(ChatRequest(content="Hi"))

    anyio.run(play)

    assert messages(stage.recorder.entries) == ["Half an"]
    assert [end.finish for end in stage.ends()] == ["cancelled"]
    assert stage.screen.is_closed


@pytest.mark.parametrize(
    ("tools", "content"),
    [(EchoTools(hang=True), INTERRUPTED_CONTENT), (EchoTools(ask=True), NOT_STARTED_CONTENT)],
    ids=["running", "asked about"],
)
def test_a_turn_that_is_cancelled_while_tools_run_leaves_no_call_open(
    tools: EchoTools, content: tuple[Block, ...]
) -> None:
    stage = Stage(call('{"a":1}', '{"b":2}', '{"c":3}'), tools=tools)

    async def play() -> None:
        async with anyio.create_task_group() as group:

            async def run() -> None:
                await stage.turn().run(ChatRequest(content="Hi"))

            group.start_soon(run)
            while len(stage.screen.results) == 0:
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    anyio.run(play)

    responses = [entry for entry in stage.recorder.entries if isinstance(entry, ToolCallResponse)]
    assert [response.is_error for response in responses] == [False, True, True]
    assert [response.content for response in responses[1:]] == [content, NOT_STARTED_CONTENT]


@pytest.mark.parametrize("fails_at", range(1, 9))
def test_a_full_disk_ends_the_turn_and_what_was_written_stays(fails_at: int) -> None:
    recorder = MemoryRecorder(failure=StorageError("the disk is full"), fails_at=fails_at)
    stage = Stage(call("{}"), answer("Done"), recorder=recorder)

    with pytest.raises(StorageError, match="the disk is full"):
        stage.play()

    whole = Stage(call("{}"), answer("Done"))
    whole.play()
    assert recorder.entries == whole.recorder.entries[:fails_at]


def test_a_reader_that_goes_away_costs_no_text() -> None:
    class Pipe(Screen):
        def text(self, text: str) -> None:
            raise BrokenPipeError

    stage = Stage(answer("Hello"))
    stage.screen = Pipe()

    with pytest.raises(BrokenPipeError):
        stage.play()

    assert messages(stage.recorder.entries) == ["Hello"]


class LostContent(MemoryRecorder):
    """A log whose blobs are gone."""

    def load(self, carrier: C, /) -> C:
        raise StorageError(f"blob {carrier.sha256!r} is missing")


def test_where_earlier_content_is_lost_nothing_is_written() -> None:
    attached = Resource(uri="file:///a.txt", sha256="0" * 64, size=5000, chars=5000, lines=1)
    entries = [TurnStart(id="t"), ChatRequest(id="r", content="What is this?", resources=(attached,))]
    stage = Stage(answer("Hello"), recorder=LostContent(entries))

    with pytest.raises(StorageError, match="is missing"):
        stage.play()

    assert stage.recorder.entries == entries
    assert stage.provider.threads == []
