"""Drafts of queries: files that keep what is written in an editor, and the editor."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import signal
import termios
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import msgspec

from jp.app.options import AnyWorkspace
from jp.app.values import MOST_BYTES, decode
from jp.config.model import EditorConfig
from jp.errors import ConfigurationError, JpError, StorageError, UsageError
from jp.remedies import SetSettings, phrase
from jp.workspace.files import failure, make_directories, read_file, temporary_beside, write_all
from jp.workspace.layout import MARKER, silo_directory

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
    """Return the editor that is configured, else that of the first variable that is set; None where there is none.

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
            "no editor is set",
            hint=phrase("set EDITOR, or for all sessions: `", SetSettings(("editor.cmd=vim",), scope="user"), "`"),
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


MARK = re.compile(r"[0-9a-z]{8,32}")


def lay_out(text: str, mark: str, below: str) -> str:
    """Return the page. `text` must not contain `mark`, see `choose_mark`."""
    return f"{text}\n\n{_cut_line(mark)}\n\n{below}"


def text_above(page: str, mark: str) -> str:
    """Return the text above the cut line, all of the page where somebody removed that line."""
    cut = _cut_line(mark)
    lines = page.split("\n")
    found = next((number for number, line in enumerate(lines) if line.rstrip() == cut), None)
    if found is None:
        return page
    return "\n".join(lines[:found]).removesuffix("\n")


def choose_mark(text: str, candidates: Iterable[str]) -> str:
    """Return the first candidate that `text` does not contain."""
    return next(mark for mark in candidates if mark not in text)


def trimmed(text: str) -> str:
    """Return a text from an editor without blank lines around it, and with line feeds only."""
    lines = text.replace("\r\n", "\n").rstrip()
    return re.sub(r"\A(?:[^\S\n]*\n)+", "", lines)


def _cut_line(mark: str) -> str:
    return f"<!-- jp {mark}: this line and everything below it is not asked -->"


_PAGE = "query.md"
_LOCK = "lock"
_TEMPORARY = ".tmp"
_MARK_BYTES = 8
_ATTEMPTS = 5


