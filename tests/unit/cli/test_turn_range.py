from __future__ import annotations

import pytest

from jp.app.values import parse_turn, parse_turns
from jp.conversation.forking import TurnRange
from jp.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", (2, 2)),
        ("-1", (4, 4)),
        ("1..3", (1, 3)),
        ("1..", (1, 4)),
        ("..1", (0, 1)),
        ("..", (0, 4)),
        ("-2..", (3, 4)),
        ("..-2", (0, 3)),
        ("3..99", (3, 4)),
    ],
)
def test_a_range_counts_from_0_or_from_the_end(text: str, expected: tuple[int, int]) -> None:
    assert parse_turns(text, 5, option="--turn") == TurnRange(first=expected[0], last=expected[1])


@pytest.mark.parametrize("text", ["5", "-6", "9..", "..-9"])
def test_turns_that_are_not_there_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="there is no such turn") as caught:
        parse_turns(text, 5, option="--turn")

    assert caught.value.hint == "of this conversation's turns they are 0 to 4"


@pytest.mark.parametrize("text", ["3..2", "-2..2"])
def test_a_range_that_ends_before_it_begins_is_called_reversed(text: str) -> None:
    with pytest.raises(UsageError, match="the range is reversed") as caught:
        parse_turns(text, 5, option="--turn")

    assert caught.value.hint == "write --turn 2..3: from the first turn to the last one"


def test_without_turns_there_is_none_to_name() -> None:
    with pytest.raises(UsageError) as caught:
        parse_turn("-1", 0, option="--fork")

    assert caught.value.hint == "of this conversation's turns there are none"


@pytest.mark.parametrize("text", ["", "x", "1...2", "1-2", "a..b"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--turn cannot be"):
        parse_turns(text, 5, option="--turn")


def test_one_turn_is_named_by_its_number() -> None:
    assert [parse_turn(text, 5, option="--fork") for text in ("0", "4", "-1", "-5")] == [0, 4, 4, 0]
    for text in ("5", "-6"):
        with pytest.raises(UsageError, match=f"--fork={text}: there is no such turn"):
            parse_turn(text, 5, option="--fork")
    with pytest.raises(UsageError, match=r"--fork cannot be '1\.\.2'"):
        parse_turn("1..2", 5, option="--fork")
