"""The layout on disk: names of files and directories, the search for a workspace, and its id."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from jp.conversation.ids import ConversationId, slug
from jp.errors import StorageError, UsageError
from jp.remedies import CreateWorkspace, phrase
from jp.workspace.files import MARKER, SMALL, create_file, read_optional, temporary_beside

EVENTS = "events.jsonl"
ORIGINAL_EVENTS = "events.json"
METADATA = "metadata.json"
BASE_CONFIG = "base_config.json"
ARCHIVE = ".archive"
"""The directory in which the original JP keeps archived conversations."""

MOVED = ".moved"
"""Marks a directory whose conversation was copied to another place, where it counts if both are there."""

_ID_FILE = ".id"
_ID_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID_CHARS = 16
_ID = re.compile(r"[0-9a-z]{5,40}")
_DIRECTORY_NAME = re.compile(r"([0-9]{1,18})(?:-.*)?", re.DOTALL)


class WorkspaceNotFoundError(UsageError):
    """A directory that was named as a workspace is none."""


class Storage(msgspec.Struct, frozen=True):
    """A directory that holds conversations and the blobs they share. A private one is for the user alone."""

    directory: Path
    private: bool

    @property
    def conversations(self) -> Path:
        """Return the directory with one directory for each conversation."""
        return self.directory / "conversations"

    @property
    def archive(self) -> Path:
        """Return the directory with one directory for each conversation that the original JP has archived."""
        return self.conversations / ARCHIVE

    @property
    def blobs(self) -> Path:
        """Content by its checksum."""
        return self.directory / "blobs"


def user_config_directory(environment: Mapping[str, str]) -> Path | None:
    """Return the directory of the user's settings, `$JP_GLOBAL_CONFIG_DIR` or the platform's; None without a home."""
    if explicit := environment.get("JP_GLOBAL_CONFIG_DIR"):
        return Path(explicit).absolute()
    has_home = any(Path(environment.get(name, "")).is_absolute() for name in ("XDG_CONFIG_HOME", "HOME"))
    return _platform_directory("config", environment) if has_home else None


def user_data_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Return the directory of the user's own data: `$JP_USER_DATA_DIR`, or the platform's.

    Raises:
        StorageError: there is no home directory.
    """
    known = os.environ if environment is None else environment
    if explicit := known.get("JP_USER_DATA_DIR"):
        return Path(explicit).absolute()
    return _platform_directory("data", known)


def user_cache_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Return the directory of what jp can get again: below `$JP_USER_DATA_DIR`, or the platform's.

    Raises:
        StorageError: there is no home directory.
    """
    known = os.environ if environment is None else environment
    if explicit := known.get("JP_USER_DATA_DIR"):
        return Path(explicit).absolute() / "cache"
    return _platform_directory("cache", known)


def search_index_path() -> Path | None:
    """Return where the index of what conversations hold lies; None where the user has no place for caches."""
    try:
        return user_cache_directory() / "history" / "index.sqlite3"
    except StorageError:
        return None


_LINUX: Mapping[str, str] = {"config": ".config", "data": ".local/share", "cache": ".cache"}


def _platform_directory(kind: Literal["config", "data", "cache"], environment: Mapping[str, str]) -> Path:
    """Return what platformdirs says; on Linux without it, because its import takes longer than the rule of XDG."""
    if sys.platform == "linux":
        places = (
            Path(environment.get(f"XDG_{kind.upper()}_HOME", "")),
            Path(environment.get("HOME", ""), _LINUX[kind]),
        )
        if (found := next(filter(Path.is_absolute, places), None)) is not None:
            return found / "jp"
    import platformdirs

    find = {"config": platformdirs.user_config_dir, "data": platformdirs.user_data_dir}
    try:
        return Path(find.get(kind, platformdirs.user_cache_dir)("jp", appauthor=False))
    except RuntimeError:
        msg = "this user has no home directory"
        raise StorageError(msg, hint="set JP_USER_DATA_DIR to a directory that you may write to") from None


def find_root(start: Path) -> Path | None:
    """Return the nearest directory at or above `start` with a `.jp` directory in it, or with a link of that name.

    Whose it is, and that it is no link, is checked by `jp.workspace.trust`.
    """
    absolute = start.absolute()
    for directory in (absolute, *absolute.parents):
        try:
            mode = os.lstat(directory / MARKER).st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode) or stat.S_ISLNK(mode):
            return directory
    return None


def explicit_root(path: Path) -> Path:
    """Return `path`, which a user named as the root of a workspace.

    Raises:
        WorkspaceNotFoundError: it has no `.jp` directory.
    """
    root = path.absolute()
    if not (root / MARKER).is_dir():
        msg = f"{str(path)!r} is not the root of a workspace: it has no {MARKER!r} directory"
        raise WorkspaceNotFoundError(msg, hint=phrase("create one with `", CreateWorkspace(str(path)), "`"))
    return root


def directory_name(conversation_id: ConversationId, title: str | None) -> str:
    """Return the name of a new conversation's directory, without secrets, also where they are in its title."""
    from jp.context.redaction import redact

    words = slug(redact(title or "").text)
    return f"{conversation_id.digits}-{words}" if words else conversation_id.digits


