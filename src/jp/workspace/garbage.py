"""Garbage of a workspace: blobs that no conversation names, and files that killed processes left behind.

Nothing is collected on its own. A blob that is put or put again counts as used just then, and a young one stays, so a
process that is about to name it in its log is in no danger.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fcntl import LOCK_EX
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import msgspec

from jp.errors import StorageError
from jp.workspace.blobs import locked_directory
from jp.workspace.files import storage_errors
from jp.workspace.layout import Storage, storages_of
from jp.workspace.lifecycle import named_in
from jp.workspace.workspace import Workspace

KEPT_SECONDS = 14 * 24 * 60 * 60
"""The age up to which a blob stays in any case."""

_CHECKSUM = re.compile(rb"[0-9a-f]{64}")
_BLOB = re.compile(r"[0-9a-f]{64}")
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
_CHUNK_BYTES = 1 << 20
_OVERLAP_BYTES = 64
_FILES_AT_ONCE = 200


class GarbageFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that nothing needs; `size` is in bytes."""

    path: Path
    size: int


def find_garbage(workspace: Workspace, *, progress: Callable[[str], object] = lambda _: None) -> list[GarbageFile]:
    """Return the files that may go, in the order of their paths.

    Args:
        workspace: the workspace.
        progress: told what is done, before it is done.

    Raises:
        StorageError: a conversation cannot be read, so that nobody knows what it names.
    """
    named = _named(workspace, progress)
    latest = workspace.stamps.now() / 1000 - KEPT_SECONDS
    found: list[GarbageFile] = []
    for storage, _ in storages_of(workspace.root, workspace.user_data):
        for path, status in _files(storage.blobs):
            is_blob = _BLOB.fullmatch(path.name) is not None
            is_unused = path.name not in named if is_blob else _TEMPORARY.fullmatch(path.name) is not None
            if is_unused and status.st_mtime < latest:
                found.append(GarbageFile(path=path, size=status.st_size))
    return sorted(found, key=lambda file: file.path)


def collect(garbage: GarbageFile, *, now: float) -> bool:
    """Delete a file that `find_garbage` returned; False where it is gone, or was used since.

    It is looked at again under a lock that no process can use it beside. Whenever this process is killed, the file is
    there as before or deleted.

    Args:
        garbage: the file.
        now: in seconds since the Unix epoch.

    Raises:
        StorageError: it could not be deleted; it is there as before.
    """
    path = garbage.path
    with storage_errors("delete", path), suppress(FileNotFoundError), locked_directory(path.parent, LOCK_EX) as above:
        if os.stat(path.name, dir_fd=above, follow_symlinks=False).st_mtime < now - KEPT_SECONDS:
            os.unlink(path.name, dir_fd=above)
            return True
    return False


def _named(workspace: Workspace, progress: Callable[[str], object]) -> set[str]:
    """Return the checksums that conversations name: in entries, and anywhere in their files."""
    named: set[str] = set()
    for info in workspace.conversations():
        progress(f"reading {info.id}")
        named |= named_in(workspace.read(info).entries)
    for storage, _ in storages_of(workspace.root, workspace.user_data):
        named |= _mentioned(storage)
    root = workspace.root
    if root is not None and any((above / ".git").exists() for above in (root, *root.parents)):
        progress("reading the branches of git …")
        named |= _committed(root)
    return named


def _committed(root: Path) -> set[str]:
    """Return all that looks like a checksum in conversations as a branch, tag, stash or worktree of git has them.

    Raises:
        StorageError: git cannot tell.
    """
    listed = b"".join(_git(root, "ls-tree", "-r", commit, "--", ".jp/conversations") for commit in _commits(root))
    parts = (line.split(maxsplit=3) for line in listed.splitlines())
    files = sorted({identity for _, kind, identity, _ in parts if kind == b"blob"})
    found: set[str] = set()
    for start in range(0, len(files), _FILES_AT_ONCE):
        wanted = b"".join(identity + b"\n" for identity in files[start : start + _FILES_AT_ONCE])
        if b" missing\n" in _git(root, "cat-file", "--batch-check", given=wanted):
            raise _unknown("this clone lacks files of them")
        found |= _checksums_in(BytesIO(_git(root, "cat-file", "--batch", given=wanted)))
    return found


def _commits(root: Path) -> list[str]:
    """Return the commits that the branches, tags, stashes and worktrees of a repository are at."""
    refs = _git(root, "for-each-ref", "--format=%(objectname) %(refname) %(objecttype) %(*objecttype)").decode()
    found = {line.split()[0] for line in refs.splitlines() if "blob" not in line.split()[2:]}
    for line in _git(root, "worktree", "list", "--porcelain").decode(errors="replace").splitlines():
        if line.startswith("HEAD ") and line.strip("HEAD 0"):  # a branch without a commit is at zeros
            found.add(line.split()[1])
    if " refs/stash " in refs:
        # A stash has the files that git does not know yet in a parent, and earlier stashes are in its log only.
        log = ("log", "--walk-reflogs", "--no-show-signature", "--format=%H %P", "refs/stash", "--")
        found.update(_git(root, *log).decode().split())
    return sorted(found)


def _git(root: Path, *arguments: str, given: bytes = b"") -> bytes:
    """Return the output of a command of git, which reads the repository around `root` and fetches nothing."""
    import subprocess

    # In a hook, variables name another repository or index; those of its configuration stay.
    kept = {name: os.environ[name] for name in os.environ if name.startswith("GIT_CONFIG") or name[:4] != "GIT_"}
    environment = {**kept, "GIT_ALLOW_PROTOCOL": "none", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(  # noqa: S603 - the program and its options are fixed
            ["git", *arguments],  # noqa: S607 - git is where the user's PATH has it
            cwd=root,
            env=environment,
            input=given,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise _unknown(str(error.strerror)) from error
    if done.returncode:
        raise _unknown(done.stderr.decode(errors="replace").strip().partition("\n")[0])
    return done.stdout


def _unknown(problem: str) -> StorageError:
    told = f"git cannot tell what the conversations of other branches name: {problem}"
    return StorageError(told, hint="nothing was deleted; make git read this repository, then run the command again")


def _mentioned(storage: Storage) -> set[str]:
    """Return all that looks like a checksum in any file of any conversation, also where no entry can be read."""
    found: set[str] = set()
    for path, _ in _files(storage.conversations):
        with storage_errors("read", path), path.open("rb") as file:
            found |= _checksums_in(file)
    return found


def _checksums_in(file: BinaryIO) -> set[str]:
    """Return all that looks like a checksum in a file."""
    found: set[str] = set()
    end = b""
    while chunk := file.read(_CHUNK_BYTES):
        found.update(name.decode() for name in _CHECKSUM.findall(end + chunk))
        end = chunk[-_OVERLAP_BYTES + 1 :]
    return found


def _files(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the regular files below a directory; no link is followed.

    Raises:
        StorageError: a directory cannot be listed.
    """
    with storage_errors("read", directory):
        for above, _, names in os.walk(directory, onerror=_raise):
            yield from _regular(Path(above, name) for name in names)


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _regular(paths: Iterable[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    for path in paths:
        with suppress(FileNotFoundError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                yield path, status
