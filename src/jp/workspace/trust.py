"""Values and owners of a workspace that the user has accepted."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from jp.errors import ConfigurationError
from jp.remedies import CreateWorkspace, Option, TrustWorkspace, phrase
from jp.workspace.files import MARKER, SMALL, SYSTEM, Stamps, make_directories, read_file, replace_file, timestamp
from jp.workspace.layout import path_digest


class _Trust(msgspec.Struct, frozen=True, kw_only=True):
    root: str
    accepted: tuple[str, ...]
    trusted_at: str


_decoder = msgspec.json.Decoder(_Trust)


class TrustStore:
    """The hashes of what the user has accepted for the workspace at `root`, or for one `conversation` of it.

    A workspace is known by its path here, not by `.jp/.id`: a stranger's repository can bring any id along, and the
    same values run other files elsewhere. A store that is not `persistent` remembers in memory only.
    """

    def __init__(
        self,
        root: Path,
        *,
        user_data: Path,
        conversation: str = "",
        persistent: bool = True,
        stamps: Stamps = SYSTEM,
    ) -> None:
        self._root = root
        name = f"{path_digest(root)}-{conversation}" if conversation else path_digest(root)
        self._path = user_data / "trust" / f"{name}.json"
        self._persistent = persistent
        self._stamps = stamps
        self._remembered: frozenset[str] = frozenset()

    def accepted(self) -> frozenset[str]:
        """Return the accepted hashes. Those that cannot be read are not accepted."""
        try:
            return self._remembered | frozenset(_decoder.decode(read_file(self._path, most=SMALL)).accepted)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return self._remembered

    def accept(self, hashes: Collection[str]) -> None:
        """Accept these, too.

        Raises:
            StorageError: it could not be written.
        """
        before = self.accepted()
        if before.issuperset(hashes):
            return
        if self._persistent:
            decision = _Trust(
                root=str(self._root).encode(errors="backslashreplace").decode(),
                accepted=tuple(sorted(before.union(hashes))),
                trusted_at=timestamp(self._stamps.now()),
            )
            make_directories(self._path.parent, private=True)
            replace_file(self._path, msgspec.json.format(msgspec.json.encode(decision), indent=2) + b"\n")
        self._remembered = self._remembered.union(hashes)

    def forget(self) -> None:
        """Accept nothing any more; what cannot be deleted stays."""
        self._remembered = frozenset()
        if self._persistent:
            with contextlib.suppress(OSError):
                self._path.unlink()


class UnsafeWorkspaceError(ConfigurationError):
    """A workspace belongs to another user, or its `.jp` is a link."""

    kind = "unsafe_workspace"


def require_own(root: Path, user_data: Path) -> None:
    """Refuse a workspace whose `.jp` is a link, or that another user owns and that was not accepted.

    Args:
        root: a directory with a `.jp` in it.
        user_data: where what the user has accepted is kept.

    Raises:
        UnsafeWorkspaceError: it is not used; the hint has the command that accepts its owner.
    """
    strangers = foreign_owners(root)
    if not strangers:
        return

    if TrustStore(root, user_data=user_data).accepted().issuperset(map(_mark, strangers)):
        return
    place = Path(os.path.realpath(root))
    marker = str(place / MARKER)
    raise UnsafeWorkspaceError(
        f"{marker!r} belongs to {names_of(strangers)}, so jp neither reads nor writes it",
        hint=phrase(
            *("if you trust that, run `", TrustWorkspace(str(place))),
            *("`; or make your own with `", CreateWorkspace(), "`"),
        ),
    )


def foreign_owners(root: Path) -> tuple[int, ...]:
    """Return the users other than this one who own the workspace at `root`: its directory, or the `.jp` in it.

    Under sudo, the user who ran it counts as this user, too.

    Raises:
        UnsafeWorkspaceError: `.jp` is a link.
    """
    marker = root / MARKER
    try:
        status, above = os.lstat(marker), root.stat()
    except OSError:
        return ()
    if stat.S_ISLNK(status.st_mode):
        raise UnsafeWorkspaceError(
            f"{str(marker)!r} is a link, and jp follows none here",
            hint=phrase(
                *("move the directory itself there, or name the workspace that it leads to with `", Option.WORKSPACE),
                "`",
            ),
        )
    return tuple(sorted({status.st_uid, above.st_uid} - _own(os.environ)))


def accept_owners(root: Path, user_data: Path) -> None:
    """Accept the current owners of the workspace at `root`.

    Raises:
        StorageError: that could not be written.
    """
    if strangers := foreign_owners(root):
        TrustStore(root, user_data=user_data).accept([_mark(uid) for uid in strangers])


def names_of(owners: tuple[int, ...]) -> str:
    """Return the names of users for a message."""
    return " and ".join(map(_name, owners))


def _own(environment: Mapping[str, str]) -> set[int]:
    own = {os.geteuid()}
    caller = environment.get("SUDO_UID", "")
    if 0 in own and caller.isascii() and caller.isdigit():
        own.add(int(caller))
    return own


def _mark(uid: int) -> str:
    return f"owner:{uid}"


def _name(uid: int) -> str:
    import pwd

    try:
        return f"the user {pwd.getpwuid(uid).pw_name!r}"
    except KeyError:
        return f"the user with the id {uid}"
