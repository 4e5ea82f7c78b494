from __future__ import annotations

from jp.render.tables import text_table

HEAD = ["ID", "TURNS", "TITLE"]
ROWS = [["jp-c1", "2", "A title"], ["jp-c22", "10", "日本語 and\n\x1b[31mmore"]]


def test_columns_are_aligned_and_cells_are_one_line() -> None:
    assert text_table(HEAD, ROWS, right=frozenset({1})) == (
        "ID      TURNS  TITLE\n"
        "jp-c1       2  A title\n"
        "jp-c22     10  日本語 and more\n"
    )  # fmt: skip


def test_the_last_column_gives_way_to_the_width() -> None:
    assert text_table(HEAD, ROWS, width=28) == (
        "ID      TURNS  TITLE\n"
        "jp-c1   2      A title\n"
        "jp-c22  10     日本語 and m…\n"
    )  # fmt: skip


def test_a_row_never_exceeds_the_width() -> None:
    assert text_table(HEAD, ROWS, width=20).splitlines() == [
        "ID      TURNS  TITLE",
        "jp-c1   2      A ti…",
        "jp-c22  10     日本…",
    ]


def test_without_rows_there_is_nothing() -> None:
    assert text_table(HEAD, []) == ""
