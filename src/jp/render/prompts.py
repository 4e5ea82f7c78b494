"""Questions to the person at the controlling terminal, whatever the standard streams are.

Input that was typed before the question was drawn is discarded, and pasted text never consents. Ctrl-C and Ctrl-Z stay
signals to the foreground job: the asking task is canceled, and the question is erased.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

import msgspec

from jp.render.tty import TERMINAL, Job, can_ask, open_terminal

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.input.vt100 import Vt100Input
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import Output

    from jp.render.approval import Page, Position, Sheet


_ATTEMPTS = 3
_YES, _NO = frozenset({"y", "yes"}), frozenset({"n", "no"})
_MORE, _HELP = "p", "?"
_NO_ROOM = "no room: enlarge it "
_PASTED = "pasted text is no answer here; press the key"


class About(msgspec.Struct, frozen=True, kw_only=True):
    """The subject of a question: escaped text, shown with it page by page.

    Args:
        sheets: The texts; each begins a page.
        is_shown: Whether the first page is shown with the question. If not, the question itself contains all of it.
        color: Whether a diff has colors.
    """

    sheets: tuple[Sheet, ...] = ()
    is_shown: bool = True
    color: bool = False


_NOTHING = About()


async def ask_yes_no(question: str, *, default: bool, about: About = _NOTHING) -> bool | None:
    """Ask, and wait for yes or no; an empty line means `default`. None where there is no terminal to ask at.

    The end of input (Ctrl-D) means no, and so does an answer that is neither, three times.
    """
    if not can_ask():
        return None
    choices = "[Y/n]" if default else "[y/N]"
    screen = _Screen(f"{question} {choices} ", about, takes_keys=True)
    for _ in range(_ATTEMPTS):
        answer = await screen.ask()
        word = "" if answer is None else answer.strip().lower()
        if answer is None or word in _YES | _NO:
            return word in _YES
        if not word:
            return default
        screen.note = "Please answer yes or no."
    return False


async def ask_key(question: str, keys: Mapping[str, str], *, default: str, about: About = _NOTHING) -> str | None:
    """Ask, and wait for one of `keys`, each a letter, and Enter; an empty line means `default`.

    A capital that is none of them means the small letter; `?`, if it is one, shows their meanings.

    None if there is no terminal to ask at, if the input ends, or after three invalid answers.
    """
    screen = _Screen(f"{question} [{default}] ", about, takes_keys=True)
    attempts = 0
    while attempts < _ATTEMPTS:
        answer = await screen.ask() if can_ask() else None
        if answer is None:
            return None
        key = answer.strip() or default
        found = next((known for known in (key, key.lower()) if known in keys), None)
        if found not in {None, _HELP}:
            return found
        attempts += found is None
        screen.note = _meanings(keys) if found else f"One of {', '.join(keys)}."
    return None


def _meanings(keys: Mapping[str, str]) -> str:
    return "\n".join(f"{key}  {meaning}" for key, meaning in keys.items())


async def ask_line(question: str, default: str = "", *, about: About = _NOTHING) -> str | None:
    """Ask, and wait for a line; an empty one means `default`. None where there is no terminal, or the input ends."""
    from jp.render.sanitize import escape_line

    if not can_ask():
        return None
    answer = await _Screen(f"{question} [{escape_line(default)}] " if default else f"{question} ", about).ask()
    return None if answer is None else answer.strip() or default


async def ask_secret(question: str) -> str | None:
    """Ask, and wait for a line that is not shown. None where there is no terminal, or the input ends."""
    if not can_ask():
        return None
    answer = await _Screen(f"{question} ", _NOTHING, is_secret=True).ask()
    return None if answer is None else answer.strip()


def tell(text: str) -> None:
    """Show `text`, which is composed of escaped text and jp's own words, where the next question is going to be."""
    from jp.render.sanitize import printable

    if text and can_ask():
        with suppress(OSError), open(TERMINAL, "w", encoding="utf-8") as terminal:  # noqa: PTH123  a device
            terminal.write(printable(text))


