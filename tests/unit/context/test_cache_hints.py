from __future__ import annotations

import pytest

from jp.context.cache_hints import Piece, place_hints

TOOL = Piece(section="tools")
SYSTEM = Piece(section="system")
ASKED = Piece(section="messages")
ANSWER = Piece(section="messages", is_answer=True)
FILE = Piece(section="messages", is_attached=True)
EMPTY = Piece(section="messages", carries=False)
THOUGHT = Piece(section="messages", is_answer=True, carries=False)
PLEA = Piece(section="messages", is_volatile=True)


def hints(*pieces: Piece) -> list[tuple[int, str]]:
    return [(hint.position, hint.reason) for hint in place_hints(pieces)]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((), []),
        ((TOOL,), [(0, "static_prefix")]),
        ((ASKED,), [(0, "newest")]),
        ((SYSTEM, SYSTEM, ASKED), [(1, "static_prefix"), (2, "newest")]),
        ((TOOL, TOOL, ASKED), [(1, "static_prefix"), (2, "newest")]),
        ((TOOL, SYSTEM, ASKED), [(0, "tools"), (1, "static_prefix"), (2, "newest")]),
        ((ASKED, ANSWER, ASKED), [(0, "previous_request"), (2, "newest")]),
        ((ASKED, ANSWER, ASKED, ANSWER, ANSWER, ASKED), [(2, "previous_request"), (5, "newest")]),
        ((ASKED, ANSWER, ANSWER), [(0, "previous_request"), (2, "newest")]),
        ((FILE, ASKED), [(0, "attachment"), (1, "newest")]),
        ((FILE, FILE, ASKED, ANSWER, ASKED), [(1, "attachment"), (2, "previous_request"), (4, "newest")]),
    ],
)
def test_the_ends_of_what_requests_share_are_marked(pieces: tuple[Piece, ...], expected: list[tuple[int, str]]) -> None:
    assert hints(*pieces) == expected


def test_of_more_than_four_places_those_that_are_worth_least_are_omitted() -> None:
    found = hints(TOOL, SYSTEM, FILE, ASKED, ANSWER, ASKED)

    assert found == [(1, "static_prefix"), (2, "attachment"), (3, "previous_request"), (5, "newest")]


def test_nothing_stands_on_thinking_and_on_what_is_empty() -> None:
    assert hints(ASKED, EMPTY, THOUGHT, ANSWER, ASKED, EMPTY) == [(0, "previous_request"), (4, "newest")]
    assert hints(EMPTY, THOUGHT) == []
    assert hints(Piece(section="messages", is_attached=True, carries=False), ASKED) == [(1, "newest")]


def test_nothing_is_marked_from_the_first_volatile_place_on() -> None:
    """What is written behind it could never be read again."""
    assert hints(SYSTEM, ASKED, PLEA) == [(0, "static_prefix"), (1, "newest")]
    assert hints(SYSTEM, ASKED, PLEA, ANSWER, ASKED) == [(0, "static_prefix"), (1, "newest")]
    assert hints(TOOL, Piece(section="system", is_volatile=True), ASKED) == [(0, "static_prefix")]


def test_a_long_way_back_to_the_request_before_gets_a_mark_to_look_back_to() -> None:
    many = [ASKED] * 40
    found = hints(SYSTEM, ASKED, ANSWER, *many)

    assert found == [(0, "static_prefix"), (1, "previous_request"), (24, "lookback"), (42, "newest")]
    assert hints(SYSTEM, *many) == [(0, "static_prefix"), (22, "lookback"), (40, "newest")]
    assert hints(SYSTEM, ASKED, ANSWER, *many[:17]) == [(0, "static_prefix"), (1, "previous_request"), (19, "newest")]
    assert (2, "lookback") in hints(SYSTEM, ASKED, ANSWER, *many[:18])
    assert hints(ASKED, ANSWER, *[EMPTY] * 30, ASKED) == [(0, "previous_request"), (32, "newest")]
