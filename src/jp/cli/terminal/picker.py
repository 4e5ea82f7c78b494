"""The picker: a list of conversations on the terminal, narrowed by typing."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from jp.app.targets import Candidate, Offer, label_text
from jp.app.values import ago
from jp.conversation.ids import ConversationId
from jp.render.sanitize import one_line
from jp.render.tables import cell_width, pad, truncate
from jp.render.tty import can_ask, open_terminal

_PREFIX = "jp-c"

Search = Callable[[str], Collection[ConversationId]]


def _no_search(text: str) -> Collection[ConversationId]:
    del text
    return ()


class PickerState(msgspec.Struct, frozen=True, kw_only=True):
    """A list and what is selected in it.

    `texts` are what each of `candidates` is searched in. `shown` are the indexes of those that match `filter`, by
    their titles first, and `selected` is a position in `shown`. `search` gives the ids of those that say a text.
    """

    candidates: tuple[Candidate, ...]
    texts: tuple[str, ...]
    shown: tuple[int, ...]
    filter: str = ""
    selected: int = 0
    search: Search = _no_search

    @property
    def choice(self) -> Candidate | None:
        """The selected candidate; None if nothing matches."""
        return self.candidates[self.shown[self.selected]] if self.shown else None


def open_list(candidates: Sequence[Candidate], *, text: str = "", search: Search = _no_search) -> PickerState:
    """Return the list as it opens, with `text` typed already."""
    state = PickerState(
        candidates=tuple(candidates),
        texts=tuple(map(_searched, candidates)),
        shown=tuple(range(len(candidates))),
        search=search,
    )
    return append_filter(state, text)


def append_filter(state: PickerState, text: str) -> PickerState:
    """Return the state with more of the filter."""
    visible = "".join(character if character.isprintable() else " " for character in text)
    return _filtered(state, state.filter + visible)


def delete_character(state: PickerState) -> PickerState:
    """Return the state without the last character of the filter."""
    return _filtered(state, state.filter[:-1])


def delete_word(state: PickerState) -> PickerState:
    """Return the state without the last word of the filter."""
    head, space, _ = state.filter.rstrip().rpartition(" ")
    return _filtered(state, head + space)


def clear_filter(state: PickerState) -> PickerState:
    """Return the state without a filter."""
    return _filtered(state, "")


def move_selection(state: PickerState, by: int) -> PickerState:
    """Return the state with another candidate selected, `by` places further down; not beyond the ends."""
    last = max(0, len(state.shown) - 1)
    return replace(state, selected=min(max(0, state.selected + by), last))


def first_line(state: PickerState, rows: int, *, top: int) -> int:
    """Return the first visible position in `rows` lines, after `top`: the selected one is visible."""
    highest = max(0, len(state.shown) - rows)
    return min(max(min(top, state.selected), state.selected - rows + 1), highest)


def _searched(candidate: Candidate) -> str:
    labels = " ".join(label_text(name, value) for name, value in sorted(candidate.labels.items()))
    return f"{candidate.title}\n{candidate.id.digits}\n{labels}".casefold()


def _filtered(state: PickerState, text: str) -> PickerState:
    """Return the state with another filter. The selection stays as long as it matches."""
    # Of an id only the digits count: with its prefix, the letters of that would match everything.
    words = [word.removeprefix(_PREFIX) for word in text.casefold().split()]
    said = state.search(text)
    found = [
        index
        for index, candidate in enumerate(state.candidates)
        if all(word in state.texts[index] for word in words) or candidate.id in said
    ]
    titles = [state.texts[index].partition("\n")[0] for index in found]
    by_title = [all(word in title for word in words) for title in titles]
    shown = tuple(
        index for in_title in (True, False) for index, is_so in zip(found, by_title, strict=True) if is_so is in_title
    )
    choice = state.shown[state.selected] if state.shown else None
    leads = choice in found and (by_title[found.index(choice)] or not any(by_title))
    selected = shown.index(choice) if choice is not None and leads and text else 0
    return replace(state, filter=text, shown=shown, selected=selected)


Style = Literal["", "bold", "reverse", "cursor"]
Fragment = tuple[Style, str]

_KEYS = "type to narrow, ↑ ↓ to move, Enter to take it, Esc to leave"
_PREVIEW_ROWS = 5
_ROWS_WITH_PREVIEW = 14
_AGE_WIDTH = 6


class PickerView(msgspec.Struct, frozen=True, kw_only=True):
    """A list on the screen. `preview` is the last request of the selected conversation; `now` is in seconds."""

    state: PickerState
    active: ConversationId | None
    now: float
    preview: str
    columns: int
    rows: int
    top: int


def list_rows(rows: int) -> int:
    """Return how many of a terminal's `rows` the list gets."""
    return max(1, rows - 2 - (_PREVIEW_ROWS if rows >= _ROWS_WITH_PREVIEW else 0))


