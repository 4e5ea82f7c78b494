from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from jp.render.tables import Facts, Row, Table, Tree, cell_width, draw, plain_text
from jp.render.theme import Look

HEAD = ["ID", "TURNS", "TITLE"]
ROWS = [["jp-c1", "2", "A title"], ["jp-c22", "10", "日本語 and\n\x1b[31mmore"]]


def test_columns_are_aligned_and_cells_are_one_line() -> None:
    assert plain_text([Table(head=HEAD, rows=ROWS, right=frozenset({1}))]) == (
        "ID      TURNS  TITLE\n"
        "jp-c1       2  A title\n"
        "jp-c22     10  日本語 and more"
    )  # fmt: skip


def test_the_last_column_gives_way_to_the_width() -> None:
    assert plain_text([Table(head=HEAD, rows=ROWS)], width=28) == (
        "ID      TURNS  TITLE\n"
        "jp-c1   2      A title\n"
        "jp-c22  10     日本語 and m…"
    )  # fmt: skip


def test_a_row_never_exceeds_the_width() -> None:
    assert plain_text([Table(head=HEAD, rows=ROWS)], width=20).splitlines() == [
        "ID      TURNS  TITLE",
        "jp-c1   2      A ti…",
        "jp-c22  10     日本…",
    ]


def test_without_rows_there_is_nothing() -> None:
    assert plain_text([Table(head=HEAD, rows=[])]) == ""


def test_a_terminal_gets_a_rule_below_the_head_and_colors_only_where_they_are_wanted() -> None:
    table = Table(head=HEAD, rows=ROWS, right=frozenset({1}), keys=frozenset({0}))

    assert draw([table], Look(width=80)).splitlines() == [
        "ID      TURNS  TITLE",
        "──────────────────────────────",
        "jp-c1       2  A title",
        "jp-c22     10  日本語 and more",
    ]
    assert "\x1b[36mjp-c1" in draw([table], Look(width=80, color=True))
    assert "─" not in draw([table], Look(width=80, unicode=False))


def test_a_narrow_terminal_gets_short_numbers_and_is_told_which_columns_have_no_room() -> None:
    narrow = Table(head=["id", "tokens", "about"], rows=[["a", "1.2M", "words"]], note="(M: a million)")
    table = Table(head=["id", "tokens", "about"], rows=[["a", "1,234,567", "words"]], narrow=narrow)

    assert "1,234,567" in draw([table], Look(width=24))
    assert "1.2M" in draw([table], Look(width=19))
    assert draw([table], Look(width=12)).splitlines() == [
        "id  tokens",
        "──────────",
        "a   1.2M",
        "(M: a million)",
        "(no room for: about)",
    ]


def test_a_section_repeats_the_head_in_a_pipe_and_on_a_terminal() -> None:
    table = Table(head=["name"], rows=[["a"], ["b"]], sections=[("first:", 1), ("none:", 0), ("last:", 1)])

    assert plain_text([table]) == "first:\nname\na\n\nnone:\n\nlast:\nname\nb"
    assert draw([table], Look(width=20)) == "first:\nname\n────\na\n\nnone:\n\nlast:\nname\n────\nb"


def test_facts_are_a_panel_on_a_terminal_and_lines_in_a_pipe() -> None:
    facts = Facts(title="A title", rows=[("id", "jp-c1"), ("labels", "a, b")], widths=(8,))

    assert plain_text([facts]) == "id      jp-c1\nlabels  a, b"
    assert draw([facts], Look(width=40)).splitlines() == [
        "╭─ A title ─────╮",
        "│ id      jp-c1 │",
        "│ labels  a, b  │",
        "╰───────────────╯",
    ]


def test_a_tree_is_its_plain_text_in_a_pipe() -> None:
    tree = Tree(label="key = 1", branches=[Tree(label="a file")], plain="key = 1, from a file")

    assert plain_text([tree]) == "key = 1, from a file"
    assert draw([tree], Look(width=40)) == "key = 1\n└── a file"


HOSTILE = st.text(st.sampled_from("a [/]\\\n\x1b[31m\x9b\x07日́:"), max_size=30)


@given(texts=st.lists(HOSTILE, min_size=2, max_size=2), width=st.integers(20, 60))
def test_nothing_that_is_drawn_steers_the_terminal_or_exceeds_its_width(texts: list[str], width: int) -> None:
    row: Row = texts
    table = Table(head=["one", "two"], rows=[row])
    facts = Facts(title=texts[0], rows=[row], widths=(8,))
    tree = Tree(label=texts[0], branches=[Tree(label=texts[1])])

    for part in (table, facts, tree):
        drawn = re.sub(r"\x1b\[[0-9;]*m", "", draw([part], Look(width=width, color=True)))
        assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", drawn) is None
        assert max(map(cell_width, drawn.splitlines()), default=0) <= width


def test_a_text_among_parts_cannot_color_the_terminal() -> None:
    assert draw(["a\x1b[31mb", ""], Look(color=True)) == "ab\n"
