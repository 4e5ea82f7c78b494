"""The picker on the terminal. Its keys and its looks are on the controlling terminal, whatever stdout is."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from jp.cli.candidates import Candidate
from jp.cli.picker.screen import View, draw, list_rows
from jp.cli.picker.state import State, cleared, erased, first_line, moved, opened, typed, word_erased
from jp.conversation.ids import ConversationId
from jp.render.tty import can_ask, open_terminal

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.input.vt100 import Vt100Input
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import Output

    App = Application[ConversationId | None]

_SAME_KEY_SECS = 0.1
"""Within this time what follows an Escape belongs to it, as in the sequence of an arrow."""

_ALL = 10**9
_STYLES = {"cursor": "[SetCursorPosition]"}


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What is to choose from, in its order. `text` is typed already; `preview` gives the last request of one."""

    candidates: Sequence[Candidate]
    preview: Callable[[Candidate], str]
    now: float
    active: ConversationId | None = None
    text: str = ""


def can_pick() -> bool:
    """Whether a person sits at a terminal that can show a picker, and stdin and stderr are their terminal."""
    return os.isatty(0) and os.isatty(2) and os.environ.get("TERM", "dumb") != "dumb" and can_ask()


def pick(offer: Offer) -> ConversationId:
    """Let a person choose.

    Raises:
        KeyboardInterrupt: they left without a choice.
    """
    from jp.cli.dialogue import ask_alone

    return ask_alone(partial(pick_async, offer))


async def pick_async(offer: Offer) -> ConversationId:
    """See `pick`: for who has an event loop already. It may be cancelled."""
    choice = await _pick(offer)
    if choice is None:
        raise KeyboardInterrupt
    return choice


async def _pick(offer: Offer) -> ConversationId | None:
    """What was chosen; None where the person left, or the terminal is gone."""
    try:
        with open_terminal() as (keys, output, _):
            application = _Picker(offer).application(keys, output)
            return await application.run_async(handle_sigint=False, set_exception_handler=False)
    except (EOFError, OSError):
        return None


class _Picker:
    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._state = opened(offer.candidates, text=offer.text)
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
        view = View(
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

        changes: tuple[tuple[tuple[str, ...], Callable[[KeyPressEvent], State]], ...] = (
            (("up", "c-p", "c-k"), lambda _: moved(self._state, -1)),
            (("down", "c-n", "c-j", "tab"), lambda _: moved(self._state, 1)),
            (("pageup",), lambda _: moved(self._state, -page())),
            (("pagedown",), lambda _: moved(self._state, page())),
            (("home",), lambda _: moved(self._state, -_ALL)),
            (("end",), lambda _: moved(self._state, _ALL)),
            (("backspace",), lambda _: erased(self._state)),
            (("c-w",), lambda _: word_erased(self._state)),
            (("c-u",), lambda _: cleared(self._state)),
            ((Keys.Any, Keys.BracketedPaste), lambda event: typed(self._state, event.data)),
        )
        for names, change in changes:
            for name in names:
                keys.add(name)(partial(self._apply, change))
        keys.add("enter", eager=True)(self._take)
        for name in ("escape", "c-c", "c-d", "c-g"):
            keys.add(name, eager=True)(_leave)
        return keys

    def _apply(self, change: Callable[[KeyPressEvent], State], event: KeyPressEvent) -> None:
        self._state = change(event)

    def _take(self, event: KeyPressEvent) -> None:
        choice = self._state.choice
        if choice is not None:
            event.app.exit(result=choice.id)


def _leave(event: KeyPressEvent) -> None:
    event.app.exit(result=None)
