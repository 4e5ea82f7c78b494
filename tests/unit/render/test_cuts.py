from __future__ import annotations

import pytest

from jp.render.cuts import BOUND, SEGMENT, Cutter

PADDING = "word " * 20


def segments(*pieces: str) -> list[str]:
    cutter = Cutter()
    found = [segment for piece in pieces for segment in cutter.feed(piece)]
    return [*found, cutter.rest()]


def test_plain_text_is_cut_at_a_space_once_there_is_enough_of_it() -> None:
    text = "x" * (SEGMENT - 1) + " a b"

    assert segments(text) == ["x" * (SEGMENT - 1) + " a ", "b"]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("**", "**"),
        ("*", "*"),
        ("_", "_"),
        ("~~", "~~"),
        ("`", "`"),
        ("``", "``"),
        ("[", "](target)"),
        ("[text](", ")"),
        ("[text](with (parentheses ", "))"),
        ("![", "](target)"),
        ("<a ", ">"),
        ("$", "$"),
        ("$$", "$$"),
        ("\\(", "\\)"),
        ("\\[", "\\]"),
        ("***", "***"),
        ("*a **", "***"),
        ("[*", "]"),
    ],
)
def test_nothing_is_cut_in_two(opening: str, closing: str) -> None:
    inside = "in " * 40
    text = f"{opening}{inside.strip()}{closing} {PADDING}"

    first = segments(text)[0]

    assert first.startswith(f"{opening}{inside.strip()}{closing} ")
    assert segments(*text) == segments(text)


@pytest.mark.parametrize(
    "literal",
    [
        "2 * 3",
        "a_b_c",
        "it costs $5 and",
        "a < b",
        "~one~",
        "\\* star",
        "\\`",
        "1]",
        "*" * 100,
        "$ x",
        "a ] b",
        "[a] (b",
    ],
)
def test_what_opens_nothing_does_not_hold_the_text_back(literal: str) -> None:
    text = f"{literal} {PADDING * 12}"

    assert len(segments(text)) > 5
    assert segments(*text) == segments(text)


def test_what_is_never_closed_holds_the_text_back_for_a_while_only() -> None:
    text = f"**open {PADDING * 50}"

    lengths = [len(segment) for segment in segments(text)]

    assert BOUND < lengths[0] < BOUND + 10
    assert lengths[1] < 2 * SEGMENT


def test_a_word_without_end_is_cut_too() -> None:
    assert [len(segment) for segment in segments("x" * 10_000)] == [2 * BOUND, 2 * BOUND, 10_000 - 4 * BOUND]


def test_wide_characters_are_cut_without_spaces() -> None:
    assert segments("日" * 100)[0] == "日" * SEGMENT


def test_a_space_before_a_line_feed_or_after_a_backslash_is_no_place_to_cut() -> None:
    text = "x" * SEGMENT + "\\ a  \nb \nc d"

    assert segments(text) == ["x" * SEGMENT + "\\ a  \nb \nc ", "d"]
