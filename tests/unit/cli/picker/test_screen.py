from __future__ import annotations

import pytest

from jp.app.targets import Candidate
from jp.cli.terminal.picker import PickerState, PickerView, append_filter, draw, list_rows, move_selection, open_list
from jp.conversation.ids import ConversationId
from jp.render.tables import cell_width

LEXER = Candidate(id=ConversationId.at(17800000001), title="The lexer", last_activity=3000.0)
NOTES = Candidate(
    id=ConversationId.at(17800000002),
    title="Notes\x1b[31m on 日本語",
    labels={"area": "docs", "odd": ""},
    last_activity=0.0,
    pinned_at="2026-01-01T00:00:00Z",
    is_archived=True,
)


def view(state: PickerState, *, columns: int = 90, rows: int = 24, preview: str = "") -> PickerView:
    return PickerView(state=state, active=LEXER.id, now=3600.0, preview=preview, columns=columns, rows=rows, top=0)


def lines(shown: PickerView) -> list[str]:
    return "".join(text for _, text in draw(shown)).split("\n")


def test_each_line_has_an_id_an_age_a_title_and_what_sets_it_apart() -> None:
    shown = lines(view(open_list([LEXER, NOTES]), rows=6))

    assert [line.rstrip() for line in shown] == [
        "> " + " " * 81 + "2 of 2",
        "> * jp-c17800000001  10 min  The lexer",
        "    jp-c17800000002     1 h  Notes on 日本語  (pinned, archived, area=docs, odd)",
        "",
        "",
        "type to narrow, ↑ ↓ to move, Enter to take it, Esc to leave",
    ]


def test_what_is_selected_is_marked_and_reversed() -> None:
    fragments = draw(view(move_selection(open_list([LEXER, NOTES]), 1), rows=6))

    (reversed_text,) = [text for style, text in fragments if style == "reverse"]
    assert reversed_text.startswith(">   jp-c17800000002")
    assert {style for style, _ in fragments} == {"", "bold", "cursor", "reverse"}


def test_the_last_request_is_shown_where_there_is_room() -> None:
    shown = lines(view(open_list([LEXER]), rows=14, preview="why\x1b]0;x\x07 does\n\n  it fail?\n" + "more\n" * 9))

    assert shown[-6:-1] == ["─" * 89, "  why does", "  it fail?", "  more", "  more"]
    assert len(shown) == 14
    assert "  why does" not in lines(view(open_list([LEXER]), rows=13, preview="why does"))


def test_an_empty_list_says_so() -> None:
    assert "  nothing matches" in lines(view(append_filter(open_list([LEXER]), "zzz")))
    assert "  there is nothing to choose from" in lines(view(open_list([])))


@pytest.mark.parametrize("columns", [1, 2, 9, 20, 80, 200])
@pytest.mark.parametrize("rows", [1, 2, 3, 14, 60])
def test_nothing_is_wider_or_higher_than_the_terminal(columns: int, rows: int) -> None:
    state = append_filter(open_list([LEXER, NOTES] * 50), "e" * 3)
    for each in (state, open_list([LEXER, NOTES] * 50)):
        shown = lines(view(each, columns=columns, rows=rows, preview="日本語 " * 100))

        assert len(shown) <= rows
        assert max(map(cell_width, shown)) <= max(columns - 1, 3)


def test_the_list_has_what_the_rest_leaves() -> None:
    assert [list_rows(rows) for rows in (1, 3, 13, 14, 24)] == [1, 1, 11, 7, 17]
