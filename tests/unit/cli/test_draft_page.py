from __future__ import annotations

from jp.app.drafts import choose_mark, text_above, trimmed

CUT = "<!-- jp 0123abcd: this line and everything below it is not asked -->"


def test_a_page_whose_line_was_removed_is_all_text() -> None:
    assert text_above("one\ntwo", "0123abcd") == "one\ntwo"


def test_the_line_counts_with_other_line_ends_and_with_white_space_after_it() -> None:
    assert text_above(f"one\r\n\r\n{CUT} \r\nmore", "0123abcd") == "one\r\n\r"


def test_a_line_that_only_contains_the_cut_line_is_text() -> None:
    assert text_above(f"> {CUT}\n{CUT}\n", "0123abcd") == f"> {CUT}"


def test_a_mark_does_not_stand_in_the_text() -> None:
    assert choose_mark("a 11111111 b", iter(["11111111", "22222222"])) == "22222222"


def test_what_is_asked_has_no_blank_lines_around_it_and_line_feeds_only() -> None:
    assert trimmed(" \t\n\n  indented\r\nlast \n\n") == "  indented\nlast"
    assert trimmed("\n \n") == ""
