"""How the picker looks: lines of styled text for a terminal of some size.

There are no colors: what is selected is reversed and has a mark before it, so it can be told on a light and a dark
terminal and without any style.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from jp.cli.candidates import Candidate
from jp.cli.labels import label_text
from jp.cli.moments import ago
from jp.cli.picker.state import State, first_line
from jp.conversation.ids import ConversationId
from jp.render.sanitize import one_line
from jp.render.tables import cell_width, pad, truncate

Style = Literal["", "bold", "reverse", "cursor"]
Fragment = tuple[Style, str]

_KEYS = "type to narrow, ↑ ↓ to move, Enter to take it, Esc to leave"
_PREVIEW_ROWS = 5
_ROWS_WITH_PREVIEW = 14
_AGE_WIDTH = 6


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a list. `preview` is the last request of what is selected; `now` is in seconds."""

    state: State
    active: ConversationId | None
    now: float
    preview: str
    columns: int
    rows: int
    top: int


def list_rows(rows: int) -> int:
    """How many lines of a terminal's `rows` the list has."""
    return max(1, rows - 2 - (_PREVIEW_ROWS if rows >= _ROWS_WITH_PREVIEW else 0))


def draw(view: View) -> list[Fragment]:
    """The whole screen; the style `cursor` is where the cursor stands."""
    width = max(1, view.columns - 1)  # a character in the last column would wrap in some terminals
    lines = [
        _head(view.state, width),
        *_list(view, width),
        *_preview(view, width),
        [_plain(_KEYS, width)],
    ]
    kept = lines[: max(1, view.rows)]
    newline: Fragment = ("", "\n")
    return [fragment for number, line in enumerate(kept) for fragment in ([newline, *line] if number else line)]


def _head(state: State, width: int) -> list[Fragment]:
    count = f"{len(state.shown):,} of {len(state.candidates):,}"
    room = max(1, width - len(count) - 4)
    filter_text = state.filter
    while cell_width(filter_text) > room:
        filter_text = filter_text[1:]
    fill = " " * max(1, width - 2 - cell_width(filter_text) - len(count))
    fits = width > len(count) + 4
    return [("bold", "> "), ("", filter_text), ("cursor", ""), ("", f"{fill}{count}" if fits else "")]


def _list(view: View, width: int) -> Iterator[list[Fragment]]:
    state, rows = view.state, list_rows(view.rows)
    top = first_line(state, rows, top=view.top)
    shown = state.shown[top : top + rows]
    for position, index in enumerate(shown, start=top):
        candidate = state.candidates[index]
        is_selected = position == state.selected
        line = truncate(_line(candidate, view, is_selected=is_selected), width)
        yield [("reverse", pad(line, width)) if is_selected else ("", line)]
    nothing = [_plain("  nothing matches" if state.candidates else "  there is nothing to choose from", width)]
    missing = rows - len(shown)
    if missing and not shown:
        yield nothing
        missing -= 1
    for _ in range(missing):
        yield [("", "")]


def _line(candidate: Candidate, view: View, *, is_selected: bool) -> str:
    mark = f"{'>' if is_selected else ' '} {'*' if candidate.id == view.active else ' '}"
    age = pad(ago(view.now - candidate.last_activity), _AGE_WIDTH, right=True)
    words = ["pinned"] if candidate.pinned_at else []
    words += ["archived"] if candidate.is_archived else []
    words += [label_text(name, candidate.labels[name]) for name in sorted(candidate.labels)]
    marks = f"  ({one_line(', '.join(words))})" if words else ""
    return f"{mark} {candidate.id}  {age}  {one_line(candidate.title)}{marks}"


def _preview(view: View, width: int) -> Iterator[list[Fragment]]:
    if view.rows < _ROWS_WITH_PREVIEW:
        return
    yield [_plain("─" * width, width)]
    lines = [one_line(line) for line in view.preview.splitlines() if line.strip()]
    for number in range(_PREVIEW_ROWS - 1):
        yield [_plain(f"  {lines[number]}" if number < len(lines) else "", width)]


def _plain(text: str, width: int) -> Fragment:
    return "", truncate(text, width)
