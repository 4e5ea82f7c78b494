"""What a budget leaves of any conversation with tools."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jp.compaction.budgeting import Budgeting
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.log_contents import handles_of
from jp.compaction.overlays import RangeRequest
from jp.compaction.planning import Plan, Planner, requested_policies
from jp.compaction.projection import project
from jp.compaction.transcript import transcript_of
from jp.config.model import PROFILES
from jp.context.budget import estimate_messages
from jp.context.markers import checksum_of
from jp.context.types import Message, Transcript, texts_of
from jp.conversation.entries import AnyEntry, Compaction, Header, JsonObject, ToolCallRequest
from jp.conversation.turns import cycles_of, turns_of
from logs import ask, end, log, respond, say, start, think
from transcript_validator import complaints
from transcripts import OUTPUTS, SECRET

WISH = requested_policies(PROFILES["default"])
ALL = RangeRequest()
ARGUMENTS: tuple[JsonObject, ...] = (
    {},
    {"path": "a.py"},
    {"path": "a.py", "content": f"KEY={SECRET}\n" * 60},
    {"texts": ["ü\n" * 400, "b"]},
)

cycles = st.tuples(st.sampled_from(OUTPUTS), st.sampled_from(ARGUMENTS), st.booleans())
conversations = st.lists(st.lists(cycles, max_size=6), min_size=1, max_size=4)
Turns = Sequence[Sequence[tuple[str, JsonObject, bool]]]


def written(turns: Turns) -> list[AnyEntry]:
    entries: list[AnyEntry] = [Header(id="h", format=1, created_at="", nonce="5eed5eed")]
    for number, turn in enumerate(turns):
        entries += [start(number), ask(f"question {number}")]
        for at, (output, arguments, fails) in enumerate(turn):
            name = f"c{number}-{at}"
            called = ToolCallRequest(id=name, call_id=name, name="run", arguments=arguments)
            entries += [think("hm " * 20), called, end("tools"), respond(name, f"{name}\n{output}", is_error=fails)]
        entries += [say("done"), end()]
    return log(*entries)


def view_of(entries: Sequence[AnyEntry]) -> Transcript:
    return transcript_of(project(entries, StatusLineFormatter()), entries).messages


def planned(entries: Sequence[AnyEntry], target: int) -> Plan:
    return Budgeting(Planner(tuple(entries), StatusLineFormatter(), {}, now=0.0), WISH, ALL, target).plan()


def compacted(entries: Sequence[AnyEntry], target: int) -> list[AnyEntry]:
    overlays: list[AnyEntry] = [
        replace(overlay, id=f"z{len(entries)}-{at}") for at, overlay in enumerate(planned(entries, target).overlays)
    ]
    return [*entries, *overlays]


def results(messages: Transcript) -> dict[str, Message]:
    return {row.call_id: row for row in messages if row.role == "tool"}


@given(conversations, st.integers(0, 100))
def test_a_budget_is_reached_unless_everything_that_may_leave_has_left(turns: Turns, percent: int) -> None:
    entries = written(turns)
    before = estimate_messages(view_of(entries))
    target = before * percent // 100

    after = estimate_messages(view_of(compacted(entries, target)))

    assert after <= before
    assert after <= target or after == estimate_messages(view_of(compacted(entries, 0)))


@given(conversations, st.integers(0, 100))
def test_providers_take_what_is_left_and_the_newest_cycles_stay_as_they_are(turns: Turns, percent: int) -> None:
    entries = written(turns)
    whole = view_of(entries)

    left = view_of(compacted(entries, estimate_messages(whole) * percent // 100))

    assert complaints(left) == []
    newest = [one.id for cycle in cycles_of(turns_of(entries)[-1])[-3:] for one in cycle.responses]
    for identity in [row.call_id for row in whole if row.role == "tool" and row.origin.rpartition(".")[0] in newest]:
        assert results(left)[identity] == results(whole)[identity]


@given(conversations, st.integers(0, 100))
def test_a_budget_that_is_reached_is_not_compacted_for_again(turns: Turns, percent: int) -> None:
    entries = written(turns)
    target = estimate_messages(view_of(entries)) * percent // 100
    after = compacted(entries, target)

    if estimate_messages(view_of(after)) <= target:
        assert planned(after, target) == Plan()


@given(conversations, st.integers(0, 100))
def test_what_gives_way_is_named_by_its_handle_and_nothing_new_holds_a_secret(turns: Turns, percent: int) -> None:
    entries = written(turns)
    whole = view_of(entries)
    handles = handles_of(entries)

    left = view_of(compacted(entries, estimate_messages(whole) * percent // 100))

    for identity, row in results(left).items():
        [shown], [said] = texts_of(row), texts_of(results(whole)[identity])
        if shown != said:
            assert handles[checksum_of(said)] in shown
            assert SECRET not in shown


def test_there_are_budgets_that_are_reached() -> None:
    entries = written([[(OUTPUTS[2], ARGUMENTS[0], False)] * 6])
    before = estimate_messages(view_of(entries))

    after = compacted(entries, before * 60 // 100)

    assert any(isinstance(entry, Compaction) for entry in after)
    assert estimate_messages(view_of(after)) <= before * 60 // 100
