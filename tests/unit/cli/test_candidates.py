from __future__ import annotations

import pytest

from jp.app.targets import (
    Active,
    Candidate,
    Identified,
    Labeled,
    Last,
    Named,
    Picked,
    Previous,
    Target,
    Titled,
    in_order,
    is_titled,
    matching,
    near,
    parse_target,
)
from jp.conversation.ids import ConversationId
from jp.errors import UsageError


def candidate(
    number: int, title: str, *, labels: dict[str, str] | None = None, archived: bool = False, pinned: str = ""
) -> Candidate:
    return Candidate(
        id=ConversationId.at(number),
        title=title,
        labels=labels or {},
        last_activity=float(number % 100),
        pinned_at=pinned,
        is_archived=archived,
    )


LEXER = candidate(1701, "The lexer", labels={"area": "parser"})
LEXERS = candidate(1702, "The lexer, again", labels={"area": "cli", "odd": ""})
YEAR = candidate(1803, "Plans for 2026")
OLD = candidate(1804, "Old lexer", labels={"area": "parser"}, archived=True)
ALL = (LEXER, LEXERS, YEAR, OLD)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (".", Active()),
        ("prev", Previous()),
        (" last ", Last()),
        ("?", Picked("")),
        ("? lex er", Picked("lex er")),
        ("jp-c17", Identified("17", "jp-c17")),
        ("JP-C17", Identified("17", "JP-C17")),
        ("17", Identified("17", "17")),
        ("@area=parser", Labeled("area=parser")),
        ("@area", Labeled("area")),
        ("jp-compact", Titled("jp-compact")),
        ("jp-c", Titled("jp-c")),
        ("٣", Titled("٣")),
        ("last one", Titled("last one")),
    ],
)
def test_a_target_is_read(text: str, target: Target) -> None:
    assert parse_target(text) == target


@pytest.mark.parametrize("text", ["", " \n", "@", "@=x", "@a b"])
def test_what_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_target(text)


@pytest.mark.parametrize(
    ("target", "archived", "found"),
    [
        (Identified("1701", "1701"), False, [LEXER]),
        (Identified("17", "17"), False, [LEXER, LEXERS]),
        (Identified("1804", "1804"), False, [OLD]),
        (Identified("2026", "2026"), False, [YEAR]),
        (Identified("9", "9"), False, []),
        (Labeled("area"), False, [LEXER, LEXERS]),
        (Labeled("area=parser"), False, [LEXER]),
        (Labeled("odd="), False, [LEXERS]),
        (Labeled("area=parser"), True, [OLD]),
        (Titled("THE LEXER"), False, [LEXER]),
        (Titled("lexer"), False, [LEXER, LEXERS]),
        (Titled("again"), False, [LEXERS]),
        (Titled("lexer"), True, [OLD]),
        (Titled("nobody"), False, []),
    ],
)
def test_a_target_matches_what_it_names(target: Named, *, archived: bool, found: list[Candidate]) -> None:
    assert matching(target, ALL, archived=archived) == found


def test_a_whole_id_is_not_the_beginning_of_another() -> None:
    short, long = candidate(17, "a"), candidate(171, "b")

    assert matching(Identified("17", "17"), (long, short), archived=False) == [short]


def test_the_active_one_comes_first_then_pinned_ones_then_what_was_used_last() -> None:
    first = candidate(1, "pinned first", pinned="2026-01-01T00:00:00Z")
    later = candidate(2, "pinned later", pinned="2026-01-02T00:00:00Z")
    old, new, active = candidate(103, "old"), candidate(104, "new"), candidate(100, "active")

    assert in_order([old, first, active, new, later], active.id) == [active, later, first, new, old]
    assert in_order([old, new]) == [new, old]


def test_titles_that_are_spelled_alike_are_near() -> None:
    assert near("lexxer", ALL) == [OLD, LEXER, LEXERS]
    assert near("plans for 2025", ALL) == [YEAR]
    assert near("something else", ALL) == []
    assert near("lexxer", [candidate(number, "lexer") for number in range(9)])[0].id == "jp-c8"


@pytest.mark.parametrize(("text", "titled"), [("bolts", True), ("prev", False), ("--from", False), ("@", False)])
def test_a_word_is_a_part_of_a_title_where_it_is_no_other_target(text: str, *, titled: bool) -> None:
    assert is_titled(text) == titled
