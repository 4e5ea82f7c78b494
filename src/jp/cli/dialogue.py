"""Asking the person at the terminal while work goes on: one question at a time, and nothing is shown meanwhile."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from anyio import Lock

    from jp.errors import ExitCode

T = TypeVar("T")


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


def ask_alone(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask where no event loop runs; a signal takes the question away.

    Raises:
        KeyboardInterrupt: by Ctrl-C.
        Terminated: by SIGTERM or SIGHUP.
    """
    import anyio

    from jp.cli.exit import Terminated
    from jp.errors import ExitCode

    answers, code = anyio.run(_ask_interruptibly, ask)
    if code == ExitCode.TERMINATED:
        raise Terminated(code)
    if not answers:
        raise KeyboardInterrupt
    return answers[0]


async def _ask_interruptibly(ask: Callable[[], Awaitable[T]]) -> tuple[list[T], ExitCode | None]:
    """Return the answer, or none with the exit code of a signal that came instead."""
    from jp.cli.signals import interruptions

    answers: list[T] = []
    with interruptions() as interruption:
        answers.append(await ask())
    return answers, interruption.exit_code
