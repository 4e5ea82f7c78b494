"""Ports by which a query's turns are shown, stopped and asked about; and a screen for nobody."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import msgspec

from jp.app.query.arguments import DisplayOptions
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry
from jp.turn.loop import TurnOutcome
from jp.turn.ports import Clock, Renderer, ToolNews

if TYPE_CHECKING:
    from anyio import Lock

    from jp.config.model import LlmConfig
    from jp.provider.discovery import Proposal
    from jp.tool.consent import Approver, Respondent


class Pausable(Protocol):
    """Something that writes to the terminal, and can leave it to a question."""

    def pause(self) -> None:
        """Show nothing more, and make room for a question."""
        ...

    def resume(self) -> None:
        """Show what came meanwhile, and go on showing."""
        ...

    def notice(self, text: str) -> None:
        """Show a notice, or keep it until it may be shown."""
        ...


class Dialogue:
    """Everybody who asks while a turn runs asks within `question`.

    `screen` shows the turn, None as long as none runs. `color` says whether what is shown with a question has any.
    """

    def __init__(self) -> None:
        self.screen: Pausable | None = None
        self.color = False

    @asynccontextmanager
    async def question(self) -> AsyncGenerator[None]:
        """Wait for one's turn, and have the terminal alone."""
        async with self._lock:
            screen = self.screen
            if screen is not None:
                screen.pause()
            try:
                yield
            finally:
                if screen is not None:
                    screen.resume()

    def notice(self, text: str) -> None:
        """Tell the person something, but into no question."""
        if self.screen is not None:
            self.screen.notice(text)

    @cached_property
    def _lock(self) -> Lock:
        from anyio import Lock

        return Lock()


class Interruption(Protocol):
    """A means to stop a query from outside, such as Ctrl-C."""

    def offer(self, respond: Callable[[], object]) -> None:
        """Have the next interruption call `respond` in the event loop; only the one after it stops the work."""
        ...

    def withdraw(self) -> None:
        """Have the next interruption stop the work again."""
        ...

    def stop(self) -> None:
        """Stop the work as an interruption does."""
        ...


class Stoppable(Protocol):
    """The tools of a turn."""

    @property
    def is_running(self) -> bool:
        """True if calls run."""
        ...

    def stop(self, words: str = "") -> None:
        """Stop all calls; the model is told so, with the person's words."""
        ...


class TurnEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a turn: of its own accord, then with an `outcome`, or by what a person chose."""

    outcome: TurnOutcome | None = None
    reply: str | None = None
    is_aborted: bool = False


class TurnDisplay(Renderer, Protocol):
    """Shows one turn."""

    def begin(self, conversation: str, entries: Sequence[AnyEntry]) -> None:
        """Hear in which conversation the turn is, and what was written there before it."""
        ...

    def set_paused(self, *, is_paused: bool) -> None:
        """Leave the terminal to a question, or take it back."""
        ...

    async def animate(self) -> None:
        """Show for how long nothing came, until cancelled."""
        ...


class Screen(Protocol):
    """Shows the turns of a query, and asks the person who watches."""

    @property
    def interruption(self) -> Interruption:
        """The means to stop the query."""
        ...

    @property
    def is_watched(self) -> bool:
        """True if a person reads what is said on the way."""
        ...

    def check(self, config: AppConfig) -> None:
        """Refuse settings of how things look.

        Raises:
            ConfigurationError: one cannot be followed.
        """
        ...

    def announce(self, conversation: str) -> None:
        """Say the id of the conversation in which the query is about to be asked."""
        ...

    def display(
        self, shown: DisplayOptions, config: AppConfig, *, clock: Clock, entries: Sequence[AnyEntry]
    ) -> TurnDisplay:
        """Open the display of a turn. `entries` is the stream, which grows."""
        ...

    def approver(self, dialogue: Dialogue, config: AppConfig) -> Approver | None:
        """Return who may approve calls of tools; None where nobody can be asked."""
        ...

    def respondent(self, dialogue: Dialogue) -> Respondent | None:
        """Return who answers questions of tools; None where nobody can be asked."""
        ...

    async def choose_model(self, found: Sequence[Proposal], settings: LlmConfig) -> str | None:
        """Ask which of several models to use; None where nobody can be asked, or nothing is chosen."""
        ...

    async def watch(
        self, run: Callable[[], Awaitable[TurnOutcome]], display: TurnDisplay, tools: Stoppable, dialogue: Dialogue
    ) -> TurnEnd:
        """Run a turn, which `display` shows, and let the person step in."""
        ...


class _NoInterruption:
    """An interruption that never comes."""

    def offer(self, respond: Callable[[], object]) -> None:
        """See the port."""

    def withdraw(self) -> None:
        """See the port."""

    def stop(self) -> None:
        """Stop the work.

        Raises:
            RuntimeError: always, since only a person chooses to.
        """
        msg = "nobody watches who could stop the turn"
        raise RuntimeError(msg)


class _NoDisplay:
    """A display that shows nothing."""

    def begin(self, conversation: str, entries: Sequence[AnyEntry]) -> None:
        """See the port."""

    def set_paused(self, *, is_paused: bool) -> None:
        """See the port."""

    async def animate(self) -> None:
        """See the port."""

    def text(self, text: str) -> None:
        """See the port."""

    def reasoning(self, text: str) -> None:
        """See the port."""

    def block_end(self) -> None:
        """See the port."""

    def tool(self, event: ToolNews) -> None:
        """See the port."""

    def notice(self, text: str) -> None:
        """See the port."""

    def entry(self, entry: AnyEntry) -> None:
        """See the port."""

    def close(self) -> None:
        """See the port."""


class NoScreen:
    """A screen for nobody: nothing is shown, and nobody is asked, so that tools that ask are denied."""

    def __init__(self) -> None:
        self.interruption: Interruption = _NoInterruption()
        self.is_watched = False

    def check(self, config: AppConfig) -> None:
        """See the port."""

    def announce(self, conversation: str) -> None:
        """See the port."""

    def display(
        self, shown: DisplayOptions, config: AppConfig, *, clock: Clock, entries: Sequence[AnyEntry]
    ) -> TurnDisplay:
        """See the port."""
        del shown, config, clock, entries
        return _NoDisplay()

    def approver(self, dialogue: Dialogue, config: AppConfig) -> Approver | None:
        """See the port."""

    def respondent(self, dialogue: Dialogue) -> Respondent | None:
        """See the port."""

    async def choose_model(self, found: Sequence[Proposal], settings: LlmConfig) -> str | None:
        """See the port."""

    async def watch(
        self, run: Callable[[], Awaitable[TurnOutcome]], display: TurnDisplay, tools: Stoppable, dialogue: Dialogue
    ) -> TurnEnd:
        """See the port."""
        del display, tools, dialogue
        return TurnEnd(outcome=await run())
