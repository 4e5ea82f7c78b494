"""Budgets: what is planned for conversations in which little, or nothing, may leave."""

from __future__ import annotations

from msgspec.structs import replace

from jp.compaction.budgeting import Budgeting
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.overlays import AtTurn, KeepTurns, Range, RangeRequest, SinceCompaction
from jp.compaction.planning import Plan, Planner, PolicyRequest, requested_policies
from jp.config.model import PROFILES
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    SummaryPolicy,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import Resource, ResourceBlock, TextBlock

WISH = requested_policies(PROFILES["default"])
ALL = RangeRequest()


def turn(number: int, cycles: int, text: str) -> list[AnyEntry]:
    entries: list[AnyEntry] = [TurnStart(id=f"t{number}"), ChatRequest(id=f"q{number}", content="go on")]
    for at in range(cycles):
        name = f"{number}-{at}"
        entries += [
            ToolCallRequest(id=f"c{name}", call_id=name, name="run", arguments={"a": "b"}),
            ToolCallResponse(id=f"r{name}", request=f"c{name}", content=(TextBlock(text=f"{name} {text}"),)),
        ]
    return [*entries, ChatResponse(id=f"a{number}", message="done")]


def planner(*turns: list[AnyEntry]) -> Planner:
    return Planner([entry for one in turns for entry in one], StatusLineFormatter(), {}, now=0.0)


def test_what_fits_and_what_has_no_turn_is_left_alone() -> None:
    made = planner(turn(0, 4, "word " * 400))

    assert Budgeting(made, WISH, ALL, made.tokens).plan() == Plan()
    assert Budgeting(made, WISH, RangeRequest(start=AtTurn(7)), 10).plan() == Plan()
    assert Budgeting(made, WISH, RangeRequest(keep_last=KeepTurns(1)), 10, is_firm=True).plan() == Plan()


def test_results_that_say_what_failed_give_way_after_those_that_do_not() -> None:
    made = planner(turn(0, 1, "error: it failed\n" * 100), turn(1, 1, "a word is here \n" * 100), turn(2, 3, "x"))

    (overlay,) = Budgeting(made, WISH, ALL, made.tokens - 100).plan().overlays

    assert {"r0-0", "r1-0"} & set(overlay.kept) == {"r0-0"}


def test_the_newest_turns_give_way_after_all_others_and_the_newest_cycles_never() -> None:
    made = planner(turn(0, 1, "word " * 400), turn(1, 6, "word " * 400))
    keep = RangeRequest(keep_last=KeepTurns(1))

    (first,) = Budgeting(made, WISH, keep, made.tokens - 300).plan().overlays
    (every,) = Budgeting(made, WISH, keep, 10).plan().overlays

    assert "r0-0" not in first.kept
    assert {"r1-0", "r1-1"} <= set(first.kept)
    assert set(every.kept) == {"c1-4", "r1-4", "c1-5", "r1-5"}
    shown = str(made.view((every,)).messages)
    assert "1-5 word" in shown


def test_one_long_turn_leaves_its_finished_cycles_to_a_summary_and_a_short_one_all_of_it() -> None:
    wish = replace(WISH, summary=True)

    long = Budgeting(planner(turn(0, 9, "word " * 400)), wish, ALL, 10).plan().summary
    short = Budgeting(planner(turn(0, 2, "word " * 400)), wish, ALL, 10).plan().summary

    assert long is not None
    assert long.to_cycle is not None
    assert short == Range(first=0, last=0)


def test_a_summary_has_the_room_that_the_budget_leaves_to_it_and_never_too_little() -> None:
    made = planner(turn(0, 2, "word " * 400), turn(1, 1, "word"))
    told = Range(first=0, last=0)

    assert Budgeting(made, PolicyRequest(), ALL, 10).summary_room(told) == 500
    assert 800 < Budgeting(made, PolicyRequest(), ALL, 1_000).summary_room(told) < 1_000


def test_a_wish_without_anything_mechanical_is_a_summary_or_nothing() -> None:
    made = planner(turn(0, 2, "word " * 400), turn(1, 1, "word"))

    assert Budgeting(made, PolicyRequest(), ALL, 100).plan() == Plan()
    assert Budgeting(made, PolicyRequest(summary=True), ALL, 100).plan().summary == Range(first=0, last=1)


def test_what_a_written_summary_leaves_of_the_budget_is_spent_and_what_it_takes_too_much_is_freed() -> None:
    wish = replace(WISH, summary=True)
    results = [turn(number, 3, "word " * 300) for number in range(1, 5)]
    made = planner(turn(0, 2, "word " * 2_000), *results)
    short = replace(made.bare(Range(first=0, last=0)), summary=SummaryPolicy(text="short"))
    long = replace(short, summary=SummaryPolicy(text="word " * 1_500))
    budget = made.size((long,)) - 200

    beside_short = Budgeting(made, wish, ALL, budget).settle(short)
    beside_long = Budgeting(made, wish, ALL, budget).settle(long)

    assert beside_short == (short,)
    assert beside_long[-1] == long
    assert len(beside_long) > 1
    assert budget - 400 < made.size(beside_long) <= budget
    assert Budgeting(made, wish, RangeRequest(start=AtTurn(7)), 10).settle(short) == (short,)


