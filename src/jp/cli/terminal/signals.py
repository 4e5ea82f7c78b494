"""Handling of Ctrl-C, SIGTERM and SIGHUP.

Work without an event loop is unwound by an exception: Python's KeyboardInterrupt, and `Terminated` of
`jp.cli.terminal.exit` for the other two. Work with one is canceled instead, so that it ends at an `await` and keeps its
output so far.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

from jp.cli.terminal.exit import SAME_PRESS_SECS
from jp.errors import ExitCode
from jp.render.tty import forget_signals, is_asking, leave_echo, woken_by_signals

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from anyio import CancelScope


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """The reason for which the work inside `interruptions` was stopped, if any. Read it after the block."""

    def __init__(
        self,
        scope: CancelScope,
        request_stop: Callable[[int], object],
        leave: Callable[[int], object],
        call: Callable[[Callable[[], object]], object],
    ) -> None:
        self._call = call
        self._scope = scope
        self._request_stop = request_stop
        self._leave = leave
        self._respond: Callable[[], object] | None = None
        self._received: int | None = None
        self._received_at = -math.inf

    @property
    def exit_code(self) -> ExitCode | None:
        """The exit code of work that was stopped, None where it came to its end."""
        if not self._scope.cancelled_caught:
            return None
        if self._received is None:
            return ExitCode.DEADLINE
        return ExitCode.INTERRUPTED if self._received == signal.SIGINT else ExitCode.TERMINATED

    def receive(self, number: int, *, now: float) -> None:
        """Stop the work; where it is stopping already, another Ctrl-C ends the process at once."""
        is_same_press = number == signal.SIGINT and now - self._received_at <= SAME_PRESS_SECS
        if is_same_press:
            return
        if number == signal.SIGINT and self._respond is not None:
            respond, self._respond = self._respond, None
            self._received_at = now
            respond()
        elif self._received is None:
            self._received = number
            self._received_at = now
            self._request_stop(number)
        elif number == signal.SIGINT:
            self._leave(ExitCode.INTERRUPTED)

    def offer(self, respond: Callable[[], object]) -> None:
        """Have the next Ctrl-C call `respond` in the event loop; only the one after it stops the work."""
        self._respond = lambda: self._call(respond)

    def withdraw(self) -> None:
        """Have the next Ctrl-C stop the work again."""
        self._respond = None

    def stop(self) -> None:
        """Stop the work as a Ctrl-C does, but silently."""
        self._respond = None
        self._received = signal.SIGINT
        self._scope.cancel()


async def handle_interruptions() -> None:
    """Let a signal that has come, or a deadline that is over, stop the work here: without a wait, they never do."""
    from anyio import current_effective_deadline, current_time, sleep_forever
    from anyio.lowlevel import checkpoint

    await checkpoint()
    if current_effective_deadline() <= current_time():
        await sleep_forever()


@contextmanager
def _waking(loop: AbstractEventLoop) -> Generator[None]:
    """Have the loop look up from its waiting at every signal, so that what it does is done at once."""
    with woken_by_signals() as woken:
        if woken is None:
            yield
            return
        loop.add_reader(woken, forget_signals, woken)
        try:
            yield
        finally:
            loop.remove_reader(woken)


@contextmanager
def interruptions(*, timeout_secs: float | None = None) -> Generator[Interruption]:
    """Cancel the block on SIGINT, SIGTERM or SIGHUP, or after `timeout_secs`; what it does then is its teardown.

        with interruptions(timeout_secs=deadline) as interruption:
            outcome = await turn.run(request)
        if interruption.exit_code is not None:
            return interruption.exit_code

    The cancellation arrives at the block's next `await` and ends with the block; no exception leaves it. Errors of
    the block pass as they are. Works in the main thread, in a task of an asyncio event loop; a signal that the caller
    has us ignore (`nohup`, a background job of a script) stays ignored.
    """
    from asyncio import get_running_loop

    from anyio import CancelScope, current_time

    deadline = math.inf if timeout_secs is None else current_time() + timeout_secs
    scope = CancelScope(deadline=deadline)
    loop = get_running_loop()

    def stop(number: int) -> None:
        if number == signal.SIGINT and not is_asking():
            leave_echo()
        loop.call_soon_threadsafe(scope.cancel)

    def leave(code: int) -> None:
        leave_echo()
        os._exit(code)

    interruption = Interruption(scope, stop, leave, loop.call_soon_threadsafe)

    def receive(number: int, frame: FrameType | None) -> None:
        interruption.receive(number, now=monotonic())

    previous = {number: signal.getsignal(number) for number in SIGNALS}
    replaced = [number for number in SIGNALS if previous[number] is not signal.SIG_IGN]
    for number in replaced:
        signal.signal(number, receive)
    try:
        with _waking(loop), scope:
            yield interruption
    finally:
        for number in replaced:
            signal.signal(number, previous[number])
