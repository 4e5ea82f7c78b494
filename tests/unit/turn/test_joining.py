from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.turn.joining import LONGEST, SHORTEST, Joiner


def join(before: str, *pieces: str) -> str:
    joiner = Joiner(before)
    return "".join([*(joiner.feed(piece) for piece in pieces), joiner.flush()])


@pytest.mark.parametrize(
    ("before", "pieces", "expected"),
    [
        ("The cuts act as stress risers.", ("act as stress risers. They", " spread load."), " They spread load."),
        ("The cuts act as stress risers.", ("act as", " stress risers.", " They"), " They"),
        ("The cuts act", (" as stress risers.",), " as stress risers."),
        ("abcabcabc", ("abcabc", "abcabcX"), "abcX"),
        ("end", ("end of it",), "end of it"),
        ("", ("anything",), "anything"),
        ("the whole repeated", ("the whole repeated",), ""),
    ],
    ids=["in one piece", "in pieces", "nothing repeated", "periodic", "too short", "no text before", "only repetition"],
)
def test_a_continuation_loses_what_it_repeats(before: str, pieces: tuple[str, ...], expected: str) -> None:
    assert join(before, *pieces) == expected


@given(st.text(min_size=1, max_size=60), st.text(max_size=60), st.integers(0, 60), st.integers(1, 9))
def test_how_a_continuation_is_cut_does_not_matter(before: str, rest: str, repeated: int, size: int) -> None:
    text = before[len(before) - min(repeated, len(before)) :] + rest

    pieces = [text[start : start + size] for start in range(0, len(text), size)]

    assert join(before, *pieces) == join(before, text)


@given(st.text(alphabet="ab ", max_size=40), st.text(alphabet="ab ", max_size=40))
def test_only_a_repetition_of_the_end_is_ever_dropped(before: str, text: str) -> None:
    joined = join(before, text)

    dropped = text[: len(text) - len(joined)]
    assert text.endswith(joined)
    assert dropped == "" or (before.endswith(dropped) and len(dropped) >= SHORTEST)


def test_no_more_is_held_back_than_can_be_a_repetition() -> None:
    joiner = Joiner("x" * (2 * LONGEST))

    assert joiner.feed("x" * (LONGEST + 1)) == "x"
    assert joiner.feed("y") == "y"
