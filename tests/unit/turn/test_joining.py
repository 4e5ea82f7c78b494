from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.compaction.status_lines import anchor_of
from jp.turn.builder import Follower, Joiner, StrayError


def repeated(unit: str, count: int) -> str:
    return unit * count


TEXTS = st.one_of(
    st.text(min_size=1, max_size=400),
    st.text(alphabet="ab", min_size=1, max_size=300),
    st.text(alphabet="13 \n", min_size=1, max_size=300),
    st.builds(repeated, st.text(min_size=1, max_size=12), st.integers(1, 60)),
)


def join(before: str, *pieces: str) -> str:
    joiner = Joiner(before)
    return "".join([*(joiner.feed(piece) for piece in pieces), joiner.finish()])


def cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


LONG = "The cuts act as stress risers, so that the load of a beam is borne by less than its width."


@pytest.mark.parametrize(
    ("before", "pieces", "expected"),
    [
        (LONG, (f"{anchor_of(LONG)} They", " spread load."), " They spread load."),
        (LONG, (LONG[:30], LONG[30:], " They"), " They"),
        (LONG, (f"\n{LONG} They",), " They"),
        (LONG, ("less than its", " width. They"), " They"),
        ("13", ("1337",), "37"),
        ("1", ("11",), "1"),
        ("", ("anything",), "anything"),
        ("", ("\n ", " anything"), "\n  anything"),
        ("", ("\n ",), "\n "),
        ("the whole repeated", ("the whole repeated",), ""),
    ],
    ids=[
        *("anchor", "started over", "after white space", "another end", "short", "one character"),
        *("nothing before", "white space first", "white space only", "only repetition"),
    ],
)
def test_a_continuation_loses_what_it_repeats(before: str, pieces: Sequence[str], expected: str) -> None:
    assert join(before, *pieces) == expected


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("13", "37"),
        (LONG, "As I said, the cuts act as stress risers."),
        (LONG, "width. They spread load."),
        (LONG, ""),
        (LONG, LONG[:50]),
        ("so it is. And so it is.", "so it is. Then"),
    ],
    ids=["nothing repeated", "other words", "chance", "nothing", "broken off", "at two places"],
)
def test_what_has_no_known_place_is_not_taken(before: str, text: str) -> None:
    with pytest.raises(StrayError):
        join(before, text)


@given(TEXTS, st.data())
def test_a_model_that_begins_with_the_anchor_and_one_that_starts_over_are_told_apart(
    text: str, data: st.DataObject
) -> None:
    end = data.draw(st.integers(0, len(text)))
    size = data.draw(st.integers(1, 9))
    before = text[:end] if text[:end].strip() else ""

    for said in (anchor_of(before) + text[len(before) :], text):
        assert before + join(before, *cut(said, size)) == text


@given(st.text(min_size=1, max_size=60), st.text(max_size=60), st.integers(1, 9))
def test_how_a_continuation_is_cut_does_not_matter(before: str, said: str, size: int) -> None:
    def joined(*pieces: str) -> str | None:
        try:
            return join(before, *pieces)
        except StrayError:
            return None

    assert joined(*cut(said, size)) == joined(said)


@given(TEXTS, TEXTS)
def test_only_an_end_of_the_text_is_ever_dropped(before: str, said: str) -> None:
    try:
        joined = join(before, said)
    except StrayError:
        return

    dropped = said[: len(said) - len(joined)]
    assert said.endswith(joined)
    assert before.endswith(dropped.lstrip())


@pytest.mark.parametrize("text", ["a" * 3000, "ab" * 2000, LONG * 30], ids=["one character", "two", "sentences"])
def test_an_anchor_is_an_end_of_the_text_that_does_not_begin_like_it(text: str) -> None:
    anchor = anchor_of(text)

    assert text.endswith(anchor)
    assert anchor == text or (not text.startswith(anchor) and len(anchor) <= 130)


@pytest.mark.parametrize(
    ("said", "expected"),
    [("", ""), ("END", ""), ("END.", ""), ("Look:", ""), ("I call it now.", "I call it now."), ("Look: now", "now")],
)
def test_what_a_model_says_before_the_call_that_was_missing_is_kept_without_repetition(
    said: str, expected: str
) -> None:
    follower = Follower("Look:")
    assert follower.feed(said) == ""

    assert follower.call().strip() == expected
    assert (follower.feed("more"), follower.finish()) == ("more", "")


@pytest.mark.parametrize("said", ["", "END", " Look:\n"])
def test_nothing_follows_a_complete_message_where_the_model_says_so(said: str) -> None:
    follower = Follower("Look:")
    follower.feed(said)

    assert follower.finish() == ""


def test_another_answer_after_a_complete_one_is_not_taken() -> None:
    follower = Follower("Look:")
    follower.feed("Here is what I see")

    with pytest.raises(StrayError):
        follower.finish()


def test_a_call_does_not_bring_out_text_whose_place_is_not_known() -> None:
    joiner = Joiner(LONG)

    assert joiner.feed(LONG[:20]) == ""
    assert joiner.call() == ""
    with pytest.raises(StrayError):
        joiner.end_block()


def test_a_repetition_that_stands_at_several_places_joins_nothing() -> None:
    before = f"say it twice: {'ten letters ' * 2}and again ten letters "

    with pytest.raises(StrayError):
        join(before, "ten letters and then some more words that are new")
