"""The user's editor: which program it is, and running it on the terminal."""

from __future__ import annotations

import os
import shlex
import signal
import termios
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import msgspec

from jp.config.model import EditorConfig
from jp.errors import ConfigurationError, JpError

if TYPE_CHECKING:
    from anyio.abc import Process


_TERMINAL = "/dev/tty"
_PATIENCE_SECS = 5.0
"""The time that an editor that is told to end may take to save what it holds."""


class NotAskedError(JpError):
    """The user left the editor in a way that says: ask nothing."""

    kind = "not_asked"


class Editor(msgspec.Struct, frozen=True, kw_only=True):
    """A command to which a file's name is added, and which setting or variable it comes from."""

    command: tuple[str, ...]
    source: str


def find_editor(config: EditorConfig, environment: Mapping[str, str]) -> Editor | None:
    """The editor that is configured, else that of the first variable that is set; None where there is none.

    Raises:
        ConfigurationError: it is no command.
    """
    named = [("editor.cmd", config.cmd or ""), *((name, environment.get(name, "")) for name in config.envs)]
    source, text = next(((name, text) for name, text in named if text.strip()), ("", ""))
    if not text:
        return None
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise ConfigurationError(
            f"{source} is no command: {text!r}", hint=f"it is read as a shell reads words: {str(error).lower()}"
        ) from None
    return Editor(command=tuple(command), source=source) if command else None


def has_terminal() -> bool:
    """Return whether there is a terminal that an editor could use: not in the background, where it would be stopped."""
    with _open_terminal() as terminal:
        return terminal is not None


async def edit(editor: Editor, path: Path) -> None:
    """Let the user edit a file; cancelling this ends the editor.

    The keys that interrupt are the editor's while it runs.

    Raises:
        NotAskedError: it did not end well.
        ConfigurationError: it could not be started.
        JpError: there is no terminal any more.
    """
    with _open_terminal() as terminal:
        if terminal is None:
            raise JpError("the terminal is gone", hint="run it again at a terminal")
        with _keys_left_alone(), _modes_kept(terminal):
            code = await _run(editor, path, terminal)
    if code:
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        raise NotAskedError(f"nothing was asked: the editor {editor.command[0]!r} {how}")


async def _run(editor: Editor, path: Path, terminal: int) -> int:
    from anyio import open_process

    command = [*editor.command, str(path)]
    try:
        process = await open_process(command, stdin=terminal, stdout=terminal, stderr=terminal)
    except OSError as error:
        raise ConfigurationError(
            f"cannot start the editor {editor.command[0]!r}, which {editor.source} names: {error.strerror or error}",
            hint="set EDITOR, or `editor.cmd`, to an editor that is installed",
        ) from None
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            await end(process)


async def end(process: Process) -> None:
    """Tell an editor to end, which lets most of them save what they hold."""
    from anyio import CancelScope, move_on_after

    with CancelScope(shield=True):
        with suppress(ProcessLookupError):
            process.terminate()
        with move_on_after(_PATIENCE_SECS):
            await process.wait()
            return
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@contextmanager
def _open_terminal() -> Generator[int | None]:
    try:
        terminal = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield terminal if _is_in_foreground(terminal) else None
    finally:
        os.close(terminal)


def _is_in_foreground(terminal: int) -> bool:
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def _keys_left_alone() -> Generator[None]:
    """Ctrl-C goes to everybody in front of the terminal, but means the editor, which starts with its own handlers."""

    def ignore(number: int, frame: FrameType | None) -> None:
        return

    keys = [key for key in (signal.SIGINT, signal.SIGQUIT) if signal.getsignal(key) is not signal.SIG_IGN]
    previous = [(key, signal.signal(key, ignore)) for key in keys]
    try:
        yield
    finally:
        for key, handler in previous:
            signal.signal(key, handler)


@contextmanager
def _modes_kept(terminal: int) -> Generator[None]:
    """Leave the terminal as it was: an editor that was killed did not."""
    try:
        modes = termios.tcgetattr(terminal)
    except termios.error:
        yield
        return
    try:
        yield
    finally:
        with suppress(termios.error):
            if _is_in_foreground(terminal):
                termios.tcsetattr(terminal, termios.TCSANOW, modes)


async def edited_text(text: str, *, suffix: str, config: EditorConfig) -> str:
    """Return `text` as the user edits it, in a file whose name ends in `suffix`, which is gone afterwards.

    Raises:
        JpError: there is no editor, it did not end well, or what it left is empty or no text.
    """
    from tempfile import TemporaryDirectory

    editor = find_editor(config, os.environ)
    if editor is None:
        raise ConfigurationError(
            "no editor is set", hint="set EDITOR, or for good: `jp config set --in user editor.cmd=vim`"
        )
    with TemporaryDirectory(prefix="jp-") as directory:
        path = Path(directory) / f"text{suffix}"
        path.write_text(text, encoding="utf-8", errors="replace")
        await edit(editor, path)
        try:
            written = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise JpError(f"what the editor left cannot be read: {error}") from None
    if not written.strip():
        raise NotAskedError("the text is empty")
    return written if text.endswith("\n") else written.removesuffix("\n")