def conversation_id_of(name: str) -> ConversationId | None:
    """Return the id of the conversation whose directory has this name; None for hidden and other names."""
    found = _DIRECTORY_NAME.fullmatch(name)
    return None if found is None else ConversationId.of_digits(found[1])


def is_in_archive(directory: Path) -> bool:
    """Return whether the original JP has archived the conversation in `directory`."""
    above, _, _ = str(directory).rpartition(os.sep)  # asked of each conversation, and `parent` takes four times this
    return above.endswith(os.sep + ARCHIVE)


def storage_directory(directory: Path) -> Path:
    """Return the directory of the storage that the conversation in `directory` lies in."""
    conversations = directory.parent.parent if is_in_archive(directory) else directory.parent
    return conversations.parent


def path_digest(path: Path) -> str:
    """Return a short name for a path, the same however it was reached."""
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:16]


def silo_directory(marker: Path, user_data: Path, *, create: bool) -> Path:
    """Return the directory in the user's data for the workspace whose `.jp` is `marker`.

    It is named after `.jp/.id`, so that moving the workspace loses nothing; `create` writes that file where it is
    missing. Where it cannot be written the silo is named after the path, and remains so.

    Raises:
        StorageError: the id is not one.
    """
    silos = user_data / "workspaces"
    if (identity := _read_id(marker / _ID_FILE)) is not None:
        return silos / identity
    by_path = silos / f"path-{path_digest(marker)}"
    if not create or by_path.is_dir():
        return by_path
    return silos / identity if (identity := create_id(marker)) is not None else by_path


def storage_at(root: Path | None, user_data: Path, *, local: bool, create: bool = False) -> Storage:
    """Return the storage of the workspace at `root`: its own, or the `local` one; outside any workspace they are one.

    What else a user's data directory holds for the workspace lies beside the local ones. `create` says that something
    is about to be written there.

    Raises:
        StorageError: the workspace's id is not one.
    """
    if root is None:
        return Storage(user_data, private=True)
    marker = root / MARKER
    if not local:
        return Storage(marker, private=False)
    return Storage(silo_directory(marker, user_data, create=create), private=True)


def storages_of(root: Path | None, user_data: Path) -> list[tuple[Storage, bool]]:
    """Return the storages of the workspace at `root`, each with whether it is the local one; outside any it is one.

    Raises:
        StorageError: the workspace's id is not one.
    """
    shared, silo = (storage_at(root, user_data, local=is_local) for is_local in (False, True))
    return [(shared, False)] if silo == shared else [(shared, False), (silo, True)]


def create_id(marker: Path) -> str | None:
    """Give a workspace its id, or find the one that it has; None where it cannot be written.

    Raises:
        StorageError: the id that it has is not one.
    """
    path = marker / _ID_FILE
    digits = (_ID_ALPHABET[byte % len(_ID_ALPHABET)] for byte in os.urandom(_ID_CHARS))
    temporary = temporary_beside(path)
    try:
        create_file(
            temporary, f"Written by jp: names this workspace. Do not edit or commit.\n{''.join(digits)}\n".encode()
        )
        try:
            # Unlike a rename, a link leaves alone what another process has just created.
            os.link(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
    except FileExistsError:
        pass
    except OSError:
        return None
    return _read_id(path)


def workspace_id(root: Path | None) -> str:
    """Return the id of the workspace at `root`; empty where it has none, or outside any.

    Raises:
        StorageError: it cannot be read, or is none.
    """
    return "" if root is None else _read_id(root / MARKER / _ID_FILE) or ""


def _read_id(path: Path) -> str | None:
    data = read_optional(path, most=SMALL)
    if data is None:
        return None
    identity = data.decode("utf-8", "replace").strip().rpartition("\n")[2].strip()
    if _ID.fullmatch(identity) is None:
        msg = f"{str(path)!r} does not hold the id of a workspace"
        raise StorageError(
            msg, hint="restore it, or delete it: jp then writes a new one, and local conversations start again"
        )
    return identity