def thinking(number: int, words: int) -> list[AnyEntry]:
    start, ask, *rest = turn(number, 1, "word " * words)
    return [
        start,
        ask,
        ChatResponse(id=f"th{number}", reasoning="thought " * words, metadata={"signature": "s"}),
        *rest,
    ]


def test_the_oldest_reasoning_goes_first_and_only_as_much_as_it_takes() -> None:
    made = planner(*(thinking(number, 100) for number in range(5)))

    few = Budgeting(made, PolicyRequest(reasoning=True), ALL, made.tokens - 250).plan().overlays
    every = Budgeting(made, PolicyRequest(reasoning=True), ALL, 10).plan().overlays

    assert [(one.reasoning, one.from_turn, one.to_turn) for one in few] == [("strip", 0, 1)]
    assert [one.to_turn for one in every] == [3]


def test_the_fewest_of_the_oldest_turns_are_left_to_a_summary() -> None:
    made = planner(*(turn(number, 1, "word " * 2_000) for number in range(6)))
    wish = PolicyRequest(summary=True)

    some = Budgeting(made, wish, ALL, made.tokens * 7 // 10).plan().summary
    more = Budgeting(made, wish, ALL, made.tokens * 4 // 10).plan().summary

    assert some is not None
    assert more is not None
    assert 0 <= some.last < more.last < 5


def test_turns_that_have_a_summary_already_are_not_left_to_another_one() -> None:
    entries = [entry for number in range(3) for entry in turn(number, 1, "word " * 300)]
    told = Compaction(id="k", from_turn=0, to_turn=2, summary=SummaryPolicy(text="told " * 200))
    made = Planner([*entries, told], StatusLineFormatter(), {}, now=0.0)

    plan = Budgeting(made, replace(WISH, summary=True), RangeRequest(start=SinceCompaction()), 10).plan()

    assert plan == Plan()


def test_what_is_settled_beside_a_summary_is_never_larger_than_the_summary_alone() -> None:
    made = planner(turn(0, 1, "word " * 900), *(thinking(number, 40 * number) for number in range(1, 7)))
    for words in (1, 90, 400):
        summary = replace(made.bare(Range(first=0, last=0)), summary=SummaryPolicy(text="word " * words))
        alone = made.size((summary,))
        for budget in range(40, alone + 200, 60):
            overlays = Budgeting(made, WISH, ALL, budget).settle(summary)

            assert overlays[-1] == summary
            assert made.size(overlays) <= alone


def read_file(number: int, text: str) -> list[AnyEntry]:
    """A turn that delivers the same file again."""
    start, ask, call, response, *rest = turn(number, 1, "")
    assert isinstance(response, ToolCallResponse)
    delivered = ResourceBlock(resource=Resource(uri="file:///w/a", text=text))
    return [start, ask, call, replace(response, content=(delivered,)), *rest]


def test_an_older_copy_does_not_come_back_where_the_newer_one_gives_way_to_a_budget() -> None:
    made = planner(read_file(0, "word " * 400), read_file(1, "word " * 401), turn(2, 3, "x"))
    budget = made.size(()) // 3

    overlays = Budgeting(made, WISH, ALL, budget).plan().overlays

    assert made.size(overlays) <= budget


def test_where_hiding_older_copies_is_enough_nothing_else_gives_way() -> None:
    made = planner(read_file(0, "word " * 400), read_file(1, "word " * 401), turn(2, 3, "x"))

    (overlay,) = Budgeting(made, WISH, ALL, made.tokens - 300).plan().overlays

    assert (overlay.resources, overlay.tool_calls, overlay.reasoning) == ("superseded", None, None)
    assert made.size((overlay,)) <= made.tokens - 300


def test_a_result_of_several_blocks_gives_way_as_one() -> None:
    start, ask, call, response, *rest = turn(0, 1, "")
    assert isinstance(response, ToolCallResponse)
    blocks = (TextBlock(text="word " * 300), TextBlock(text="more " * 300))
    made = planner([start, ask, call, replace(response, content=blocks), *rest], turn(1, 4, "word " * 50))

    (overlay,) = Budgeting(made, WISH, ALL, made.tokens - 500).plan().overlays

    assert "r0-0" not in overlay.kept
    assert made.size((overlay,)) <= made.tokens - 500


def test_turns_of_the_users_own_words_are_not_taken_to_be_short_in_a_summary() -> None:
    words = ChatRequest(id="q0", content="please " * 1_500)
    answered = [ChatResponse(id="a0", message="answer " * 1_500)]
    wish = PolicyRequest(summary=True)

    def last_told(first: list[AnyEntry]) -> int:
        made = planner([TurnStart(id="t0"), *first], *(turn(number, 1, "word " * 600) for number in range(1, 5)))
        summary = Budgeting(made, wish, ALL, made.tokens * 7 // 10).plan().summary
        return -1 if summary is None else summary.last

    assert last_told([ChatRequest(id="q0", content="go on"), *answered]) == 0
    assert last_told([words]) > 0
