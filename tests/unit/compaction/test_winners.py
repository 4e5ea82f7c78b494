from __future__ import annotations

from jp.compaction.overlays import Coverage, Point, Policies, Winners
from jp.conversation.entries import Compaction, SummaryPolicy, ToolCallPolicy, ToolOverride


def coverage(start: Point, end: Point, compaction: Compaction, *, only_responses: bool = False) -> Coverage:
    text = "" if compaction.summary is None else compaction.summary.text
    return Coverage(
        compaction=compaction, summary=text, start=start, end=end, seen=(9, 9), only_responses=only_responses
    )


REASONING = Compaction(from_turn=0, to_turn=0, reasoning="strip")
SUMMARY = Compaction(from_turn=0, to_turn=0, summary=SummaryPolicy(text="s"))
OMIT = Compaction(from_turn=0, to_turn=0, tool_calls=ToolCallPolicy(policy="omit"))
STRIP = Compaction(
    from_turn=0,
    to_turn=0,
    tool_calls=ToolCallPolicy(policy="strip", request=True, response=True),
    tool_overrides={"a": ToolOverride(request="keep"), "b": ToolOverride(response="keep")},
)
SUPERSEDED = Compaction(from_turn=0, to_turn=0, resources="superseded")


def test_where_nothing_covers_nothing_happens() -> None:
    winners = Winners([coverage((1, 0), (2, 0), REASONING)])

    assert winners.at((0, 5)) == winners.at((2, 0)) == Policies()
    assert Winners([]).at((0, 0)) == Policies()
    assert Winners([]).summary_of(0) is None


def test_a_range_starts_with_its_first_cycle_and_ends_before_its_end() -> None:
    winners = Winners([coverage((1, 2), (3, 4), REASONING)])

    places = [(1, 1), (1, 2), (2, 99), (3, 3), (3, 4)]

    assert [winners.at(place).strip_reasoning for place in places] == [False, True, True, True, False]


def test_a_later_opinion_wins_for_its_type_only() -> None:
    policies = Winners([coverage((0, 0), (1, 0), one) for one in (REASONING, OMIT, SUPERSEDED, STRIP)]).at((0, 0))

    assert (policies.strip_reasoning, policies.tools.omit) == (True, False)
    assert policies.superseded is not None
    assert policies.tools.requests.strips("x")


def test_each_half_follows_the_tools_wish() -> None:
    tools = Winners([coverage((0, 0), (1, 0), STRIP)]).at((0, 0)).tools

    assert [tools.requests.strips(name) for name in ("a", "b", "c")] == [False, True, True]
    assert [tools.responses.strips(name) for name in ("a", "b", "c")] == [True, False, True]


def test_a_part_for_responses_has_no_opinion_on_anything_else() -> None:
    for compaction in (REASONING, SUMMARY, OMIT, SUPERSEDED):
        only = Winners([coverage((0, 0), (0, 3), compaction, only_responses=True)])
        assert only.at((0, 0)) == Policies()

    tools = Winners([coverage((0, 0), (0, 3), STRIP, only_responses=True)]).at((0, 2)).tools
    assert (tools.requests.strips("b"), tools.responses.strips("b"), tools.responses.strips("c")) == (
        False,
        False,
        True,
    )


def test_a_turn_is_summarised_where_one_summary_covers_all_of_it() -> None:
    whole = coverage((0, 0), (2, 0), SUMMARY)
    part = coverage((2, 0), (2, 3), SUMMARY)
    winners = Winners([whole, part])

    assert [winners.summary_of(turn) for turn in range(4)] == [whole, whole, None, None]
    assert winners.at((2, 2)).summary is part
