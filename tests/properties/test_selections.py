"""Selectors of `jp` URIs: one spelling for one meaning, and never a turn that is not there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jp.attachment.base import AttachmentError
from jp.attachment.conversation import CONTENTS, Selection, TurnRange, parse_selection

BOUNDS = st.integers(-12, 12)
NUMBERS = st.sets(st.integers(0, 15)).map(sorted)
CONTENT = st.sets(st.sampled_from(CONTENTS), min_size=1).map(lambda found: tuple(c for c in CONTENTS if c in found))
WRITTEN = st.from_regex(
    r"jp:(//)?(jp-c)?[0-9]{1,4}(\?(select=[autr*,]{0,4}:?-?[0-9]?(\.\.)?-?[0-9]?)?&?(raw)?)?", fullmatch=True
)


@given(WRITTEN)
def test_what_is_canonical_stays_as_it_is(uri: str) -> None:
    try:
        selection = parse_selection(uri)
    except AttachmentError:
        return

    assert parse_selection(selection.uri).uri == selection.uri


@given(CONTENT, st.tuples(BOUNDS, BOUNDS), st.sampled_from(["no", "entries", "all"]), NUMBERS)
def test_a_canonical_uri_selects_the_same(
    contents: tuple[str, ...], bounds: tuple[int, int], raw: str, numbers: list[int]
) -> None:
    start, end = bounds
    written = f"jp:jp-c5?select={','.join(contents)}:{start}..{end}" + {"no": "", "entries": "&raw"}.get(
        raw, "&raw=all"
    )
    try:
        selection = parse_selection(written)
    except AttachmentError:
        assert start > end
        return
    again = parse_selection(selection.uri)

    assert (again.contents, again.raw) == (contents, raw)
    assert again.turns.of(numbers) == TurnRange(start, end).of(numbers)
    assert set(again.turns.of(numbers)) <= set(numbers)


@given(st.integers(1, 20), NUMBERS)
def test_minus_n_stands_for_the_last_n_turns(count: int, numbers: list[int]) -> None:
    assert parse_selection(f"jp:1?select=-{count}").turns.of(numbers) == tuple(numbers[-count:])


@given(st.integers(0, 10**18 - 1).map(str))
def test_a_whole_conversation_has_the_shortest_uri(digits: str) -> None:
    assert Selection(digits=digits).uri == f"jp:jp-c{digits}"
    assert parse_selection(f"jp:jp-c{digits}") == Selection(digits=digits)
