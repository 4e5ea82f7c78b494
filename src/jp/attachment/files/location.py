"""Resolving `file` URIs, and reading files without following a link that was swapped."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

import msgspec

from jp.attachment.base import AttachmentError, ResolveContext
from jp.attachment.files.paths import (
    FilePath,
    Names,
    canonical_segment,
    decode,
    encode,
    has_wildcard,
    joined,
    parse_file_uri,
)
from jp.attachment.media import HEAD, may_be_sent
from jp.conversation.resource import file_uri

# Where the system has O_PATH, passing through a directory does not take the right to list it.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a pipe would wait for its writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1024 * 1024


class NotAFileError(Exception):
    """A pipe, a socket or a device; `mode` says which."""

    def __init__(self, mode: int) -> None:
        super().__init__(mode)
        self.mode = mode


class TooLargeError(Exception):
    """More than `max_bytes`; `size` is what is known of it. `may_be_sent`: it might be text, an image or a PDF."""

    def __init__(self, size: int, *, may_be_sent: bool) -> None:
        super().__init__(size)
        self.size = size
        self.may_be_sent = may_be_sent


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a file, and when it was last changed: RFC 3339, UTC; None for a time beyond the calendar."""

    data: bytes
    last_modified: str | None


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a file that was not read: its size, and how it begins."""

    size: int
    head: bytes


def open_below(base: str, names: Sequence[str], flags: int) -> int:
    """Open what `names` lead to from the directory `base`; no name may be a link.

    Raises:
        OSError: it is not there any more, or became a link.
    """
    if not names:
        return os.open(base, flags)
    directory = os.open(base, _PASS & ~os.O_NOFOLLOW)
    try:
        for name in names[:-1]:
            below = os.open(name, _PASS, dir_fd=directory)
            os.close(directory)
            directory = below
        return os.open(names[-1], flags, dir_fd=directory)
    finally:
        os.close(directory)


def open_directory(base: str, names: Sequence[str]) -> int:
    """Open a directory for listing. See `open_below`."""
    return open_below(base, names, _LIST)


def read(base: str, names: Sequence[str], max_bytes: int) -> Snapshot:
    """Read the regular file that `names` lead to from `base`.

    Raises:
        NotAFileError: it is no regular file.
        TooLargeError: it has more than `max_bytes` bytes; it has not been read.
        OSError: see `open_below`.
    """
    descriptor = open_below(base, names, _READ)
    try:
        status = _status(descriptor)
        if status.st_size > max_bytes:
            raise TooLargeError(status.st_size, may_be_sent=may_be_sent(os.read(descriptor, HEAD)))
        data = _content(descriptor, max_bytes)
    finally:
        os.close(descriptor)
    return Snapshot(data=data, last_modified=_moment(status.st_mtime))


def glance(base: str, names: Sequence[str]) -> Glance:
    """Look at the regular file that `names` lead to from `base`.

    Raises:
        NotAFileError: it is no regular file.
        OSError: see `open_below`.
    """
    descriptor = open_below(base, names, _READ)
    try:
        return Glance(size=_status(descriptor).st_size, head=os.read(descriptor, HEAD))
    finally:
        os.close(descriptor)


def _status(descriptor: int) -> os.stat_result:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise NotAFileError(status.st_mode)
    return status


def _content(descriptor: int, max_bytes: int) -> bytes:
    """Everything up to the end: a file may grow while it is read, and those of /proc say that they are empty."""
    chunks: list[bytes] = []
    size = 0
    while chunk := os.read(descriptor, _CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            raise TooLargeError(size, may_be_sent=may_be_sent(chunks[0]))
    return b"".join(chunks)


def _moment(seconds: float) -> str | None:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return None


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the file system, and what is asked for below it.

    `path` is absolute, its names as their directories list them; it may lead through symlinks and to nothing. `tail`
    are the segments from the first wildcard on, canonical; it is empty for a plain path.
    """

    path: str
    tail: tuple[str, ...]


