from __future__ import annotations

from collections.abc import Sequence

import pytest

from jp.render.grid import SAMPLE, Grid, fit_columns
from jp.render.inline import Inline
from jp.render.lines import Alignment
from jp.render.tables import cell_width
from jp.render.theme import Look

ALIGNMENTS: tuple[Alignment | None, ...] = (None, "right", "center")
BARE = Look()


def grid(head: Sequence[str], *rows: Sequence[str], width: int = 80, look: Look = BARE) -> list[str]:
    table = Grid(head, ALIGNMENTS[: len(head)], inline=Inline(look), look=look, width=width)
    lines = [line for row in rows for line in table.add(row)]
    return [*lines, *table.finish()]


def test_columns_are_aligned_and_no_wider_than_their_cells() -> None:
    assert grid(["name", "count", "what"], ["a", "1", "x"], ["日本語", "1000", "long"]) == [
        "name   │ count │ what",
        "───────┼───────┼─────",
        "a      │     1 │  x",
        "日本語 │  1000 │ long",
    ]


def test_wide_cells_are_wrapped_and_their_rows_ruled() -> None:
    lines = grid(["a", "b"], ["one two three", "1"], ["four", "1234567890"], width=18)

    assert lines == [
        "a     │          b",
        "──────┼───────────",
        "one   │          1",
        "two   │",
        "three │",
        "──────┼───────────",
        "four  │ 1234567890",
    ]
    assert max(map(cell_width, lines)) == 18


def test_a_table_with_too_many_columns_is_shown_row_by_row() -> None:
    assert grid(["one", "two", "three"], ["a", "b", "c"], ["d"], width=10) == [
        "one: a",
        "two: b",
        "three: c",
        "",
        "one: d",
        "two:",
        "three:",
    ]


def test_missing_cells_are_empty_and_none_is_lost() -> None:
    assert grid(["a", "b"], [], ["1", "2", "3"])[2:] == ["  │", "1 │ 2 | 3"]


def test_a_head_alone_is_a_table() -> None:
    assert grid(["a", "b"]) == ["a │ b", "──┼──"]


def test_styles_and_signs_follow_the_look() -> None:
    assert grid(["a", "b"], ["**c**", "d"], look=Look(colour=True)) == [
        "\x1b[1ma\x1b[0m\x1b[2m │ \x1b[0m\x1b[1mb\x1b[0m",
        "\x1b[2m──┼──\x1b[0m",
        "\x1b[1mc\x1b[0m\x1b[2m │ \x1b[0md",
    ]
    assert grid(["a", "b"], ["c", "d"], look=Look(unicode=False)) == ["a | b", "--+--", "c | d"]


def test_words_wider_than_their_column_are_cut() -> None:
    assert grid(["a", "b"], ["x" * 20, "y" * 20], width=23)[2:] == ["xxxxxxxxxx │ yyyyyyyyyy"] * 2


def test_a_long_table_is_shown_as_it_comes_once_its_columns_are_known() -> None:
    table = Grid(["a", "b"], [None, None], inline=Inline(Look()), look=Look(), width=20)

    awaited = [table.add(["x", "y"]) for _ in range(SAMPLE - 1)]
    first, second = table.add(["x", "y"]), table.add(["z", "longer than the others"])

    assert not any(awaited)
    assert first == ["a │ b", "──┼─────────────────", *["x │ y"] * SAMPLE]
    assert second == ["z │ longer than the", "  │ others"]
    assert table.finish() == []


@pytest.mark.parametrize(
    ("natural", "least", "available", "widths"),
    [
        ([3, 4], [3, 4], 10, [3, 4]),
        ([3, 40], [3, 5], 20, [3, 17]),
        ([30, 40], [3, 3], 20, [10, 10]),
        ([30, 40], [3, 3], 21, [11, 10]),
        ([30, 40], [16, 3], 20, [16, 4]),
        ([30, 40], [16, 16], 20, []),
        ([0, 0], [3, 3], 1, [1, 1]),
    ],
)
def test_the_widest_columns_give_way_first(
    natural: list[int], least: list[int], available: int, widths: list[int]
) -> None:
    assert fit_columns(natural, least, available) == widths
