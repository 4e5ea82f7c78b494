"""Whose a workspace is: what another user planted above the current directory is not used, as git does not either."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from jp.errors import ConfigurationError
from jp.workspace.files import MARKER


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
    strangers = strangers_of(root)
    if not strangers:
        return

    from shlex import quote

    from jp.workspace.trust import TrustStore

    if TrustStore(root, user_data=user_data).accepted().issuperset(map(_mark, strangers)):
        return
    place = Path(os.path.realpath(root))
    marker = str(place / MARKER)
    raise UnsafeWorkspaceError(
        f"{marker!r} belongs to {names_of(strangers)}, so jp neither reads nor writes it",
        hint=f"if you trust that, run `jp workspace trust {quote(str(place))}`; or make your own with `jp init`",
    )


def strangers_of(root: Path) -> tuple[int, ...]:
    """Return the users other than this one who own the workspace at `root`: its directory, or the `.jp` in it.

    Under sudo, whoever ran it is this user, too.

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
            hint="move the directory itself there, or name the workspace that it leads to with `--workspace`",
        )
    return tuple(sorted({status.st_uid, above.st_uid} - _own(os.environ)))


def accept_owners(root: Path, user_data: Path) -> None:
    """Use the workspace at `root` from now on, whoever owns it now.

    Raises:
        StorageError: that could not be written.
    """
    if strangers := strangers_of(root):
        from jp.workspace.trust import TrustStore

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