class _Screen:
    """One question, and as much of what it is about as fits; drawn again for each page, each size, and after `fg`."""

    def __init__(self, text: str, about: About, *, takes_keys: bool = False, is_secret: bool = False) -> None:
        from jp.render.approval import Position

        self.text = text
        self._about = about
        self._takes_keys = takes_keys
        self._is_secret = is_secret
        self._is_dumb = os.environ.get("TERM", "dumb") in {"dumb", "unknown", ""}
        self._place = Position() if about.sheets and about.is_shown else None
        self._after: Position | None = None
        self.note = ""

    async def ask(self) -> str | None:
        """Show the question until it is answered; None where the input ends, or the terminal is gone."""
        from jp.render.approval import Position

        while True:
            answer = await self._asked()
            self.note = ""
            more = _MORE if self._takes_keys else ""
            can_show = bool(self._about.sheets) and (self._takes_keys or self._after is not None)
            if answer is None or answer.strip() != more or not can_show:
                return answer
            self._place = self._after or Position()

    async def _asked(self) -> str | None:
        try:
            with open_terminal() as (keys, output, written):
                return await self._asked_at(keys, output, written)
        except (EOFError, OSError):
            return None

    async def _asked_at(self, keys: Vt100Input, output: Output, written: TextIO) -> str | None:
        def write() -> None:
            if self._is_dumb:
                self._write(written, output.get_size())
            else:
                output.write_raw("\r")  # over the `^C` of the key that brought the question

        application = self._application(keys, output)
        with Job(keys, application, write).controlled(is_dumb=self._is_dumb, is_secret=self._is_secret):
            return await application.run_async(handle_sigint=False, set_exception_handler=False)

    def _application(self, keys: Vt100Input, output: Output) -> Application[str | None]:
        from prompt_toolkit.application import Application
        from prompt_toolkit.buffer import Buffer
        from prompt_toolkit.filters import Condition
        from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
        from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
        from prompt_toolkit.layout.processors import BeforeInput, PasswordProcessor, Processor
        from prompt_toolkit.output import ColorDepth, DummyOutput

        buffer = Buffer(multiline=False)
        processors: list[Processor] = [BeforeInput(lambda: self._last_row(output.get_size()))]
        above = FormattedTextControl(lambda: self._above(output, buffer.text))
        typed = BufferControl(
            buffer, input_processors=[PasswordProcessor(), *processors] if self._is_secret else processors
        )
        is_needed = Condition(lambda: bool(self._above(output, "")))
        rows = [
            ConditionalContainer(Window(above, dont_extend_height=True), is_needed),
            Window(typed, dont_extend_height=True, wrap_lines=True),
        ]
        return Application(
            layout=Layout(HSplit(rows), focused_element=typed),
            key_bindings=self._keys(),
            input=keys,
            output=DummyOutput() if self._is_dumb else output,
            color_depth=ColorDepth.DEPTH_4_BIT if self._about.color else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
        )

    def _keys(self) -> KeyBindings:
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.keys import Keys

        keys = KeyBindings()

        @keys.add("enter", eager=True)
        @keys.add("c-j", eager=True)
        def _(event: KeyPressEvent) -> None:
            typed = event.current_buffer.text
            if typed.strip() and self._is_cut(event.app.output.get_size()):
                # Nobody may agree to what the terminal has no room for.
                event.current_buffer.reset()
            else:
                _leave(event, typed)

        @keys.add("c-d", eager=True)
        def _(event: KeyPressEvent) -> None:
            _leave(event, None)

        @keys.add(Keys.BracketedPaste, eager=True)
        def _(event: KeyPressEvent) -> None:
            if self._takes_keys:
                self.note = _PASTED
            else:
                event.current_buffer.insert_text(" ".join(event.data.splitlines()))

        return keys

    def _is_cut(self, size: Size) -> bool:
        """Return whether the terminal has too few rows for the question itself, so that a part of it is not seen."""
        page = 0 if self._place is None else 1
        return self._takes_keys and not self._is_dumb and len(self._rows_of_text(size.columns)) + page > size.rows

    def _last_row(self, size: Size) -> str:
        """Return what stands before the answer."""
        return _NO_ROOM if self._is_cut(size) else self._rows_of_text(size.columns)[-1]

    def _rows_of_text(self, width: int) -> list[str]:
        """Return the rows of the question itself; the answer stands behind the last one."""
        from jp.render.approval import wrapped
        from jp.render.sanitize import printable

        return list(wrapped(printable(self.text), width))

    def _above(self, output: Output, typed: str) -> StyleAndTextTuples:
        size = output.get_size()
        drawn = self._drawn(size.columns, size.rows, typed)
        return [fragment for number, row in enumerate(drawn) for fragment in ([("", "\n"), *row] if number else row)]

    def _drawn(self, width: int, height: int, typed: str = "") -> list[Sequence[tuple[str, str]]]:
        """Return the rows above the one with the answer: never more than the terminal has."""
        from jp.render.approval import columns, wrapped

        text = self._rows_of_text(width)
        rows = height - len(text) - (columns(text[-1]) + columns(typed)) // width
        said = list(wrapped(self.note, width)) if self.note else []
        page = self._page(width, rows - len(said))
        below = [] if page is None or not page.omitted else list(wrapped(f"({page.omitted})", width))
        asked = [[("", row)] for row in [*said, *below, *text[:-1]]]
        return [*(page.rows if page else ()), *asked]

    def _page(self, width: int, rows: int) -> Page | None:
        """Return the page, with so many rows that what it says of the rest fits, too."""
        from jp.render.approval import page_of, wrapped

        if self._place is None:
            return None
        key = _MORE if self._takes_keys else "Enter"
        reserved = needed = 0
        while True:
            page = page_of(self._about.sheets, self._place, width=width, rows=rows - reserved, key=key)
            needed = len(list(wrapped(f"({page.omitted})", width))) if page.omitted else 0
            if needed <= reserved:
                self._after = page.after
                return page
            reserved = needed

    def _write(self, written: TextIO, size: Size) -> None:
        """Show the question on a terminal whose cursor cannot be moved."""
        rows = ["".join(part for _, part in row) for row in self._drawn(size.columns, size.rows)]
        written.write("\n".join([*rows, self._rows_of_text(size.columns)[-1]]))
        written.flush()


def _leave(event: KeyPressEvent, answer: str | None) -> None:
    """End the question, which stays on the screen with its answer."""
    event.app.erase_when_done = False
    event.app.exit(result=answer)
