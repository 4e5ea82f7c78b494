"""Options of every use case, with the workspace and the session that they name."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from jp.errors import UsageError
from jp.remedies import Option, phrase
from jp.workspace.session import Session, session_key
from jp.workspace.workspace import Workspace, find_workspace

if TYPE_CHECKING:
    from jp.app.targets import Picker
    from jp.workspace.lock import Lock
    from jp.workspace.retention import EphemeralWorkspace


Tell: TypeAlias = Callable[[str], None]


def _ignore(text: str) -> None:
    del text


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The place where a use case works, and its settings beside those of the files.

    A caller that wants to hear notices, logs or progress, or has a picker, derives a class and overrides the method.

    Args:
        config: values such as `assistant.model.id=…`, left to right, as `--cfg` takes them.
        workspace: the directory of a workspace; None for the one around the current directory.
        persist: False writes nothing.
    """

    config: tuple[str, ...] = ()
    workspace: str | None = None
    persist: bool = True

    def notice(self, text: str) -> None:
        """Tell the user something that they may want to know. Nobody listens here."""
        del text

    def notice_once(self, text: str) -> None:
        """Tell something that stays true, which a caller who runs several use cases need not hear again."""
        self.notice(text)

    def log(self, text: str, *, level: int = 1) -> None:
        """Tell how things are done, for a user who wants to know at least `level` of it. Nobody listens here."""
        del text, level

    @property
    def is_verbose(self) -> bool:
        """True if somebody may hear what `log` says; else nothing has to be composed for it."""
        return True

    def progress(self, text: str) -> AbstractContextManager[Tell]:
        """Say what is done as long as the block runs; the result changes the text. Nobody listens here."""
        del text
        return nullcontext(_ignore)

    def picker(self) -> Picker | None:
        """Return what lets a person choose a conversation; None where nobody can."""


AnyWorkspace: TypeAlias = "Workspace | EphemeralWorkspace"

UNATTENDED_PATIENCE_SECS = 30.0
"""The time that a command waits for another writer where nobody sits at a terminal to stop it."""


def current_directory() -> Path:
    """Return the current directory.

    Raises:
        UsageError: it was removed.
    """
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("the current directory does not exist any more", hint="cd to another one") from None


def open_workspace(options: Options) -> AnyWorkspace:
    """Return the workspace that the command line names or the current directory lies in; the user's own outside any.

    With `--no-persist` nothing is ever written to it.

    Raises:
        JpError: the one that was named is none.
    """
    if options.workspace == "":
        raise UsageError(
            phrase(Option.WORKSPACE, " is empty"),
            hint="remove it to use the workspace of the current directory",
        )
    explicit = None if options.workspace is None else Path(options.workspace)
    found = find_workspace(current_directory(), explicit=explicit)
    if options.persist:
        return found

    from jp.workspace.retention import EphemeralWorkspace

    return EphemeralWorkspace(found)


def open_session(workspace: AnyWorkspace) -> Session:
    """Open the session, which holds what this terminal remembers."""
    return workspace.session(session_key())


def base_directory(workspace: AnyWorkspace) -> Path:
    """Return the directory that built-in file tools and declared `file` attachments are confined to."""
    return current_directory() if workspace.root is None else workspace.root


def acquire(lock: Lock, options: Options, *, patience: float | None = UNATTENDED_PATIENCE_SECS) -> None:
    """Wait for another writer, with a notice; see `Lock.acquire`."""
    from jp.render.tty import leave_echo
    from jp.workspace.lock import LockedError

    try:
        lock.acquire(patience=patience, waiting=options.notice)
    except KeyboardInterrupt:
        leave_echo()
        raise
    except LockedError as error:
        error.hint = "try again when that is done"
        raise


def is_run_by_git() -> bool:
    """Return whether git runs this as a hook, an alias or an editor: see "Environment Variables" in githooks(5)."""
    return any(os.environ.get(name) for name in ("GIT_EXEC_PATH", "GIT_INDEX_FILE"))
