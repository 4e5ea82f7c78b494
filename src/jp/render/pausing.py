"""A renderer that can wait: while a person is asked something, what comes is held back and not lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from jp.conversation.entries import AnyEntry
from jp.tool.base import Progressed
from jp.turn.ports import Renderer, ToolNews


class Screen(Renderer, Protocol):
    """A renderer that can leave the terminal to a question."""

    def set_paused(self, *, is_paused: bool) -> None:
        """Leave the terminal to a question, the cursor at the beginning of an empty line; or take it back."""
        ...


class PausableRenderer:
    """Shows a turn on `screen`, but for what comes between `pause` and `resume`: that is shown at `resume`."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._held: list[Callable[[], None]] | None = None

    def pause(self) -> None:
        """Show nothing more, and make room for a question."""
        self._held = []
        self._screen.set_paused(is_paused=True)

    def resume(self) -> None:
        """Show what came meanwhile, and go on showing."""
        held, self._held = self._held or [], None
        self._screen.set_paused(is_paused=False)
        for show in held:
            show()

    def text(self, text: str) -> None:
        """Show more of the message."""
        self._show(partial(self._screen.text, text))

    def reasoning(self, text: str) -> None:
        """Show more of the reasoning."""
        self._show(partial(self._screen.reasoning, text))

    def block_end(self) -> None:
        """What was shown last is complete."""
        self._show(self._screen.block_end)

    def tool(self, event: ToolNews) -> None:
        """Show what happens to a call; how far it was while nothing was shown is of no interest afterwards."""
        if self._held is None or not isinstance(event, Progressed):
            self._show(partial(self._screen.tool, event))

    def notice(self, text: str) -> None:
        """Show a notice."""
        self._show(partial(self._screen.notice, text))

    def entry(self, entry: AnyEntry) -> None:
        """Show an entry."""
        self._show(partial(self._screen.entry, entry))

    def close(self) -> None:
        """Show what is held back by the screen itself."""
        self._show(self._screen.close)

    def _show(self, show: Callable[[], None]) -> None:
        if self._held is None:
            show()
        else:
            self._held.append(show)
