from __future__ import annotations

import pytest

from jp.conversation.entries import (
    AnyEntry,
    Compaction,
    ConfigDelta,
    Header,
    InquiryRequest,
    InquiryResponse,
    Question,
    RequestContext,
    Revert,
    TurnStart,
    Unknown,
)
from jp.conversation.turns import Cycle, cycles_of, divide, is_blank, turns_of
from logs import ask, call, end, log, respond, say, start, think, whole_turn

COMPACTION = Compaction(from_turn=0, to_turn=0)
CONTEXT = RequestContext(provider="script", model="m", renderer=1)
QUESTION = InquiryRequest(request="c1", question=Question(id="q", text="?", kind="text"))
ANSWER = InquiryResponse(request="q", answer="a", answered_by="user")


def cycles(*entries: AnyEntry) -> list[Cycle]:
    (turn,) = turns_of(log(*entries))
    return cycles_of(turn)


def outline(cycle: Cycle) -> str:
    """How many requests a cycle has, how many answers with which end, and how many responses."""
    attempts = [f"{len(one.answers)} {one.end.finish if one.end else 'open'}" for one in cycle.attempts]
    return f"{len(cycle.requests)} | {', '.join(attempts)} | {len(cycle.responses)}"


def test_a_turn_goes_from_its_start_to_the_next() -> None:
    turns = turns_of(log(*whole_turn(0), *whole_turn(1)))

    assert [(turn.number, turn.id, len(turn.entries)) for turn in turns] == [(0, "t0", 8), (1, "t1", 8)]


def test_what_stands_before_any_start_is_a_turn_without_an_id() -> None:
    turns = turns_of(log(ask("early"), start(1), ask("late")))

    assert [(turn.number, turn.id, len(turn.entries)) for turn in turns] == [(0, "", 1), (1, "t1", 2)]


def test_a_start_right_after_another_takes_its_place() -> None:
    turns = turns_of(log(start(0), Unknown(raw=b"{}"), start(1), start(2), ask("now"), start(3)))

    assert [(turn.number, turn.id, len(turn.entries)) for turn in turns] == [(0, "t2", 2), (1, "t3", 1)]


def test_overlays_headers_and_unknown_entries_belong_to_no_turn() -> None:
    others = [
        Header(format=1, created_at="", nonce=""),
        ConfigDelta(delta={}),
        COMPACTION,
        Revert(entries=()),
        Unknown(raw=b"{}"),
    ]

    assert turns_of(others) == []
    assert turns_of([*others, *log(*whole_turn(0)), *others]) == turns_of(log(*whole_turn(0)))


def test_a_division_says_where_compactions_stand_and_which_responses_there_are() -> None:
    entries = log(
        COMPACTION, *whole_turn(0), COMPACTION, start(1), COMPACTION, start(2), COMPACTION, ask("x"), COMPACTION
    )

    division = divide(entries)

    assert [(placement.turn, placement.events) for placement in division.placements] == [
        (-1, 0),
        (0, 8),
        (1, 1),
        (1, 1),
        (1, 2),
    ]
    assert [response.request for response in division.responses] == ["c0"]


def test_a_cycle_is_a_request_its_answers_and_the_responses_to_them() -> None:
    found = cycles(*whole_turn(0))

    assert [outline(cycle) for cycle in found] == ["1 | 2 tools | 1", "0 | 1 stop | 0"]
    assert [(cycle.number, cycle.start) for cycle in found] == [(0, 1), (1, 6)]


@pytest.mark.parametrize(
    ("expected", "entries"),
    [
        ("2 | 1 stop | 0", [ask("a"), ask("b"), say("x"), end()]),
        ("1 | 0 error, 1 stop | 0", [ask("a"), end("error"), say("x"), end()]),
        ("1 | 1 error, 1 open | 0", [ask("a"), say("x"), end("error"), say("y")]),
        ("1 | 1 length | 0; 0 | 1 stop | 0", [ask("a"), say("x"), end("length"), say("y"), end()]),
        ("1 | 1 cancelled | 0; 1 |  | 0", [ask("a"), say("x"), end("cancelled"), ask("b")]),
        ("1 | 1 error | 0; 1 |  | 0", [ask("a"), say("x"), end("error"), ask("b")]),
        ("1 | 0 refused | 0; 0 | 0 stop | 0", [ask("a"), end("refused"), end("stop")]),
        ("1 | 1 open | 1; 0 | 1 open | 0", [ask("a"), call("c"), respond("c"), say("x")]),
        ("1 | 2 open | 0; 1 |  | 1", [ask("a"), call("c"), say("y"), ask("b"), respond("c")]),
        ("0 |  | 1; 1 | 1 open | 0", [respond("c"), ask("a"), say("x")]),
        ("0 | 2 stop | 0", [say("x"), think("y"), end()]),
        ("0 | 0 stop | 0", [end()]),
        ("", [TurnStart(), CONTEXT]),
        ("0 | 1 tools | 1", [CONTEXT, call("c"), QUESTION, ANSWER, end("tools"), respond("c")]),
        ("0 | 1 tools | 1; 0 | 0 error | 0", [call("c"), end("tools"), respond("c"), end("error")]),
    ],
)
def test_a_turn_is_cut_into_cycles_where_a_new_request_was_sent(expected: str, entries: list[AnyEntry]) -> None:
    assert "; ".join(outline(cycle) for cycle in cycles(*entries)) == expected


@pytest.mark.parametrize(("text", "expected"), [("", True), (" \n\t", True), ("x ", False)])
def test_white_space_is_blank(text: str, *, expected: bool) -> None:
    assert is_blank(text) is expected
