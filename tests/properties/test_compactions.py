"""What holds for compactions that are planned, applied and undone, over random streams."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import streams
from counting import count_calls
from jp.app.compaction.summarizer import texts_of
from jp.app.settings import layers_from
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.overlays import (
    AtTurn,
    BeforeLast,
    KeepTokens,
    KeepTurns,
    RangeRequest,
    SinceCompaction,
    compactions_in_force,
)
from jp.compaction.planning import Planner, PolicyRequest, ResultObserver
from jp.compaction.projection import TurnOrigin, project
from jp.compaction.transcript import transcript_of
from jp.config.entries import ToolCompactionConfig, ToolConfig
from jp.context.budget import estimate_messages
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    Compaction,
    ConfigDelta,
    Revert,
    SummaryPolicy,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    decode,
    encode,
)
from jp.conversation.resource import TextBlock
from jp.conversation.thread import AssistantReasoning, ToolResult
from jp.conversation.turns import divide
from jp.provider.anthropic.request import render
from jp.turn.request import RequestSettings, SchemaReader, build_thread, context_in_force
from logs import log, whole_turn
from streams import Blobs

Entries = tuple[AnyEntry, ...]
SETTINGS = RequestSettings(provider="anthropic", model="claude-haiku-4-5", renderer=1)
NEXT = (TurnStart(id="next-turn"), ChatRequest(id="next-request", content="And now?"))
HINTS = {"run": ToolConfig(compaction=ToolCompactionConfig(request="keep"))}

any_streams = streams.any_streams()
strips = st.builds(
    ToolCallPolicy, policy=st.sampled_from(("strip", "omit")), request=st.booleans(), response=st.booleans()
)
wishes = st.builds(
    PolicyRequest,
    reasoning=st.booleans(),
    tools=st.none() | strips,
    resources=st.booleans(),
    summary=st.booleans(),
)
ranges = st.builds(
    RangeRequest,
    start=st.sampled_from((None, AtTurn(0), AtTurn(1), BeforeLast(1), SinceCompaction())),
    end=st.sampled_from((None, AtTurn(1), BeforeLast(0))),
    keep_first=st.sampled_from((KeepTurns(0), KeepTurns(1))),
    keep_last=st.sampled_from((KeepTurns(0), KeepTurns(1), KeepTokens(100))),
)


def tokens(entries: Entries) -> int:
    return estimate_messages(transcript_of(project(entries, StatusLineFormatter()), entries).messages)


def request(entries: Entries) -> bytes:
    """The body of the next request."""
    thread = build_thread((*entries, *NEXT), SETTINGS, loader=Blobs(), status_formatter=StatusLineFormatter())
    return msgspec.json.encode(render(thread).body)


def stamped(overlays: tuple[Compaction, ...]) -> Entries:
    return tuple(replace(overlay, id=f"zz{number}") for number, overlay in enumerate(overlays))


@given(any_streams, wishes, ranges)
def test_every_overlay_that_is_planned_makes_the_view_smaller(
    entries: Entries, wish: PolicyRequest, bounds: RangeRequest
) -> None:
    planner = Planner(entries, StatusLineFormatter(), HINTS, now=0.0)
    plan = planner.plan(wish, bounds)

    sizes = [tokens((*entries, *plan.overlays[:count])) for count in range(len(plan.overlays) + 1)]
    assert sizes == sorted(set(sizes), reverse=True)
    effect = planner.effect(plan.overlays)
    assert (effect.before, effect.after) == (sizes[0], sizes[-1])
    assert effect.untouched <= min(sizes)
    assert planner.plan(wish, bounds) == plan
    turns = range(len(divide(entries).turns))
    assert all(one.from_turn in turns and one.to_turn in turns for one in plan.overlays)


@given(any_streams, wishes, ranges)
def test_what_was_planned_means_the_same_once_it_is_in_the_log(
    entries: Entries, wish: PolicyRequest, bounds: RangeRequest
) -> None:
    overlays = Planner(entries, StatusLineFormatter(), HINTS, now=0.0).plan(wish, bounds).overlays
    written = tuple(decode(encode(overlay)) for overlay in stamped(overlays))

    assert project((*entries, *written), StatusLineFormatter()) == project((*entries, *overlays), StatusLineFormatter())


@given(streams.streams(), streams.streams())
def test_undoing_all_compactions_gives_back_the_request_of_before_byte_for_byte(
    entries: Entries, others: Entries
) -> None:
    plain = tuple(entry for entry in entries if not isinstance(entry, Compaction))
    more = stamped(tuple(entry for entry in others if isinstance(entry, Compaction)))
    compacted = (*entries, *more)
    reset = Revert(id="zu", entries=tuple(overlay.id for overlay in compactions_in_force(compacted)))

    assert request((*compacted, reset)) == request(plain)


@given(streams.streams(), streams.streams())
def test_compactions_change_no_settings_and_no_turns(entries: Entries, others: Entries) -> None:
    delta = ConfigDelta(id="zd", delta={"assistant": {"model": {"id": "a/b"}}})
    plain = (*(entry for entry in entries if not isinstance(entry, Compaction)), delta)
    all_of_it = Compaction(from_turn=0, to_turn=99, summary=SummaryPolicy(text="It happened."))
    more = (all_of_it, *(entry for entry in others if isinstance(entry, Compaction)))
    compacted = (*plain, *stamped(more))

    assert layers_from({}, compacted, foreign=False) == layers_from({}, plain, foreign=False)
    assert context_in_force(compacted) == context_in_force(plain)
    assert SchemaReader().read(compacted) == SchemaReader().read(plain)
    assert divide(compacted).turns == divide(plain).turns


POLICIES = ("none", "reasoning", "omit", "responses", "summary")


@given(st.lists(st.sampled_from(POLICIES), min_size=1, max_size=8))
def test_each_policy_concerns_the_turns_of_its_own_range(policies: list[str]) -> None:
    turns = [entry for number in range(len(policies)) for entry in whole_turn(number)]
    overlays = [overlay(number, policy) for number, policy in enumerate(policies) if policy != "none"]

    view = project(log(*turns, *reversed(overlays)), StatusLineFormatter())

    assert len(view.turns) == len(policies)
    for number, (policy, turn) in enumerate(zip(policies, view.turns, strict=True)):
        assert (turn.origin == TurnOrigin(number)) is (policy != "summary")
        assert any(isinstance(event, AssistantReasoning) for event in turn.events) is (
            policy not in {"reasoning", "summary"}
        )
        results = [event for event in turn.events if isinstance(event, ToolResult)]
        assert len(results) == (policy not in {"omit", "summary"})
        assert all(("[compacted]" in str(result.content)) is (policy == "responses") for result in results)


def overlay(number: int, policy: str) -> Compaction:
    plain = Compaction(from_turn=number, to_turn=number)
    match policy:
        case "reasoning":
            return replace(plain, reasoning="strip")
        case "omit":
            return replace(plain, tool_calls=ToolCallPolicy(policy="omit"))
        case "responses":
            return replace(plain, tool_calls=ToolCallPolicy(policy="strip", response=True))
        case _:
            return replace(plain, summary=SummaryPolicy(text=f"what happened in {number}"))


@given(any_streams, st.lists(st.integers(0, 12), max_size=12), any_streams)
def test_what_was_observed_of_a_log_that_grows_is_what_is_observed_of_the_whole(
    entries: Entries, additions: list[int], others: Entries
) -> None:
    observer, known = ResultObserver(texts_of(Blobs())), 0

    for added in (*additions, len(entries)):
        known = min(known + added, len(entries))
        assert observer.observe(entries[:known]) == ResultObserver(texts_of(Blobs())).observe(entries[:known])
    assert observer.observe(others) == ResultObserver(texts_of(Blobs())).observe(others)


def test_only_what_is_new_in_a_log_is_observed() -> None:
    entries: list[AnyEntry] = [TurnStart(id="t")]
    observer = ResultObserver(texts_of(Blobs()))
    counts: list[int] = []

    for number in range(40):
        text = f"error: number {number} of /src/file{number}.py\n" * 30
        call = ToolCallRequest(id=f"c{number}", call_id="c", name="run", arguments={})
        entries += [call, ToolCallResponse(id=f"r{number}", request=call.id, content=(TextBlock(text=text),))]
        counts.append(count_calls(observer.observe, entries))

    assert len(observer.observe(entries)) == 40
    assert counts[39] - counts[29] <= 4 * 10  # the results are counted, and no text is read again
