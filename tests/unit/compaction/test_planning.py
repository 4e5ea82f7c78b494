"""Which overlays a wish comes to, against small streams."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from jp.compaction.fact_lines import StatusLineFormatter, tool_policy
from jp.compaction.log_contents import LogContent
from jp.compaction.overlays import AtTurn, KeepTurns, Range, RangeRequest, SinceCompaction
from jp.compaction.planning import Planner, PolicyRequest, ResultObserver, requested_policies, with_unwritten_summary
from jp.compaction.projection import project
from jp.compaction.status_lines import PlainStatusFormatter
from jp.compaction.transcript import transcript_of
from jp.config.entries import ToolCompactionConfig, ToolConfig
from jp.config.model import PROFILES, ProfileConfig, SummaryConfig, ToolCallsConfig
from jp.context.budget import estimate_messages
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    Compaction,
    Facts,
    Revert,
    SummaryPolicy,
    ToolCallPolicy,
    ToolCallResponse,
    ToolOverride,
    TurnStart,
)
from jp.conversation.resource import Resource, TextBlock
from logs import ask, call, end, log, respond, say, start, whole_turn

ALL = RangeRequest()
STRIP = ToolCallPolicy(policy="strip", request=True, response=True)
DIGEST = ToolCallPolicy(policy="digest", request=True, response=True)
BOTH = PolicyRequest(reasoning=True, tools=STRIP)
SUMMARY = PolicyRequest(summary=True)


def turns(count: int) -> list[AnyEntry]:
    return [entry for number in range(count) for entry in whole_turn(number)]


def planner(*entries: AnyEntry, **tools: ToolConfig) -> Planner:
    return Planner(log(*entries), PlainStatusFormatter(), tools, now=0.0)


def bounds(first: int, last: int) -> RangeRequest:
    return RangeRequest(start=AtTurn(first), end=AtTurn(last))


def summary(first: int, last: int, text: str = "what happened") -> Compaction:
    return Compaction(from_turn=first, to_turn=last, summary=SummaryPolicy(text=text))


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (PROFILES["default"], PolicyRequest(reasoning=True, tools=DIGEST, resources=True)),
        (PROFILES["light"], PolicyRequest(reasoning=True)),
        (PROFILES["heavy"], PolicyRequest(summary=True)),
        (ProfileConfig(), PolicyRequest()),
        (
            ProfileConfig(tool_calls=ToolCallsConfig(policy="strip", request=True)),
            PolicyRequest(tools=ToolCallPolicy(policy="strip", request=True)),
        ),
        (
            ProfileConfig(tool_calls="omit", summary=SummaryConfig(policy="summarize")),
            PolicyRequest(tools=ToolCallPolicy(policy="omit"), summary=True),
        ),
    ],
)
def test_a_profile_is_a_wish(profile: ProfileConfig, expected: PolicyRequest) -> None:
    assert requested_policies(profile) == expected


def test_policies_of_one_range_stand_in_one_overlay_that_names_its_turns() -> None:
    (overlay,) = planner(*turns(4)).plan(BOTH, RangeRequest(keep_last=KeepTurns(1))).overlays

    assert overlay == Compaction(
        from_turn=0, to_turn=2, from_id="t0", to_id="t2", reasoning="strip", tool_calls=STRIP, source="manual"
    )


def test_last_gives_each_policy_a_range_of_its_own() -> None:
    earlier = Compaction(from_turn=0, to_turn=1, reasoning="strip")

    plan = planner(*turns(4), earlier).plan(BOTH, RangeRequest(start=SinceCompaction()))

    assert [(one.from_turn, one.to_turn, one.reasoning, one.tool_calls) for one in plan.overlays] == [
        (2, 3, "strip", None),
        (0, 3, None, STRIP),
    ]


def test_a_compaction_that_ends_inside_a_turn_leaves_that_turn_uncovered() -> None:
    inside = Compaction(from_turn=0, to_turn=1, to_cycle=0, tool_calls=STRIP)
    nowhere = Compaction(from_turn=0, to_turn=0, to_cycle=0, reasoning="strip")
    made = planner(*turns(2), inside, nowhere)

    assert made.shape.covered == {"tools": 0}


def test_what_does_not_make_the_view_smaller_is_not_planned() -> None:
    quiet = [start(0), ask("hello"), say("hi")]

    assert planner(*quiet).plan(BOTH, ALL).overlays == ()
    assert planner().plan(BOTH, ALL).overlays == ()
    again = [*turns(2), Compaction(from_turn=0, to_turn=1, reasoning="strip", tool_calls=STRIP)]
    assert planner(*again).plan(BOTH, ALL).overlays == ()


def test_hints_of_the_tools_that_were_called_are_kept_in_the_overlay() -> None:
    own = ToolConfig(compaction=ToolCompactionConfig(response="keep"))

    (overlay,) = planner(*turns(1), run=own, other=own).plan(PolicyRequest(tools=STRIP), ALL).overlays

    assert overlay.tool_overrides == {"run": ToolOverride(response="keep")}
    (omitted,) = planner(*turns(1), run=own).plan(PolicyRequest(tools=ToolCallPolicy(policy="omit")), ALL).overlays
    assert omitted.tool_overrides == {}


def test_what_jp_ships_for_its_own_tools_holds_where_nothing_else_is_said() -> None:
    entries = [replace(entry, name="fs_read_file") if hasattr(entry, "name") else entry for entry in turns(1)]

    (overlay,) = planner(*entries).plan(PolicyRequest(tools=STRIP), ALL).overlays

    assert overlay.tool_overrides == {"fs_read_file": ToolOverride(request="keep", response="strip")}


def test_a_summary_grows_over_those_in_force_and_leaves_nothing_else_to_do_in_its_turns() -> None:
    entries = [*turns(6), summary(0, 2)]
    wish = PolicyRequest(reasoning=True, summary=True)

    plan = planner(*entries).plan(wish, RangeRequest(keep_last=KeepTurns(1)))
    narrow = planner(*entries).plan(wish, RangeRequest(start=SinceCompaction(), keep_last=KeepTurns(2)))

    assert (plan.summary, plan.overlays) == (Range(first=0, last=4), ())
    assert narrow.summary == Range(first=0, last=3)
    undone = planner(*turns(6), replace(summary(0, 2), id="s"), Revert(entries=("s",)))
    assert undone.plan(wish, RangeRequest(start=SinceCompaction())).summary == Range(first=0, last=5)
    assert planner().plan(wish, ALL).summary is None


def test_a_summary_does_not_grow_over_what_is_only_stripped() -> None:
    entries = [*turns(6), Compaction(from_turn=0, to_turn=5, reasoning="strip")]

    assert planner(*entries).plan(SUMMARY, bounds(2, 3)).summary == Range(first=2, last=3)


def test_turns_are_told_of_where_a_summary_is_of_just_them() -> None:
    made = planner(*turns(4), summary(0, 3), *whole_turn(4))

    assert made.is_summarized(Range(first=0, last=3))
    assert not made.is_summarized(Range(first=0, last=4))
    assert not made.is_summarized(Range(first=0, last=2))
    assert not planner(*turns(4)).is_summarized(Range(first=0, last=3))
    assert not planner(*turns(4), Compaction(from_turn=0, to_turn=3, reasoning="strip")).is_summarized(
        Range(first=0, last=3)
    )


@pytest.mark.parametrize(
    "entries",
    [
        [*turns(4), summary(0, 3), summary(1, 2)],
        [*turns(4), summary(0, 3), Revert(entries=("t1",))],
        [*turns(4)[:-2], summary(0, 3), *turns(4)[-2:]],
    ],
    ids=["another one inside", "a turn undone since", "a turn that went on"],
)
def test_a_summary_does_not_tell_of_turns_that_are_not_what_they_were(entries: list[AnyEntry]) -> None:
    assert not planner(*entries).is_summarized(Range(first=0, last=3))


def test_the_effect_is_that_of_the_view_with_the_overlays_at_its_end() -> None:
    entries = log(*turns(4))
    made = planner(*entries)
    plan = made.plan(BOTH, RangeRequest(keep_last=KeepTurns(1)))

    effect = made.effect(plan.overlays)

    after = (*entries, *plan.overlays)
    messages = transcript_of(project(after, PlainStatusFormatter()), after).messages
    assert (effect.before, effect.after) == (made.tokens, estimate_messages(messages))
    assert effect.freed == effect.before - effect.after > 0
    assert 0 < effect.untouched < effect.after
    assert {item.kind for item in effect.largest} == {"arguments", "reasoning", "results"}
    assert made.effect(()).freed == 0
    assert made.effect(()).untouched == made.tokens


def test_superseded_copies_are_a_policy_like_the_others() -> None:
    copies = [
        entry
        for number in range(2)
        for entry in (
            start(number),
            ChatRequest(content="look", resources=(Resource(uri="file:///a", text=f"{number}" * 4000),)),
            say("seen"),
        )
    ]

    (overlay,) = planner(*copies).plan(PolicyRequest(resources=True), ALL).overlays

    assert overlay.resources == "superseded"


def test_turns_know_when_they_began_and_what_they_weigh() -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    entries = [
        TurnStart(id="a", at=began.isoformat()),
        ask("hello"),
        TurnStart(id="b", at="never"),
        ask("hello"),
        respond("nothing"),
    ]

    shape = planner(*entries).shape

    assert [turn.began for turn in shape.turns] == [began.timestamp(), None]
    assert all(turn.tokens > 0 for turn in shape.turns)
    assert planner(ask("before any turn")).shape.turns[0].began is None


def long_turn(cycles: int) -> list[AnyEntry]:
    steps = [entry for number in range(cycles) for entry in (call(f"c{number}"), end("tools"), respond(f"c{number}"))]
    return [start(0), ask("do it all"), *steps]


def test_old_results_of_the_turn_that_runs_are_stripped_and_its_newest_three_cycles_are_not() -> None:
    made = planner(*long_turn(6))

    (inside,) = made.with_inside((), BOTH)

    assert (inside.from_turn, inside.to_turn, inside.to_cycle) == (0, 0, 2)
    assert (inside.reasoning, inside.tool_calls) == (None, ToolCallPolicy(policy="digest", response=True))
    assert made.effect((inside,)).freed > 0
    assert made.with_inside((), PolicyRequest(reasoning=True)) == ()
    assert planner(*long_turn(3)).with_inside((), BOTH) == ()
    assert planner().with_inside((), BOTH) == ()


def test_a_table_that_omits_calls_has_no_halves() -> None:
    assert tool_policy(ToolCallsConfig(policy="omit", request=True)) == ToolCallPolicy(policy="omit")


def test_an_attempt_that_failed_is_no_cycle_of_its_own() -> None:
    failed = planner(*long_turn(6), end("error"))

    assert failed.finished_cycles() == planner(*long_turn(6)).finished_cycles()
    assert failed.finished_cycles(keep=1) == Range(first=0, last=0, to_cycle=4)
    assert planner(start(0), ask("do it all"), end("error")).finished_cycles(keep=1) is None


def test_what_results_without_evidence_say_is_read_once_for_all_plans() -> None:
    blank, report = replace(respond("c0", " \n" * 400), id="r0"), replace(respond("c1", "error: bad\n" * 90), id="r1")
    read: list[str] = []

    def load(content: LogContent) -> str:
        assert isinstance(content, TextBlock)
        read.append(content.text or "")
        return content.text or ""

    entries = log(start(0), ask("do it"), call("c0"), call("c1"), end("tools"), blank, report)
    made = Planner(entries, PlainStatusFormatter(), {}, now=0.0, observer=ResultObserver(load))

    plans = [made.plan(PolicyRequest(tools=DIGEST), bounds(0, 0)) for _ in range(2)]

    assert [set(overlay.facts) for plan in plans for overlay in plan.overlays] == [{"r1"}, {"r1"}]
    assert len(read) == 2


def test_an_identifier_that_several_results_have_is_named_in_one_digest_and_one_that_somebody_said_in_none() -> None:
    text = "all is well\n" * 90 + "see https://example.test/page and #77\n" + "all is well\n"
    first, second = replace(respond("c0", text), id="r0"), replace(respond("c1", text), id="r1")
    known = replace(first, facts=Facts(evidence=("its own",)))

    def facts_of(*responses: ToolCallResponse) -> Mapping[str, Facts]:
        entries = log(start(0), ask("see #77"), call("c0"), call("c1"), end("tools"), *responses)
        made = Planner(entries, StatusLineFormatter(), {}, now=0.0, observer=ResultObserver(inline))
        (overlay,) = made.plan(PolicyRequest(tools=DIGEST), bounds(0, 0)).overlays
        shown = str(made.view((overlay,)).messages)
        assert shown.count("example.test") == sum("example.test" in str(facts) for facts in overlay.facts.values())
        return overlay.facts

    named = "identifiers: https://example.test/page"
    assert {key: facts.evidence and facts.evidence[-1] for key, facts in facts_of(first, second).items()} == {
        "r0": named,
        "r1": "all is well",
    }
    assert facts_of(known, second)["r0"].evidence == ("its own", named)
    assert named not in (facts_of(first)["r0"].evidence or ())


def inline(content: LogContent) -> str:
    assert isinstance(content, TextBlock)
    return content.text or ""


def test_an_unwritten_summary_frees_at_least_as_much_as_any_that_is_written() -> None:
    made = planner(*turns(3))
    bare = made.bare(Range(first=0, last=1))

    unwritten = made.effect((with_unwritten_summary(bare),)).freed

    assert unwritten >= made.effect((replace(bare, summary=SummaryPolicy(text="It began.")),)).freed > 0
