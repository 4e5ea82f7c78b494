from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.render.status_line import Flow
from jp.render.tables import cell_width


def flowed(text: str, width: int = 10, *, prefix: str = "") -> str:
    flow = Flow(width, prefix=prefix)
    return flow.feed(text) + flow.finish()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("one two three four", "one two\nthree four"),
        ("one two  \nthree", "one two\nthree"),
        ("  in  dented  words", "  in\ndented\nwords"),
        ("a\n\n\nb", "a\n\n\nb"),
        ("a\tb", "a    b"),
        ("see https://example.org/long now", "see\nhttps://example.org/long\nnow"),
        ("字字字字字字字", "字字字字字\n字字"),
        ("é is äöü and ß", "é is äöü\nand ß"),
    ],
)
def test_lines_break_between_words_and_keep_their_indents(text: str, shown: str) -> None:
    assert flowed(text) == shown


def test_every_line_has_the_prefix() -> None:
    assert flowed("one two three\n\nfour", 9, prefix="| ") == "| one two\n| three\n|\n| four"


def test_a_word_is_given_out_as_soon_as_it_is_whole() -> None:
    flow = Flow(10)

    assert [flow.feed(piece) for piece in ("on", "e tw", "o ", "thr", "ee")] == ["", "one", " two", "", ""]
    assert flow.finish() == "\nthree"
    assert flow.feed("new ") == "new"


def test_a_word_without_an_end_is_given_out_all_the_same() -> None:
    flow = Flow(10)

    assert flow.feed("a" * 5000) == "a" * 5000


WORDS = st.text(alphabet="ab é字\n\t ", max_size=200)


@given(text=WORDS, width=st.integers(4, 30))
def test_nothing_but_white_space_changes_and_no_line_is_too_wide_but_for_a_single_word(text: str, width: int) -> None:
    shown = flowed(text, width)

    assert "".join(shown.split()) == "".join(text.split())
    for line in shown.split("\n"):
        assert cell_width(line) <= width or len(line.split()) == 1


@given(text=WORDS, cuts=st.sets(st.integers(0, 200)), width=st.integers(4, 30))
def test_what_is_shown_does_not_depend_on_the_pieces_in_which_words_come(text: str, cuts: set[int], width: int) -> None:
    flow = Flow(width)
    marks = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    pieces = [text[start:end] for start, end in pairwise(marks)]

    assert "".join(map(flow.feed, pieces)) + flow.finish() == flowed(text, width)