def draw(view: PickerView) -> list[Fragment]:
    """Return the whole screen; the style `cursor` marks the cursor."""
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


def _head(state: PickerState, width: int) -> list[Fragment]:
    count = f"{len(state.shown):,} of {len(state.candidates):,}"
    room = max(1, width - len(count) - 4)
    filter_text = state.filter
    while cell_width(filter_text) > room:
        filter_text = filter_text[1:]
    fill = " " * max(1, width - 2 - cell_width(filter_text) - len(count))
    fits = width > len(count) + 4
    return [("bold", "> "), ("", filter_text), ("cursor", ""), ("", f"{fill}{count}" if fits else "")]


def _list(view: PickerView, width: int) -> Iterator[list[Fragment]]:
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


def _line(candidate: Candidate, view: PickerView, *, is_selected: bool) -> str:
    mark = f"{'>' if is_selected else ' '} {'*' if candidate.id == view.active else ' '}"
    age = pad(ago(view.now - candidate.last_activity), _AGE_WIDTH, right=True)
    words = ["pinned"] if candidate.pinned_at else []
    words += ["archived"] if candidate.is_archived else []
    words += [label_text(name, candidate.labels[name]) for name in sorted(candidate.labels)]
    marks = f"  ({one_line(', '.join(words))})" if words else ""
    return f"{mark} {candidate.id}  {age}  {one_line(candidate.title)}{marks}"


def _preview(view: PickerView, width: int) -> Iterator[list[Fragment]]:
    if view.rows < _ROWS_WITH_PREVIEW:
        return
    yield [_plain("─" * width, width)]
    lines = [one_line(line) for line in view.preview.splitlines() if line.strip()]
    for number in range(_PREVIEW_ROWS - 1):
        yield [_plain(f"  {lines[number]}" if number < len(lines) else "", width)]


def _plain(text: str, width: int) -> Fragment:
    return "", truncate(text, width)


if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.input.vt100 import Vt100Input
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import Output

    from jp.app.options import Options

    App = Application[ConversationId | None]

_SAME_KEY_SECS = 0.1
"""Within this time what follows an Escape belongs to it, as in the sequence of an arrow."""

_ALL = 10**9
_STYLES = {"cursor": "[SetCursorPosition]"}


def can_pick() -> bool:
    """Return whether stdin and stderr are a person's terminal that can show a picker."""
    return os.isatty(0) and os.isatty(2) and os.environ.get("TERM", "dumb") != "dumb" and can_ask()