def locate(uri: str, context: ResolveContext, names: Names) -> Location:
    """Find the place that `uri` names.

    Raises:
        AttachmentError: `uri` is malformed.
    """
    parsed = parse_file_uri(uri)
    wild = (index for index, segment in enumerate(parsed.segments) if has_wildcard(segment))
    first = next(wild, len(parsed.segments))
    tail = parsed.segments[first:]
    if any(decode(segment) == ".." for segment in tail):
        raise AttachmentError(f"{uri!r} goes up after a wildcard", hint="Write '..' before the first wildcard only.")
    steps = [decode(segment) for segment in parsed.segments[:first]]
    path = _descended(_start(parsed, context, names), steps, names)
    return Location(path=path, tail=tuple(canonical_segment(segment) for segment in tail))


def _start(parsed: FilePath, context: ResolveContext, names: Names) -> str:
    match parsed.start:
        case "filesystem":
            return "/"
        case "home":
            return real_path(Path.home(), names)
        case "root":
            return real_path(context.root.absolute(), names)
        case _:
            assert_never(parsed.start)


def _descended(path: str, steps: Sequence[str], names: Names) -> str:
    for step in steps:
        if step == "..":
            # Above a link lies the directory that holds what it points to.
            path = str(Path(os.path.realpath(path) if Path(path).is_symlink() else path).parent)
        else:
            path = joined(path, names.listed(path, step))
    return path


def real_path(path: str | Path, names: Names) -> str:
    """Return the absolute `path` without symlinks, its names as listed. What does not exist stays as it is.

    Raises:
        OSError: a name is too long.
    """
    # Links are found under the names that directories list.
    listed = _descended("/", parts_of(str(path)), names)
    return _descended("/", parts_of(os.path.realpath(listed)), names)


def names_something(path: str, directory: str) -> bool:
    """Return whether `path`, character by character and relative to `directory`, names something that exists."""
    if path == "~" or path.startswith("~/"):
        directory, path = str(Path.home()), path.removeprefix("~")
    elif path.startswith("/"):
        directory = "/"
    return os.path.lexists(_descended(directory, parts_of(path), Names()))


def parts_of(path: str) -> list[str]:
    """Return the names in an absolute path."""
    return [name for name in path.split("/") if name not in {"", "."}]


def parts_below(path: str, directory: str) -> list[str] | None:
    """Return the names that lead from `directory` to `path`, compared as text; None where it lies elsewhere."""
    parts, above = parts_of(path), parts_of(directory)
    return parts[len(above) :] if parts[: len(above)] == above else None


def declared_uri(location: Location, context: ResolveContext, names: Names) -> str:
    """Return the canonical declaration: relative to an anchored root where it lies in one, so that it is portable."""
    parts = parts_of(names.spelled(location.path))
    root = real_path(context.root.absolute(), names)
    depth = _depth_below_root(location.path, root) if context.anchored else None
    inside = parts if depth is None else parts[len(parts) - depth :]
    path = "/".join([*map(encode, inside), *location.tail])
    if depth is None:
        return f"file:///{path}"
    # Alone, a `~` means home.
    return f"file:./{path}" if path == "~" or path.startswith("~/") else f"file:{path or '.'}"


def _depth_below_root(path: str, root: str) -> int | None:
    """Return how many names of `path` lie below `root`, through links too; None where it is outside."""
    if (below := parts_below(path, root)) is not None:
        return len(below)
    parts = parts_of(path)
    for count in range(1, len(parts) + 1):
        try:
            is_root = Path("/", *parts[:count]).samefile(root)
        except OSError:
            return None
        if is_root:
            return len(parts) - count
    return None


class CanonicalNames:
    """Names of files as attachments use them, so that one file has one URI everywhere. Stateless."""

    def real_path(self, path: str) -> str:
        """Return the absolute `path` without symlinks, its names as listed. What does not exist stays as it is.

        Raises:
            OSError: a name is too long.
        """
        return real_path(path, Names())

    def uri(self, path: str) -> str:
        """Return the canonical URI of a real path."""
        return file_uri(Names().spelled(path))