class Draft:
    """A draft whose lock this process holds until `close`. `path` is the file that an editor is given."""

    def __init__(self, directory: Path, lock: int) -> None:
        self._directory = directory
        self._lock: int | None = lock
        self.path = directory / _PAGE

    @property
    def is_blank(self) -> bool:
        """True if there is nothing to keep: no text, and nothing that an editor left to restore it from."""
        try:
            return not (self.text() or self._left_by_editor())
        except JpError:  # whatever it is, it is not blank
            return False

    def text(self) -> str:
        """Return the text above the cut line, without blank lines around it.

        Raises:
            UsageError: it is too large.
            StorageError: it cannot be read.
        """
        try:
            content = read_file(self.path)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise failure("read", self.path, error) from error
        if len(content) > MOST_BYTES:
            raise UsageError(f"{str(self.path)!r} has more than {MOST_BYTES:,} bytes", hint="write less, or attach it")
        return trimmed(text_above(decode(content).text, self._directory.name))

    def write(self, text: str, below: str) -> None:
        """Replace the page; a crash leaves the one before it, or all of this one.

        Raises:
            StorageError: it could not be written.
        """
        temporary = temporary_beside(self.path)
        try:
            _create_private(temporary, lay_out(text, self._directory.name, below).encode("utf-8", "replace"))
            temporary.replace(self.path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            raise failure("write", self.path, error) from error

    def protect(self) -> None:
        """Keep the file for the user alone, also where an editor put another in its place."""
        with suppress(OSError):
            self.path.chmod(0o600)

    def remove(self) -> None:
        """Remove the draft and all that lies beside it."""
        from shutil import rmtree

        rmtree(self._directory, ignore_errors=True)
        with suppress(OSError):
            self._directory.parent.rmdir()

    def move_to(self, directory: Path) -> None:
        """Move it into another directory of drafts; it stays where it is if that is not possible."""
        above = self._directory.parent
        target = directory / self._directory.name
        with suppress(OSError, StorageError):
            make_directories(directory, private=True)
            self._directory.rename(target)
            self._directory, self.path = target, target / _PAGE
            above.rmdir()

    def close(self) -> None:
        """Let go of the lock. Closing again does nothing."""
        if self._lock is not None:
            descriptor, self._lock = self._lock, None
            os.close(descriptor)

    def _left_by_editor(self) -> bool:
        own = {_PAGE, _LOCK}
        return any(path.name not in own and path.suffix != _TEMPORARY for path in _listed(self._directory))


class OpenedDraft:
    """A draft to write, and `text`, with which it begins. `is_kept`: it was left behind; `others` were, too.

    `left` is one that stays where it is, since it has nothing to do with this text.
    """

    def __init__(
        self, draft: Draft, *, text: str, is_kept: bool = False, others: int = 0, left: Path | None = None
    ) -> None:
        self.draft = draft
        self.text = text
        self.is_kept = is_kept
        self.others = others
        self.left = left


def drafts_directory(workspace: AnyWorkspace, conversation: str, *, persistent: bool, create: bool = True) -> Path:
    """Return the directory of a conversation's drafts, by its digits; of new conversations where these are empty.

    Without persistence it is a directory of this process alone. `create` says that something is about to be written.

    Raises:
        StorageError: the workspace has an id that is none.
    """
    if not persistent:
        return Path(os.environ.get("TMPDIR") or "/tmp") / f"jp-{_new_mark()}"  # noqa: S108 - the name cannot be guessed
    root, user_data = workspace.root, workspace.user_data
    silo = user_data if root is None else silo_directory(root / MARKER, user_data, create=create)
    return silo / "drafts" / (conversation or "new")


def open_draft(directory: Path, parts: Sequence[str]) -> OpenedDraft:
    """Return the newest draft that was left in `directory` and holds `parts`, else a new one that begins with them.

    Without `parts` it is the newest.

    Raises:
        StorageError: it could not be read or written.
    """
    seed = [part for part in parts if part.strip()]
    kept = _kept_drafts(directory)
    draft = next((draft for draft in kept if all(part in draft.text() for part in seed)), None)
    rest = [other for other in kept if other is not draft]
    for other in rest:
        other.close()
    if draft is None:
        text = "\n\n".join(seed)
        return OpenedDraft(_new_draft(directory, text), text=text, left=rest[0].path if rest else None)
    text, others = draft.text().strip("\n"), len(rest)
    if draft.path.parent.name not in text:
        return OpenedDraft(draft, text=text, is_kept=True, others=others)
    # The mark of the old page would cut this text.
    moved = _new_draft(directory, text)
    moved.write(text, "")
    draft.remove()
    draft.close()
    return OpenedDraft(moved, text=text, is_kept=True, others=others)


def discard_drafts(directory: Path) -> tuple[int, list[Path]]:
    """Remove the drafts in `directory`: how many there were with text, and those that stay, being written right now."""
    removed, kept = 0, list[Path]()
    for path in sorted(path for path in _listed(directory) if MARK.fullmatch(path.name)):
        draft = _locked(path)
        if draft is not None:
            removed += not draft.is_blank
            draft.remove()
            draft.close()
        elif path.exists():
            kept.append(path / _PAGE)
    return removed, kept


def _kept_drafts(directory: Path) -> list[Draft]:
    """Return the drafts that nobody is writing, newest first, locked. Empty ones are removed."""
    found = [path for path in _listed(directory) if MARK.fullmatch(path.name)]
    drafts: list[Draft] = []
    for path in sorted(found, key=_written_at, reverse=True):
        draft = _locked(path)
        if draft is None:
            continue
        if draft.is_blank:
            draft.remove()
            draft.close()
        else:
            drafts.append(draft)
    return drafts


def _new_draft(directory: Path, text: str) -> Draft:
    """Return a new draft, whose mark `text` does not contain."""
    for _ in range(_ATTEMPTS):
        path = directory / choose_mark(text, _marks())
        try:
            make_directories(path, private=True)
            draft = _locked(path)
        except StorageError:  # somebody else has just removed the directory above it, which was empty
            continue
        if draft is not None:
            return draft
    make_directories(directory, private=True)
    raise StorageError(f"cannot create a draft in {str(directory)!r}", hint="check who may write there")


def _locked(directory: Path) -> Draft | None:
    """Return the draft in `directory`, its lock held; None where somebody else holds it, or it is gone."""
    path = directory / _LOCK
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    if _is_free(descriptor, path):
        return Draft(directory, descriptor)
    os.close(descriptor)
    return None


def _is_free(descriptor: int, path: Path) -> bool:
    """Take the lock; False where somebody else holds it, or has removed the file since it was opened."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _listed(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _written_at(directory: Path) -> float:
    try:
        return (directory / _PAGE).stat().st_mtime
    except OSError:
        return 0.0


def _create_private(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


def _marks() -> Iterator[str]:
    while True:
        yield _new_mark()


def _new_mark() -> str:
    return os.urandom(_MARK_BYTES).hex()