class TerminalPicker:
    """Lets a person at the terminal choose. What is typed is searched in titles, labels and what was said."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def pick(self, offer: Offer) -> ConversationId:
        """Let a person choose.

        Raises:
            KeyboardInterrupt: they left without a choice.
        """
        from jp.cli.terminal.approval import run_question

        return run_question(partial(self.pick_async, offer))

    async def pick_async(self, offer: Offer) -> ConversationId:
        """See `pick`: for who has an event loop already. It may be cancelled."""
        from jp.app.grep import ContentSearch

        choice = await _pick(offer, ContentSearch(self._options))
        if choice is None:
            raise KeyboardInterrupt
        return choice


async def _pick(offer: Offer, search: Search) -> ConversationId | None:
    """Return the choice; None if the person left, or the terminal is gone."""
    try:
        with open_terminal() as (keys, output, _):
            application = _Picker(offer, search).application(keys, output)
            return await application.run_async(handle_sigint=False, set_exception_handler=False)
    except (EOFError, OSError):
        return None


class _Picker:
    def __init__(self, offer: Offer, search: Search) -> None:
        self._offer = offer
        self._state = open_list(offer.candidates, text=offer.text, search=search)
        self._top = 0
        self._previews: dict[ConversationId, str] = {}

    def application(self, read: Vt100Input, output: Output) -> App:
        from prompt_toolkit.application import Application
        from prompt_toolkit.layout import Layout, Window
        from prompt_toolkit.layout.controls import FormattedTextControl
        from prompt_toolkit.output import ColorDepth

        def lines() -> StyleAndTextTuples:
            size = output.get_size()
            return self._lines(columns=size.columns, rows=size.rows)

        control = FormattedTextControl(lines, focusable=True, show_cursor=True)
        application: App = Application(
            layout=Layout(Window(control, always_hide_cursor=False)),
            key_bindings=self._keys(output),
            full_screen=True,
            input=read,
            output=output,
            color_depth=ColorDepth.DEPTH_1_BIT,
        )
        application.ttimeoutlen = application.timeoutlen = _SAME_KEY_SECS
        return application

    def _lines(self, *, columns: int, rows: int) -> StyleAndTextTuples:
        self._top = first_line(self._state, list_rows(rows), top=self._top)
        view = PickerView(
            state=self._state,
            active=self._offer.active,
            now=self._offer.now,
            preview=self._preview(),
            columns=columns,
            rows=rows,
            top=self._top,
        )
        return [(_STYLES.get(style, style), text) for style, text in draw(view)]

    def _preview(self) -> str:
        choice = self._state.choice
        if choice is None:
            return ""
        if choice.id not in self._previews:
            self._previews[choice.id] = self._offer.preview(choice)
        return self._previews[choice.id]

    def _keys(self, output: Output) -> KeyBindings:
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.keys import Keys

        keys = KeyBindings()

        def page() -> int:
            return list_rows(output.get_size().rows)

        changes: tuple[tuple[tuple[str, ...], Callable[[KeyPressEvent], PickerState]], ...] = (
            (("up", "c-p", "c-k"), lambda _: move_selection(self._state, -1)),
            (("down", "c-n", "c-j", "tab"), lambda _: move_selection(self._state, 1)),
            (("pageup",), lambda _: move_selection(self._state, -page())),
            (("pagedown",), lambda _: move_selection(self._state, page())),
            (("home",), lambda _: move_selection(self._state, -_ALL)),
            (("end",), lambda _: move_selection(self._state, _ALL)),
            (("backspace",), lambda _: delete_character(self._state)),
            (("c-w",), lambda _: delete_word(self._state)),
            (("c-u",), lambda _: clear_filter(self._state)),
            ((Keys.Any, Keys.BracketedPaste), lambda event: append_filter(self._state, event.data)),
        )
        for names, change in changes:
            for name in names:
                keys.add(name)(partial(self._apply, change))
        keys.add("enter", eager=True)(self._take)
        for name in ("escape", "c-c", "c-d", "c-g"):
            keys.add(name, eager=True)(_leave)
        return keys

    def _apply(self, change: Callable[[KeyPressEvent], PickerState], event: KeyPressEvent) -> None:
        self._state = change(event)

    def _take(self, event: KeyPressEvent) -> None:
        choice = self._state.choice
        if choice is not None:
            event.app.exit(result=choice.id)


def _leave(event: KeyPressEvent) -> None:
    event.app.exit(result=None)
