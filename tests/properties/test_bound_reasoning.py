"""Reasoning that a vendor binds to its prefix: nothing of it is lost unannounced, and what is valid is sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from conversations import sampled_conversations
from counting import count_calls
from doubles import FakeClock, MemoryRecorder, Screen
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.overlays import compactions_in_force
from jp.config.model import LlmConfig
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    CycleEnd,
    Digests,
    Revert,
    SummaryPolicy,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import TextBlock
from jp.conversation.thread import AssistantReasoning, Parameters, ToolDefinition
from jp.conversation.turns import undone
from jp.provider.registry import create_adapter
from jp.tool.base import CallOutcome, CallStarted, ToolEvent, ToolOutput
from jp.turn.bound_reasoning import BoundRenderer, render_bound
from jp.turn.loop import TurnLoop
from jp.turn.machine import Limits, RetryPolicy
from jp.turn.ports import Recorder, TurnPorts
from jp.turn.request import (
    InlineLoader,
    RequestSettings,
    ThreadBuilder,
    build_thread,
    context_entry,
    digests_of,
)
from prefix_server import BLANK, CheckedProvider, PrefixServer

MODELS = {
    "claude-fable-5-1": "anthropic",
    "claude-fable-5-2": "anthropic",
    "claude-opus-5-5": "anthropic",
    "claude-opus-5": "anthropic",
    "gpt-6.2-sol": "openai",
}


class LongTools:
    """Every tool returns a long text."""

    definitions = tuple(
        ToolDefinition(name=name, description="Read.", parameters={"type": "object"}) for name in ("list", "read")
    )

    async def run(self, calls: Sequence[ToolCallRequest], stream: Recorder, tell: Callable[[ToolEvent], None]) -> None:
        for call in calls:
            tell(CallStarted(call=call))
            content = (TextBlock(text=f"{call.id} " + "long line\n" * 80),)
            tell(
                CallOutcome(call=call, output=ToolOutput(content=content, is_error=False), duration_ms=1, denied=False)
            )


class World:
    """One conversation, with the servers of both vendors."""

    def __init__(self, *, refuses: bool, entries: Sequence[AnyEntry] = ()) -> None:
        self.recorder = MemoryRecorder(entries)
        self.screen = Screen()
        self.servers = {"anthropic": PrefixServer("anthropic"), "openai": PrefixServer("openai")}
        self.providers = {name: CheckedProvider(server, refuses=refuses) for name, server in self.servers.items()}
        self.renderers = {name: BoundRenderer(provider) for name, provider in self.providers.items()}
        self.model = "claude-fable-5-1"
        self.system: tuple[str, ...] = ("Be brief.",)
        self.effort: Any = "high"

    @property
    def settings(self) -> RequestSettings:
        provider = self.providers[MODELS[self.model]]
        return RequestSettings(
            provider=provider.id,
            model=self.model,
            renderer=provider.renderer,
            system=self.system,
            tools=LongTools.definitions,
            parameters=Parameters(reasoning=self.effort),
        )

    def turn(self, moves: Sequence[Sequence[str]], text: str = "Go on.") -> None:
        provider = self.providers[MODELS[self.model]]
        self.servers[provider.id].moves = list(moves)
        ports = TurnPorts(
            provider=provider,
            recorder=self.recorder,
            renderer=self.screen,
            tools=LongTools(),
            clock=FakeClock(),
            status_formatter=StatusLineFormatter(),
        )
        retry = RetryPolicy(max_retries=0, base_seconds=0.0, max_seconds=0.0)
        loop = TurnLoop(ports, self.settings, limits=Limits(), retry=retry)
        outcome = anyio.run(loop.run, ChatRequest(content=text))
        assert outcome.error is None

    def append(self, entry: AnyEntry) -> None:
        self.recorder.append(entry)

    def turns(self) -> list[TurnStart]:
        gone = undone(self.recorder.entries)
        return [entry for entry in self.recorder.entries if isinstance(entry, TurnStart) and entry.id not in gone]

    def compact(self, last: int, **policies: Any) -> None:
        self.append(Compaction(from_turn=0, to_turn=last, **policies))

    def reset(self) -> None:
        if overlays := compactions_in_force(self.recorder.entries):
            self.append(Revert(entries=(overlays[-1].id,)))

    def undo(self) -> None:
        if turns := self.turns():
            self.append(Revert(entries=(turns[-1].id,)))

    @property
    def lost(self) -> list[Any]:
        return [lost for server in self.servers.values() for lost in server.lost]

    def assert_nothing_more_would_be_taken(self) -> None:
        """Each piece that is withheld would be refused if it were sent beside those that are."""
        provider = self.providers[MODELS[self.model]]
        server = self.servers[provider.id]
        entries = self.recorder.entries
        more = (*entries, TurnStart(id="next-turn"), ChatRequest(id="next", content="And now?"))
        thread = build_thread(more, self.settings, loader=InlineLoader(), status_formatter=StatusLineFormatter())
        rendered = self.renderers[provider.id].render(thread, entries)
        assert rendered == render_bound(create_adapter(LlmConfig(), provider.id, kind=provider.id), thread, entries)
        assert server.check(msgspec.json.decode(msgspec.json.encode(rendered.wire.body))) == []
        for origin in rendered.withheld:
            absent = {other for other in rendered.withheld if other != origin}
            events = tuple(
                event
                for event in thread.events
                if not (isinstance(event, AssistantReasoning) and event.origin in absent)
            )
            body = provider.render(msgspec.structs.replace(thread, events=events)).body
            assert server.check(msgspec.json.decode(msgspec.json.encode(body))) != []


POLICIES: Sequence[dict[str, Any]] = (
    {"tool_calls": ToolCallPolicy(policy="strip", request=True, response=True)},
    {"tool_calls": ToolCallPolicy(policy="strip", response=True)},
    {"tool_calls": ToolCallPolicy(policy="digest", request=True, response=True)},
    {"tool_calls": ToolCallPolicy(policy="omit")},
    {"reasoning": "strip"},
    {"summary": SummaryPolicy(text="What was done.")},
    {"to_cycle": 0, "tool_calls": ToolCallPolicy(policy="strip", response=True)},
)
answers = st.lists(
    st.sampled_from(((), ("read",), ("read", "list"), ("", "read"), (BLANK, "read", "list"))), max_size=4
)
steps = st.one_of(
    st.tuples(st.just("turn"), answers),
    st.tuples(st.just("turn"), answers),
    st.tuples(st.just("model"), st.sampled_from(tuple(MODELS))),
    st.tuples(st.just("compact"), st.integers(0, 4), st.sampled_from(POLICIES)),
    st.tuples(st.just("reset")),
    st.tuples(st.just("undo")),
    st.tuples(st.just("system"), st.sampled_from(("Be brief.", "Be long."))),
    st.tuples(st.just("effort"), st.sampled_from(("low", "high"))),
)


def take(world: World, step: tuple[Any, ...]) -> None:
    match step:
        case ("turn", moves):
            world.turn(moves)
        case ("model", name):
            world.model = name
        case ("compact", last, policies):
            world.compact(last, **policies)
        case ("reset",):
            world.reset()
        case ("undo",):
            world.undo()
        case ("system", text):
            world.system = (text,)
        case ("effort", level):
            world.effort = level
        case _:
            raise AssertionError(step)


@given(refuses=st.booleans(), story=st.lists(steps, min_size=2, max_size=14))
def test_nothing_is_dropped_or_refused_and_all_that_is_valid_is_sent(
    *, refuses: bool, story: list[tuple[Any, ...]]
) -> None:
    world = World(refuses=refuses)
    world.turn([("read",), ("read", "list")])
    for step in story:
        take(world, step)

        assert world.lost == []
        world.assert_nothing_more_would_be_taken()
    world.turn([])
    assert world.lost == []


@pytest.mark.parametrize("refuses", [False, True], ids=["drops", "refuses"])
@pytest.mark.parametrize("model", ["claude-fable-5-2", "gpt-6.2-sol"])
def test_no_reasoning_of_the_shared_conversations_is_lost_unannounced(model: str, *, refuses: bool) -> None:
    for conversation in sampled_conversations(12):
        world = World(refuses=refuses)
        world.model = model
        for number, (text, moves) in enumerate(shape_of(conversation.entries)):
            world.turn(moves, text=text)
            if number % 3 == 2:
                world.compact(number - 1, tool_calls=ToolCallPolicy(policy="digest", request=True, response=True))
        world.turn([])

        ends = [entry for entry in world.recorder.entries if isinstance(entry, CycleEnd)]
        assert world.lost == [], conversation.name
        assert all(not end.input_changes for end in ends)
        assert sum(server.sent[-1] for server in world.servers.values() if server.sent) > 0


def shape_of(entries: Sequence[AnyEntry]) -> list[tuple[str, list[Sequence[str]]]]:
    """The first turns of a conversation: what was asked, and how many calls its cycles made."""
    found: list[tuple[str, list[Sequence[str]]]] = []
    calls = 0
    for entry in entries:
        match entry:
            case ChatRequest():
                found.append((entry.content[:500] or "?", []))
            case ToolCallRequest():
                calls += 1
            case ToolCallResponse() if calls and found:
                found[-1][1].append(("read",) * min(calls, 3))
                calls = 0
            case _:
                pass
    return [(text, moves[:12]) for text, moves in found[:8]]


def test_after_a_compaction_what_came_later_keeps_its_reasoning() -> None:
    world = World(refuses=True)
    world.turn([("read",)] * 3)
    world.compact(0, tool_calls=ToolCallPolicy(policy="strip", response=True))
    world.turn([("read",)] * 2)
    world.turn([])

    server = world.servers["anthropic"]
    assert server.sent == [0, 1, 2, 3, 1, 2, 3, 4]
    assert world.screen.notices == [
        "3 pieces of earlier reasoning not sent: what came before has changed, and the provider checks that"
    ]
    withheld = [entry.withheld for entry in world.recorder.entries if isinstance(entry, CycleEnd)]
    assert withheld == [0, 0, 0, 0, 3, 3, 3, 3]


def test_an_undone_compaction_gives_the_reasoning_back() -> None:
    world = World(refuses=True)
    world.turn([("read",)] * 3)
    world.compact(0, tool_calls=ToolCallPolicy(policy="strip", response=True))
    world.turn([])
    world.reset()
    world.turn([])

    assert world.servers["anthropic"].sent == [0, 1, 2, 3, 1, 4]
    assert world.lost == []


def test_a_model_that_reads_another_is_given_its_reasoning_and_any_other_is_not() -> None:
    world = World(refuses=True)
    world.model = "claude-opus-5-5"
    world.turn([("read",)])
    world.model = "claude-fable-5-1"
    world.turn([])
    world.model = "claude-fable-5-2"
    world.turn([])

    server = world.servers["anthropic"]
    assert server.sent == [0, 1, 2, 0]
    assert "thought" not in msgspec.json.encode(server.bodies[-1]["messages"]).decode()
    assert world.lost == []


def test_another_system_prompt_takes_the_reasoning_away() -> None:
    world = World(refuses=True)
    world.turn([("read",)])
    world.system = ("Be long.",)
    world.turn([])

    assert world.servers["anthropic"].sent == [0, 1, 0]
    assert world.lost == []


def test_words_between_two_pieces_of_an_answer_change_nothing_and_a_stripped_call_does() -> None:
    world = World(refuses=True)
    world.turn([("", BLANK, "read", "list")])
    world.turn([])
    assert world.servers["anthropic"].sent == [0, 4, 5]

    world.compact(0, tool_calls=ToolCallPolicy(policy="strip", request=True))
    world.turn([])

    assert world.servers["anthropic"].sent[-1] == 3
    assert world.lost == []


def test_a_log_that_says_nothing_of_its_requests_proves_nothing() -> None:
    world = World(refuses=True)
    world.turn([("read",)])
    entries = [
        msgspec.structs.replace(entry, digests=Digests()) if isinstance(entry, CycleEnd) else entry
        for entry in world.recorder.entries
    ]
    other = World(refuses=True, entries=entries)
    other.turn([])

    assert other.servers["anthropic"].sent == [0]


def test_a_fork_without_the_first_requests_proves_only_what_it_has_all_hashes_of() -> None:
    world = World(refuses=True)
    world.turn([("read",)])
    world.turn([("read",)])
    entries = list(world.recorder.entries)
    first = next(number for number, entry in enumerate(entries) if isinstance(entry, CycleEnd))
    rest = [entry for number, entry in enumerate(entries) if number > first or not isinstance(entry, CycleEnd)]
    other = World(refuses=True, entries=rest)
    other.turn([])

    assert other.servers["anthropic"].sent == [0]
    assert other.lost == []


@pytest.mark.parametrize("vendor", ["anthropic", "openai"])
def test_a_cycle_of_a_turn_that_withholds_reasoning_reads_and_renders_what_it_adds(vendor: str) -> None:
    world = World(refuses=True)
    world.model = next(name for name, provider in MODELS.items() if provider == vendor)
    world.turn([("read", "list")])
    world.turn([("read",)] * 12)
    world.compact(0, tool_calls=ToolCallPolicy(policy="strip", response=True))
    adapter = create_adapter(LlmConfig(), vendor, kind=vendor)
    threads, renderer = ThreadBuilder(InlineLoader(), StatusLineFormatter()), BoundRenderer(adapter)
    entries: list[AnyEntry] = [*world.recorder.entries, TurnStart(id="t"), ChatRequest(id="q", content="Go on.")]
    context = replace(context_entry(world.settings), provider=adapter.id)
    thought = next(entry for entry in entries if isinstance(entry, ChatResponse) and entry.reasoning)
    counts: list[int] = []
    withheld: list[int] = []

    def prepare() -> None:
        rendered = renderer.render(threads.build(entries, world.settings), entries)
        withheld.append(len(rendered.withheld))
        digests.append(digests_of(rendered.wire.sections, ()))

    entries.append(context)
    for cycle in range(60):
        digests: list[Digests] = []
        counts.append(count_calls(prepare))
        call = ToolCallRequest(id=f"c{cycle}", call_id=f"c{cycle}", name="read", arguments={"n": cycle})
        end = CycleEnd(id=f"e{cycle}", attempt=1, finish="tools", digests=digests[0])
        result = ToolCallResponse(id=f"r{cycle}", request=call.id, content=(TextBlock(text="ok"),))
        entries += [replace(thought, id=f"t{cycle}"), call, end, result]

    assert min(withheld) == max(withheld) > 12
    assert max(counts[50:]) <= 1.1 * max(counts[8:18]), counts
