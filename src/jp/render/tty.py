"""The controlling terminal of a prompt, its job control, and waits that a signal always ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal, TextIO, assert_never

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from prompt_toolkit.application import Application
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.input.vt100 import Vt100Input
    from prompt_toolkit.output import Output


TERMINAL = "/dev/tty"
_USUAL_SIZE = (80, 24)


class _Dialogue:
    """State of the dialogue: a terminal must not show anything else during a question.

    `erase` erases the transient line, None while there is none.
    """

    def __init__(self) -> None:
        self.is_open = False
        self.erase: Callable[[], None] | None = None


_dialogue = _Dialogue()


def is_asking() -> bool:
    """Return whether a question waits for its answer."""
    return _dialogue.is_open


def set_transient_line(erase: Callable[[], None] | None) -> None:
    """Say how to erase the line that is shown on the terminal for a while; None where it is gone."""
    _dialogue.erase = erase


def can_ask() -> bool:
    """Return whether there is a terminal to ask at: not in the background, where asking would stop the job."""
    try:
        terminal = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return _is_in_foreground(terminal)
    finally:
        os.close(terminal)


@contextmanager
def open_terminal() -> Generator[tuple[Vt100Input, Output, TextIO]]:
    """Open the terminal for an application: no key that was typed before reaches it.

    Raises:
        OSError: the terminal is gone.
    """
    import termios

    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.input.typeahead import clear_typeahead
    from prompt_toolkit.input.vt100 import Vt100Input
    from prompt_toolkit.output.vt100 import Vt100_Output

    # On macOS an event loop cannot wait for /dev/tty, but for the terminal's own name.
    name = TERMINAL
    if sys.platform == "darwin":
        name = next((os.ttyname(number) for number in range(3) if os.isatty(number)), name)
    read = open(name, encoding="utf-8")  # noqa: PTH123, SIM115  a device, closed below
    written = open(name, "w", encoding="utf-8")  # noqa: PTH123, SIM115  a device, closed below

    def size() -> Size:
        columns, rows = os.get_terminal_size(written.fileno())
        return Size(rows=rows or _USUAL_SIZE[1], columns=columns or _USUAL_SIZE[0])

    _dialogue.is_open = True
    try:
        termios.tcflush(read, termios.TCIFLUSH)
        keys = Vt100Input(read)
        clear_typeahead(keys)
        # Asking the terminal where its cursor is would mix its answer with the person's.
        output = Vt100_Output(written, size, term=os.environ.get("TERM"), enable_bell=False, enable_cpr=False)
        yield keys, output, written
    except termios.error as error:
        raise OSError(*error.args) from None
    finally:
        _dialogue.is_open = False
        for stream in (read, written):
            with suppress(OSError):  # the rest of what was written to a terminal that is gone
                stream.close()


def _is_in_foreground(terminal: int) -> bool:
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False


class Job:
    """A process that may be stopped at a question: gives the terminal back, and draws the question when it goes on."""

    def __init__(self, keys: Vt100Input, application: Application[str | None], draw: Callable[[], None]) -> None:
        import termios
        from asyncio import get_running_loop

        self._keys = keys
        self._terminal = keys.fileno()
        self._application = application
        self._draw = draw
        self._loop = get_running_loop()
        self._before = self._asking = termios.tcgetattr(self._terminal)

    @contextmanager
    def controlled(self, *, is_dumb: bool, is_secret: bool) -> Generator[None]:
        """Handle the signals that stop and continue the process, in the main thread; keep the keys that send signals.

        The lines of a dumb terminal stay its own.
        """
        from threading import current_thread, main_thread

        self._keys.raw_mode = lambda: self._raw_mode(is_dumb=is_dumb, is_secret=is_secret)
        if current_thread() is not main_thread():
            yield
            return
        wakeup = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        self._handle()
        try:
            yield
        finally:
            self._unhandle()
            signal.set_wakeup_fd(
                wakeup, warn_on_full_buffer=False
            )  # the event loop leaves none where it has no handler of its own any more

    @contextmanager
    def _raw_mode(self, *, is_dumb: bool, is_secret: bool) -> Generator[None]:
        import termios
        from contextlib import nullcontext

        from prompt_toolkit.input.vt100 import raw_mode

        mode: AbstractContextManager[None] = nullcontext() if is_dumb else raw_mode(self._terminal)
        try:
            with mode:
                self._asking = termios.tcgetattr(self._terminal)
                self._asking[3] |= termios.ISIG
                if is_secret:
                    self._asking[3] = self._asking[3] & ~termios.ECHO | termios.ECHONL
                termios.tcsetattr(self._terminal, termios.TCSANOW, self._asking)
                self._draw()
                yield
        finally:
            with suppress(termios.error):
                termios.tcsetattr(self._terminal, termios.TCSANOW, self._before)

    def _handle(self) -> None:
        self._loop.add_signal_handler(signal.SIGTSTP, self._stop)
        self._loop.add_signal_handler(signal.SIGCONT, self._go_on)

    def _unhandle(self) -> None:
        self._loop.remove_signal_handler(signal.SIGTSTP)
        self._loop.remove_signal_handler(signal.SIGCONT)

    def _stop(self) -> None:
        import termios

        self._application.renderer.erase()
        termios.tcsetattr(self._terminal, termios.TCSANOW, self._before)
        self._unhandle()
        os.kill(os.getpid(), signal.SIGTSTP)
        self._handle()
        self._go_on()

    def _go_on(self) -> None:
        import termios

        if not _is_in_foreground(self._terminal):
            os.kill(os.getpid(), signal.SIGTTIN)  # as reading from the terminal would
        if not _is_in_foreground(self._terminal):
            self._application.exit(exception=EOFError)
            return
        termios.tcsetattr(self._terminal, termios.TCSANOW, self._asking)
        self._application.renderer.reset()
        self._draw()
        self._application.invalidate()


_MOST_SIGNALS = 4096


@contextmanager
def woken_by_signals() -> Generator[int | None]:
    """Yield a descriptor that becomes readable at a signal, to wait for as well. None outside of the main thread."""
    import signal
    from threading import current_thread, main_thread

    if current_thread() is not main_thread():
        yield None
        return
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    before = signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    try:
        yield readable
    finally:
        signal.set_wakeup_fd(before)
        os.close(readable)
        os.close(writable)


def forget_signals(readable: int) -> None:
    """Take out of the descriptor that signals have come: their handlers know."""
    with suppress(BlockingIOError):
        os.read(readable, _MOST_SIGNALS)


def leave_echo() -> None:
    """Begin a new line on the terminal, whose cursor stands behind the `^C` that Ctrl-C left there.

    Where it left that in a transient line, both are erased.
    """
    if _dialogue.erase is not None:
        _dialogue.erase()
        return
    for descriptor in (2, 1):
        if os.isatty(descriptor):
            with suppress(OSError):
                os.write(descriptor, b"\n")
            return


Notification = Literal["bell", "osc9", "osc777"]
_LONGEST_NOTIFICATION = 200


def notification(kind: Notification, text: str) -> str:
    """Return the bell, or the sequence for a desktop notification with `text`, cleaned and shortened."""
    from jp.render.sanitize import one_line

    safe = "".join(char if char.isprintable() else " " for char in one_line(text).replace(";", ","))
    safe = safe[:_LONGEST_NOTIFICATION]
    match kind:
        case "bell":
            return "\a"
        case "osc9":  # where a digit begins the text, some terminals take it for a command
            return f"\x1b]9;jp: {safe}\x1b\\"
        case "osc777":
            return f"\x1b]777;notify;jp;{safe}\x1b\\"
        case _:
            assert_never(kind)


def notify(kind: Notification, text: str, terminal: TextIO, environment: Mapping[str, str]) -> None:
    """Send a notification to `terminal`, if it is live and the controlling terminal of this process."""
    from jp.render.theme import is_live, reads_osc

    if not (is_live if kind == "bell" else reads_osc)(terminal, environment):
        return
    with suppress(OSError, ValueError):
        os.tcgetpgrp(terminal.fileno())  # which fails for every other terminal
        os.write(terminal.fileno(), notification(kind, text).encode())
