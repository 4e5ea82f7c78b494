from __future__ import annotations

import pytest

from jp.render.approval import Page, Position, Sheet, page_of, wrapped

DIFF = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n-old\n+new\n same ⟨ESC⟩x"


TOP = Position()


def page(*texts: str, start: Position = TOP, width: int = 80, rows: int = 10) -> Page:
    return page_of([Sheet(text=text) for text in texts], start, width=width, rows=rows, key="p")


def shown(page: Page) -> list[str]:
    return ["".join(text for _, text in row) for row in page.rows]


def test_a_diff_has_colours() -> None:
    assert [row[1:] for row in page(DIFF).rows] == [
        (("bold", "--- a"),),
        (("bold", "+++ b"),),
        (("ansicyan", "@@ -1,2 +1,2 @@"),),
        (("ansired", "-old"),),
        (("ansigreen", "+new"),),
        (("", " same "), (" reverse", "⟨ESC⟩"), ("", "x")),
    ]


def test_what_is_no_diff_has_none() -> None:
    assert {style for row in page("+ rm -rf /\n- x").rows for style, _ in row} == {""}


def test_a_long_line_goes_on_with_a_mark_and_wide_characters_take_their_room() -> None:
    assert shown(page("abcdefghij\n漢字漢字", width=8)) == ["│ abcde", "┆ fghij", "│ 漢字", "┆ 漢字"]
    assert page("abcdefghij", width=1).rows


def test_how_much_is_not_shown_is_said_to_the_character() -> None:
    first = page("one\ntwo\nthree" + "e" * 20, "four", width=10, rows=3)

    assert shown(first) == ["│ one", "│ two", "│ threeee"]
    assert first.omitted == "not on the screen: 2 lines, 22 characters; p shows more"
    assert first.after is not None
    second = page("one\ntwo\nthree" + "e" * 20, "four", width=10, rows=3, start=first.after)
    assert second.omitted == "not on the screen: 1 line, 4 characters below, 3 lines, 13 characters above; p goes on"
    assert second.after == Position(1)
    last = page("one\ntwo\nthree" + "e" * 20, "four", width=10, rows=3, start=Position(1))
    assert last.omitted == "not on the screen: 3 lines, 31 characters above; p starts again"
    assert last.after is None


def test_what_is_all_shown_leaves_nothing_to_say() -> None:
    assert (page("a\n\nb").omitted, page("a\n\nb").after) == ("", None)
    assert shown(page("a\n\nb\n")) == ["│ a", "│ ", "│ b", "│ "]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", [""]),
        ("a\n", ["a", ""]),
        ("one two three", ["one two ", "three"]),
        ("abcdefghijkl", ["abcdefghij", "kl"]),
    ],
)
def test_words_stay_whole_where_they_fit(text: str, rows: list[str]) -> None:
    assert list(wrapped(text, 10)) == rows
