"""Sessions: the conversation that is active in each terminal."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Protocol

import msgspec

from jp.conversation.ids import ConversationId
from jp.workspace.files import SMALL, SYSTEM, Stamps, make_directories, read_file, replace_file, timestamp

_EXPLICIT = "JP_SESSION"
_PANES = ("TMUX_PANE", "WEZTERM_PANE", "TERM_SESSION_ID", "ITERM_SESSION_ID")
TERMINAL = "terminal"
_REMEMBERED = 100
SESSIONS = "sessions"
"""The directory of the sessions' files, in what the user's data directory holds for a workspace."""


class SessionKey(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a terminal.

    `source` is an environment variable's name or `terminal`, `value` its value or the session leader's process id.
    `leader` tells that process from a later one with the same id; empty where nothing is known of it.
    """

    source: str
    value: str
    leader: str = ""

    @property
    def file_name(self) -> str:
        """Return the name of the session's file."""
        if self.source == TERMINAL:
            return f"{TERMINAL}-{self.value}.json"
        return f"env-{self.source}-{hashlib.sha256(os.fsencode(self.value)).hexdigest()[:16]}.json"


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that was made active; none with the id "": the one before it stopped being active."""

    id: str
    activated_at: str


class SessionFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file of a session: its key, and its conversations, the active one first.

    `attachments` are declared for the next conversation that it starts.
    """

    source: str
    value: str
    leader: str = ""
    history: tuple[Visit, ...] = ()
    attachments: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


_decoder = msgspec.json.Decoder(SessionFile)


def read_session(path: Path) -> SessionFile | None:
    """Return a session's file; None where it cannot be read: that costs no more than the choice of a conversation."""
    try:
        return _decoder.decode(read_file(path, most=SMALL))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def write_session(path: Path, file: SessionFile) -> None:
    """Write a session's file.

    Raises:
        StorageError: it could not be written.
    """
    replace_file(path, msgspec.json.format(msgspec.json.encode(file), indent=2) + b"\n")


def session_key(environment: Mapping[str, str] | None = None) -> SessionKey | None:
    """Return the session that this process belongs to; None where nothing tells (a cron job, a hook of an editor)."""
    known = os.environ if environment is None else environment
    if explicit := known.get(_EXPLICIT):
        return SessionKey(source=_EXPLICIT, value=explicit)
    if (terminal := _terminal_key()) is not None:
        return terminal
    return next((SessionKey(source=name, value=known[name]) for name in _PANES if known.get(name)), None)


def _terminal_key() -> SessionKey | None:
    name = _terminal_name()
    leader = os.getsid(0)
    # A leader outside of this process's namespace has the id 0, in every terminal.
    if name is None or leader <= 0:
        return None
    return SessionKey(source=TERMINAL, value=str(leader), leader=leader_mark(leader) or name)


def _terminal_name() -> str | None:
    """Return the name of the terminal, empty where it has none, None where there is no terminal."""
    for descriptor in (0, 1, 2):
        with contextlib.suppress(OSError):
            return os.ttyname(descriptor)
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return None
    return ""


def leader_mark(process: int) -> str:
    """Return the terminal and the start of a process, in clock ticks since boot; empty where there is no `/proc`."""
    try:
        status = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return ""
    # The second field, the command's name, may hold anything, parentheses too.
    fields = status.rpartition(b")")[2].split()
    return f"{fields[4].decode()}:{fields[19].decode()}"


class SessionDirectory(Protocol):
    """A function that returns the directory of a workspace's sessions."""

    def __call__(self, *, create: bool) -> Path:
        """Return the directory, which need not exist; `create` says that something is about to be written there."""
        ...


class ExistingIds(Protocol):
    """Tells which conversations are there."""

    def __call__(self, wanted: Collection[ConversationId], /) -> AbstractSet[ConversationId]:
        """Return those of the ids `wanted` that conversations have."""
        ...


class Session:
    """The conversations of one terminal, the active one first. Without a key nothing is known or remembered.

    `existing` returns which of some conversations are there: removed ones are passed over, and forgotten where the list
    is full. A session that is not `persistent` remembers in memory.
    """

    def __init__(
        self,
        key: SessionKey | None,
        *,
        directory: SessionDirectory,
        existing: ExistingIds,
        stamps: Stamps = SYSTEM,
        persistent: bool = True,
    ) -> None:
        self._key = key
        self._directory = directory
        self._existing = existing
        self._stamps = stamps
        self._persistent = persistent
        self._history: list[Visit] | None = None

    def active(self) -> ConversationId | None:
        """Return the active conversation; None where it was removed: nobody asked for the one before it."""
        return next(iter(self._still_there(self._visits()[:1])), None)

    def previous(self, *, without: AbstractSet[ConversationId] = frozenset()) -> ConversationId | None:
        """Return the conversation that was active before, the newest that is still there and none of `without`."""
        return next((found for found in self._still_there(self._visits()[1:]) if found not in without), None)

    @property
    def is_known(self) -> bool:
        """Return whether anything tells this terminal from others."""
        return self._key is not None

    def attachments(self) -> tuple[str, ...]:
        """Return the attachments that are declared for the next conversation that is started here."""
        file = None if self._key is None else self._read(self._key)
        return () if file is None or file.attachments is msgspec.UNSET else file.attachments

    def declare(self, attachments: Sequence[str]) -> None:
        """Declare attachments for the next conversation that is started here, and no others.

        Raises:
            StorageError: it could not be written.
        """
        if self._key is not None and self._persistent:
            self._write(self._key, self._visits(), attachments)

    def activate(self, conversation_id: ConversationId, *, attached: Collection[str] = ()) -> None:
        """Make a conversation the active one, to which `attached` of the declared attachments were given.

        Raises:
            StorageError: it could not be written.
        """
        history = self._visits()
        if self._key is None or (history and history[0].id == conversation_id):
            return
        kept = [past for past in history if past.id not in {"", conversation_id}]
        if len(kept) >= _REMEMBERED:
            # Not sooner, because it lists all conversations, and a removed one is passed over where one is looked for.
            existing = set(self._still_there(kept))
            kept = [past for past in kept if past.id in existing]
        visit = Visit(id=str(conversation_id), activated_at=timestamp(self._stamps.now()))
        visits = [visit, *kept[: _REMEMBERED - 1]]
        if self._persistent:
            self._write(self._key, visits, [text for text in self.attachments() if text not in attached])
        self._history = visits

    def _still_there(self, visits: Sequence[Visit]) -> list[ConversationId]:
        wanted = [ConversationId(visit.id) for visit in visits]
        existing = self._existing(wanted) if wanted else set[ConversationId]()
        return [conversation_id for conversation_id in wanted if conversation_id in existing]

    def _write(self, key: SessionKey, visits: list[Visit], attachments: Sequence[str]) -> None:
        directory = self._directory(create=True)
        make_directories(directory, private=True)
        file = SessionFile(
            source=key.source,
            value=key.value,
            leader=key.leader,
            history=tuple(visits),
            attachments=tuple(attachments) or msgspec.UNSET,
        )
        write_session(directory / key.file_name, file)

    def _visits(self) -> list[Visit]:
        if self._history is None:
            file = None if self._key is None else self._read(self._key)
            self._history = [] if file is None else list(file.history)
        return self._history

    def _read(self, key: SessionKey) -> SessionFile | None:
        file = read_session(self._directory(create=False) / key.file_name)
        if file is None:
            return None
        same_leader = file.leader == key.leader or not (file.leader and key.leader)
        return file if file.value == key.value and same_leader else None
