"""Where a `file` URI leads, and the canonical URI of what lies there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

import msgspec

from jp.attachment.base import AttachmentError, ResolveContext
from jp.attachment.files.names import Names, joined
from jp.attachment.files.pattern import canonical_segment, has_wildcard
from jp.attachment.uri import FilePath, decode, encode, parse_file_uri
from jp.conversation.uri import file_uri


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
    """The absolute `path` without symlinks, its names as listed. What does not exist stays as it is.

    Raises:
        OSError: a name is too long.
    """
    # Links are found under the names that directories list.
    listed = _descended("/", parts_of(str(path)), names)
    return _descended("/", parts_of(os.path.realpath(listed)), names)


def names_something(path: str, directory: str) -> bool:
    """Whether `path`, character by character and relative to `directory`, names a file, a directory or a link."""
    if path == "~" or path.startswith("~/"):
        directory, path = str(Path.home()), path.removeprefix("~")
    elif path.startswith("/"):
        directory = "/"
    return os.path.lexists(_descended(directory, parts_of(path), Names()))


def parts_of(path: str) -> list[str]:
    """The names in an absolute path."""
    return [name for name in path.split("/") if name not in {"", "."}]


def parts_below(path: str, directory: str) -> list[str] | None:
    """The names that lead from `directory` to `path`, compared as text; None where it lies elsewhere."""
    parts, above = parts_of(path), parts_of(directory)
    return parts[len(above) :] if parts[: len(above)] == above else None


def declared_uri(location: Location, context: ResolveContext, names: Names) -> str:
    """The canonical declaration: relative to an anchored root for what lies in it, so that it holds elsewhere too."""
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
    """How many names of `path` lie below `root`, through whatever links it leads there; None where it does not."""
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
    """How attachments name files, for whoever else names them: one file has one URI. Stateless."""

    def real_path(self, path: str) -> str:
        """The absolute `path` without symlinks, its names as listed. What does not exist stays as it is.

        Raises:
            OSError: a name is too long.
        """
        return real_path(path, Names())

    def uri(self, path: str) -> str:
        """The canonical URI of a real path."""
        return file_uri(Names().spelled(path))
