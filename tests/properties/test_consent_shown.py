"""What a person is shown decodes to what runs, whatever the text, and nothing of it is invisible."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from escapes import decode, decode_arguments, decode_rows
from jp.conversation.entries import JsonObject
from jp.render.approval import Page, Position, Sheet, argument_lines, columns, page_of
from jp.render.sanitize import escape, escape_line
from screen import Screen

HOSTILE = "\x1b\x07\x9b\x9d\x9c\r\n\t\x08 \u202e\u2066\u200b\u200d\u0301\u20dd\ufe0f\U000e0041\ud800"
MORE = "⟨⟩\u3008*\u00d7│┆\\U+a\u0430漢"
ANY = st.text(st.one_of(st.characters(codec=None), st.sampled_from(HOSTILE + MORE)))
RUNS = st.lists(
    st.tuples(st.one_of(st.characters(codec=None), st.sampled_from(HOSTILE + MORE)), st.integers(1, 200))
).map(lambda runs: "".join(char * count for char, count in runs))
TEXTS = st.one_of(ANY, RUNS)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(-(2**53), 2**53), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4)


@given(TEXTS)
def test_escaped_text_is_printable_and_decodes_to_the_text(text: str) -> None:
    for escaped in (escape(text), escape_line(text)):
        assert decode(escaped) == text
        assert all(char.isprintable() or char == "\n" for char in escaped)
    assert "\n" not in escape_line(text)
    assert not any(line.endswith(" ") for line in escape(text).split("\n"))


@given(TEXTS)
def test_a_terminal_shows_every_character_of_escaped_text(text: str) -> None:
    escaped = escape(text)

    assert Screen(100_000).feed(escaped).lines == escaped.split("\n")


@given(ARGUMENTS)
def test_arguments_decode_to_what_they_are(arguments: JsonObject) -> None:
    assert decode_arguments(argument_lines(arguments)) == arguments


@given(st.lists(TEXTS, min_size=1, max_size=3), st.integers(3, 60), st.integers(1, 30))
def test_pages_have_all_of_it_in_rows_that_fit_and_say_how_much_is_left(
    texts: list[str], width: int, rows: int
) -> None:
    sheets = [Sheet(text=escape(text)) for text in texts]
    found: list[list[str]] = [[] for _ in texts]
    place: Position | None = Position()
    while place is not None:
        page = page_of(sheets, place, width=width, rows=rows, key="p")
        drawn = ["".join(text for _, text in row) for row in page.rows]
        assert 1 <= len(page.rows) <= rows
        assert all(columns(row) <= max(width, 5) + 1 for row in drawn)
        assert not any(row.endswith(" ") and row[2:].strip() for row in drawn)
        found[place.sheet] += drawn
        assert_counted(sheets, place, page)
        place = page.after

    assert [decode(decode_rows(lines)) for lines in found] == texts


def assert_counted(sheets: list[Sheet], start: Position, page: Page) -> None:
    """What a page says to be elsewhere is what it does not show."""
    total = sum(len(sheet.text) - sheet.text.count("\n") for sheet in sheets)
    shown = sum(len(text) for row in page.rows for _, text in row[1:])
    counts = [int(word.replace(",", "")) for word in words_before(page.omitted, "character")]
    assert sum(counts) == total - shown
    assert bool(page.omitted) == (page.after is not None or start != Position())


def words_before(text: str, noun: str) -> list[str]:
    words = text.split()
    return [before for before, word in pairwise(words) if word.startswith(noun)]
