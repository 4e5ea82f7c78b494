"""What was sent can be said from the log alone, whatever came of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import anyio
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from doubles import EchoTools, FakeClock, MemoryRecorder, Screen, ScriptedProvider, Step
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.overlays import forked_stream
from jp.conversation.entries import AnyEntry, ChatRequest, Compaction, Revert, TurnStart, decode, encode
from jp.conversation.forking import TurnRange
from jp.conversation.thread import Parameters
from jp.provider.base import (
    BlockEnd,
    Finished,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    WireRequest,
)
from jp.provider.errors import ProviderError
from jp.turn.loop import TurnLoop
from jp.turn.machine import Limits, RetryPolicy
from jp.turn.ports import TurnPorts
from jp.turn.request import InlineLoader, RequestSettings, digests_of
from jp.turn.sent import sent_requests, thread_of

ENDS = st.sampled_from(("stop", "tools", "length", "refused", "fails", "breaks", "misses"))


class RememberingProvider(ScriptedProvider):
    """Keeps what it was sent."""

    def __init__(self, *answers: Sequence[Step]) -> None:
        super().__init__(*answers)
        self.sent: list[WireRequest] = []

    def stream(self, request: WireRequest) -> AsyncGenerator[Part, None]:
        self.sent.append(request)
        return super().stream(request)


@st.composite
def answers(draw: st.DrawFn) -> list[Step]:
    kinds = draw(st.lists(st.sampled_from(("text", "reasoning", "call")), min_size=1, max_size=3))
    steps: list[Step] = []
    for index, kind in enumerate(kinds):
        match kind:
            case "text":
                steps.append(TextDelta(index, draw(st.sampled_from(("word ", "\n", "a longer answer, ")))))
            case "reasoning":
                steps.append(ReasoningDelta(index, "hm"))
            case _:
                steps += [ToolCallStart(index, "call", "echo"), ToolArgumentsDelta(index, '{"a":1}')]
        steps.append(BlockEnd(index))
    match draw(ENDS):
        case "fails":
            return [*steps, ProviderError("overloaded", kind="transient")]
        case "breaks":
            return [*steps[:-1], ProviderError("cut", kind="transient")]
        case "misses":
            return steps
        case reason:
            return [*steps, msgspec.convert({"reason": reason}, Finished)]


class Conversation:
    """Turn after turn with one log."""

    def __init__(self, *entries: AnyEntry) -> None:
        self.recorder = MemoryRecorder(entries)
        self.sent: list[tuple[int, WireRequest]] = []

    def take(self, number: int, coming: list[list[Step]], choice: str) -> None:
        provider = RememberingProvider(*coming, *([TextDelta(0, "end"), BlockEnd(0), Finished("refused")],) * 60)
        tools = EchoTools()
        settings = RequestSettings(
            provider="scripted",
            model=f"m{number % 2}",
            renderer=1,
            system=("Be brief.",) * (number % 2),
            tools=tools.definitions,
            parameters=Parameters(tool_choice=choice, temperature=0.5 if number else None),
        )
        ports = TurnPorts(
            provider=provider,
            recorder=self.recorder,
            renderer=Screen(),
            tools=tools,
            clock=FakeClock(),
            status_formatter=StatusLineFormatter(),
        )
        turn = TurnLoop(ports, settings, limits=Limits(max_cycles=5), retry=RetryPolicy(max_retries=2))
        anyio.run(turn.run, ChatRequest(content=f"question {number}"))
        self.sent += [(number, request) for request in provider.sent]


PLAN = st.lists(
    st.tuples(st.lists(answers(), min_size=1, max_size=4), st.sampled_from(("auto", "required")), st.booleans()),
    min_size=1,
    max_size=3,
)


Plan = list[tuple[list[list[Step]], str, bool]]


def played(plan: Plan) -> Conversation:
    """A conversation whose turns were all undone in the end."""
    conversation = Conversation()
    for number, (coming, choice, is_compacted) in enumerate(plan):
        conversation.take(number, coming, choice)
        if is_compacted:
            conversation.recorder.append(Compaction(from_turn=0, to_turn=number, reasoning="strip"))
    starts = tuple(entry.id for entry in conversation.recorder.entries if isinstance(entry, TurnStart))
    conversation.recorder.append(Revert(entries=starts))
    return conversation


def rebuilt(entries: Sequence[AnyEntry]) -> list[tuple[int, WireRequest]]:
    """What was sent, as a process says it that reads the log from disk; every request is checked against its hashes."""
    read = [decode(encode(entry)) for entry in entries]
    provider = ScriptedProvider()
    requests: list[tuple[int, WireRequest]] = []
    for sent in sent_requests(read):
        request = provider.render(thread_of(sent, read, loader=InlineLoader(), status_formatter=StatusLineFormatter()))
        assert digests_of(request.sections, ()) == sent.digests
        requests.append((sent.turn, request))
    return requests


@given(PLAN)
def test_every_request_can_be_made_anew_from_the_log(plan: Plan) -> None:
    conversation = played(plan)

    assert rebuilt(conversation.recorder.entries) == conversation.sent


@given(PLAN, st.data())
def test_a_fork_tells_what_was_sent_for_the_turns_that_it_has_and_then_what_it_sends(
    plan: Plan, data: st.DataObject
) -> None:
    source = played(plan)
    last = data.draw(st.integers(0, len(plan) - 1))
    forked = forked_stream(source.recorder.entries, TurnRange(first=0, last=last)).entries
    fork = Conversation(source.recorder.entries[0], *forked)
    fork.sent = [sent for sent in source.sent if sent[0] <= last]

    fork.take(last + 1, data.draw(st.lists(answers(), min_size=1, max_size=2)), "auto")

    assert rebuilt(fork.recorder.entries) == fork.sent
