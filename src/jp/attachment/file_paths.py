"""`file` URIs, names in a file system and globs; and reads of files that follow no swapped link."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol, assert_never

import msgspec

from jp.attachment.base import ANY_DEPTH, AttachmentError, ResolveContext, encode
from jp.attachment.media import HEAD, may_be_sent
from jp.conversation.resource import file_uri
from jp.file_access import PASS, open_directory_below

_SCHEME = re.compile(r"file:", re.IGNORECASE)
_TRIPLET = re.compile(rb"%([0-9A-Fa-f]{2})")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")

Start = Literal["root", "home", "filesystem"]
"""The start of a path: at the workspace's root, at the user's home directory, or at `/`."""


class FilePath(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed `file` URI. `segments` are percent-encoded, and none is empty or `.`."""

    start: Start
    segments: tuple[str, ...]


def parse_file_uri(uri: str) -> FilePath:
    """Parse `uri`.

    `file:a/b` begins at the root, `file:/a`, `file:///a` and `file://localhost/a` at `/`, `file:~/a` at home. In
    `file://a/b`, `a` is not a host but a directory, as in JP.

    Raises:
        AttachmentError: `uri` has a fragment, no path, or an encoding that is not valid in a file name.
    """
    if "#" in uri:
        hint = f"for a '#' in a file name write '%23': {uri.replace('#', '%23')!r}, or give the plain path"
        raise AttachmentError(f"{uri!r} has a fragment, but files are attached whole", hint=hint)
    if (stray := _STRAY_PERCENT.search(uri)) is not None:
        hint = "for a '%' in a file name write '%25', or give the plain path"
        raise AttachmentError(f"{uri!r} has a '%' without two hexadecimal digits at {stray.start()}", hint=hint)
    start, path = _start(_SCHEME.sub("", uri, count=1))
    if not path and start == "root":
        raise AttachmentError(f"{uri!r} names no path", hint="'file:.' is the workspace's root")
    segments = tuple(segment for segment in path.split("/") if decode(segment) not in {"", "."})
    for segment in segments:
        _require_name(decode(segment), uri)
    return FilePath(start=start, segments=segments)


def _start(rest: str) -> tuple[Start, str]:
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host.lower() in {"", "localhost"}:
            return ("filesystem", path) if slash else ("root", "")
        return "root", rest[2:]
    if rest.startswith("/"):
        return "filesystem", rest
    if rest == "~" or rest.startswith("~/"):
        return "home", rest[1:]
    return "root", rest


def _require_name(name: str, uri: str) -> None:
    for char, code in (("/", "%2F"), ("\0", "%00")):
        if char in name:
            raise AttachmentError(f"{uri!r} has {code!r}, which no file name can contain")


def decode(segment: str) -> str:
    """Return the name in a percent-encoded segment; bytes that are not UTF-8 become surrogates (`os.fsdecode`)."""
    raw = _TRIPLET.sub(lambda match: bytes.fromhex(match[1].decode()), segment.encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape")


def nfc(name: str) -> str:
    """Return `name` in Unicode's composed form (NFC)."""
    if name.isascii():
        return name
    from unicodedata import normalize

    return normalize("NFC", name)


Identity = tuple[int, int]
"""Device and inode: equal for two paths to one file."""


class Tree(Protocol):
    """Operations that a file system must provide."""

    def names(self, directory: str) -> Sequence[str]:
        """Return the names in `directory`; none if it cannot be read."""
        ...

    def identity(self, path: str) -> Identity | None:
        """Return the identity of the file at `path`, links not followed; None if there is none."""
        ...


def joined(directory: str, name: str) -> str:
    """Return the path of `name` in `directory`."""
    return f"{directory.rstrip('/')}/{name}"


class DiskTree:
    """The file system of this machine."""

    def names(self, directory: str) -> Sequence[str]:
        """See `Tree`."""
        try:
            return os.listdir(directory)  # noqa: PTH208  plain names, by the ten thousand
        except OSError:
            return ()

    def identity(self, path: str) -> Identity | None:
        """See `Tree`."""
        try:
            status = os.lstat(path)
        except (OSError, ValueError):
            return None
        return status.st_dev, status.st_ino


class Names:
    """A cache of directory listings and spellings, for one resolution."""

    def __init__(self, tree: Tree | None = None) -> None:
        self._tree: Tree = DiskTree() if tree is None else tree
        self._listings: dict[str, Sequence[str]] = {}
        self._spelled: dict[str, str] = {"/": "/"}

    def _names(self, directory: str) -> Sequence[str]:
        if directory not in self._listings:
            self._listings[directory] = self._tree.names(directory)
        return self._listings[directory]

    def listed(self, directory: str, name: str) -> str:
        """Return the name in the listing of `directory` for the file that `name` opens, in any case and Unicode form.

        If `name` opens nothing, return the only listed name that differs just in its Unicode form, or else `name`.
        """
        path = joined(directory, name)
        identity = self._tree.identity(path)
        if identity is None:
            same = [] if name.isascii() else self._of_same_form(directory, name)
            return same[0] if len(same) == 1 else name
        other = joined(directory, name.swapcase())
        # Read the listing only if another spelling opens the same file, or may do so.
        if name.isascii() and (other == path or self._tree.identity(other) != identity):
            return name
        names = self._names(directory)
        if name in names:
            return name
        folded = nfc(name.casefold())
        for candidate in sorted(names):
            is_same = nfc(candidate.casefold()) == folded
            if is_same and self._tree.identity(joined(directory, candidate)) == identity:
                return candidate
        return name

    def _of_same_form(self, directory: str, name: str) -> list[str]:
        composed = nfc(name)
        return [other for other in self._names(directory) if nfc(other) == composed]

    def spelled(self, path: str) -> str:
        """Return the absolute `path` of listed names as URIs spell it: each name in NFC.

        A name keeps its form if its directory has another name that differs in form only, so that two files never
        share a URI.
        """
        known = self._spelled.get(path)
        if known is None:
            directory, _, name = path.rpartition("/")
            directory = directory or "/"
            composed = nfc(name)
            if composed != name and any(other != name for other in self._of_same_form(directory, name)):
                composed = name
            known = joined(self.spelled(directory), composed)
            self._spelled[path] = known
        return known


_SET = r"\[(?P<not>[!^]?)(?P<set>\]?[^\]]+|\])\]"
_NO_SET = r"(?!\[[!^]?(?:\]?[^\]]+|\])\])"
_TOKEN = re.compile(rf"(?P<star>\*+)|(?P<one>\?)|{_SET}|(?P<text>(?:{_NO_SET}[^*?])+)", re.DOTALL)
"""A part of a glob's segment: wildcards, a set of characters, or text."""


def _ranges(match: re.Match[str]) -> tuple[tuple[str, str], ...]:
    """Return the ranges of a set, each as its first and its last character."""
    body = nfc(decode(match["set"]))
    ranges: list[tuple[str, str]] = []
    index = 0
    while index < len(body):
        is_range = body[index + 1 : index + 2] == "-" and index + 2 < len(body)
        ranges.append((body[index], body[index + 2] if is_range else body[index]))
        index += 3 if is_range else 1
    return tuple(ranges)


def has_wildcard(segment: str) -> bool:
    """Return whether a percent-encoded segment is more than a name."""
    return any(match["text"] is None for match in _TOKEN.finditer(segment))


def canonical_segment(segment: str) -> str:
    """Return the one spelling of a pattern: wildcards raw, everything else percent-encoded, in NFC."""
    return ANY_DEPTH if segment == ANY_DEPTH else "".join(map(_spelled, _TOKEN.finditer(segment)))


def _spelled(match: re.Match[str]) -> str:
    if match["text"]:
        return encode(nfc(decode(match["text"])))
    if match["set"] is None:
        return match[0][0]
    body = "".join(encode(low) if low == high else f"{encode(low)}-{encode(high)}" for low, high in _ranges(match))
    return f"[{'!' if match['not'] else ''}{body}]"


def _expression(match: re.Match[str]) -> str:
    if match["text"]:
        return re.escape(nfc(decode(match["text"])))
    if match["one"]:
        return "."
    # As in a shell, a range that ends before it begins is empty.
    items = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in _ranges(match) if low <= high)
    if not items:
        return "." if match["not"] else "(?!)"
    return f"[{'^' if match['not'] else ''}{items}]"


def _compiled(segment: str) -> re.Pattern[str]:
    runs = [""]
    for match in _TOKEN.finditer(segment):
        if match["star"]:
            runs.append("")
        else:
            runs[-1] += _expression(match)
    if len(runs) == 1:
        return re.compile(runs[0], re.DOTALL)
    # Between two stars the first match is as good as any other: atomic groups keep the time linear.
    middle = "".join(f"(?>.*?{run})" for run in runs[1:-1])
    return re.compile(f"{runs[0]}{middle}.*{runs[-1]}", re.DOTALL)


class _Name(msgspec.Struct, frozen=True):
    """One segment of a glob. `hidden`: it begins with a literal dot, so that it matches hidden files."""

    expression: re.Pattern[str]
    hidden: bool


States = frozenset[int]
"""Progress of a match: the segments that may come next."""


class PathPattern:
    """A glob that is matched name by name, so that a walk skips directories in which nothing can match."""

    def __init__(self, segments: Iterable[str]) -> None:
        """Create a pattern from percent-encoded `segments`."""
        self._segments = tuple(None if segment == ANY_DEPTH else _name(segment) for segment in segments)
        self.start: States = self._closed({0})

    def _closed(self, states: Iterable[int]) -> States:
        """Return `states` and those after a `**` that matches no directory."""
        closed = set(states)
        for state in range(len(self._segments)):
            if state in closed and self._segments[state] is None:
                closed.add(state + 1)
        return frozenset(closed)

    def step(self, states: States, name: str, *, hidden: bool = False) -> States:
        """Return the states below `name`; none if nothing below can match.

        Wildcards match names that begin with a dot only if `hidden` is set.
        """
        name = nfc(name)
        is_skipped = name.startswith(".") and not hidden
        following: set[int] = set()
        for state in states:
            segment = self._segments[state] if state < len(self._segments) else _END
            if segment is None:
                following |= set() if is_skipped else {state}
            elif (segment.hidden or not is_skipped) and segment.expression.fullmatch(name):
                following.add(state + 1)
        return self._closed(following)

    def accepts(self, states: States) -> bool:
        """Return whether a path that leads to `states` matches."""
        return len(self._segments) in states

    def covers(self, names: Sequence[str]) -> bool:
        """Return whether the path `names` or a directory above it matches, hidden names included."""
        states = self.start
        for name in names:
            states = self.step(states, name, hidden=True)
            if self.accepts(states):
                return True
        return False


_END = _Name(re.compile(r"(?!)"), hidden=False)


def _name(segment: str) -> _Name:
    return _Name(_compiled(segment), hidden=decode(segment).startswith("."))


# Opening a pipe would wait for its writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1024 * 1024


class NotAFileError(Exception):
    """A pipe, a socket or a device; `mode` says which."""

    def __init__(self, mode: int) -> None:
        super().__init__(mode)
        self.mode = mode


class TooLargeError(Exception):
    """A file of more than `max_bytes`; `size` is a lower bound. `may_be_sent`: it may be text, an image or a PDF."""

    def __init__(self, size: int, *, may_be_sent: bool) -> None:
        super().__init__(size)
        self.size = size
        self.may_be_sent = may_be_sent


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a file and the time of its last change in RFC 3339, UTC; None for a time out of range."""

    data: bytes
    last_modified: str | None


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Size and first bytes of a file."""

    size: int
    head: bytes


def open_below(base: str, names: Sequence[str], flags: int) -> int:
    """Open the file or directory at `names` below the directory `base`, following no link.

    Raises:
        OSError: it does not exist any more, or became a link.
    """
    if not names:
        return os.open(base, flags)
    directory = open_directory_below(base, names[:-1], base_flags=PASS & ~os.O_NOFOLLOW)
    try:
        return os.open(names[-1], flags, dir_fd=directory)
    finally:
        os.close(directory)


def read(base: str, names: Sequence[str], max_bytes: int) -> Snapshot:
    """Read the regular file at `names` below `base`.

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


def file_facts(base: str, names: Sequence[str]) -> FileFacts:
    """Return facts about the regular file at `names` below `base`.

    Raises:
        NotAFileError: it is no regular file.
        OSError: see `open_below`.
    """
    descriptor = open_below(base, names, _READ)
    try:
        return FileFacts(size=_status(descriptor).st_size, head=os.read(descriptor, HEAD))
    finally:
        os.close(descriptor)


def _status(descriptor: int) -> os.stat_result:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise NotAFileError(status.st_mode)
    return status


def _content(descriptor: int, max_bytes: int) -> bytes:
    """Read to the end: a file may grow meanwhile, and files in /proc report a size of 0."""
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
    """A path in the file system, and a glob below it.

    `path` is absolute, with names as listed; it may contain symlinks and need not exist. `tail` has the canonical
    segments from the first wildcard on; it is empty for a plain path.
    """

    path: str
    tail: tuple[str, ...]


def locate(uri: str, context: ResolveContext, names: Names) -> Location:
    """Return the location that `uri` names.

    Raises:
        AttachmentError: `uri` is malformed.
    """
    parsed = parse_file_uri(uri)
    wild = (index for index, segment in enumerate(parsed.segments) if has_wildcard(segment))
    first = next(wild, len(parsed.segments))
    tail = parsed.segments[first:]
    if any(decode(segment) == ".." for segment in tail):
        raise AttachmentError(f"{uri!r} goes up after a wildcard", hint="write '..' before the first wildcard only")
    steps = [decode(segment) for segment in parsed.segments[:first]]
    path = _descended(_start_location(parsed, context, names), steps, names)
    return Location(path=path, tail=tuple(canonical_segment(segment) for segment in tail))


def _start_location(parsed: FilePath, context: ResolveContext, names: Names) -> str:
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
            # The parent of a link is the parent of its target.
            path = str(Path(os.path.realpath(path) if Path(path).is_symlink() else path).parent)
        else:
            path = joined(path, names.listed(path, step))
    return path


def real_path(path: str | Path, names: Names) -> str:
    """Return the absolute `path` without symlinks, with names as listed. Names that do not exist stay unchanged.

    Raises:
        OSError: a name is too long.
    """
    # Links are found under the names that directories list.
    listed = _descended("/", parts_of(str(path)), names)
    return _descended("/", parts_of(os.path.realpath(listed)), names)


def names_something(path: str, directory: str) -> bool:
    """Return whether `path`, taken literally and relative to `directory`, exists."""
    if path == "~" or path.startswith("~/"):
        directory, path = str(Path.home()), path.removeprefix("~")
    elif path.startswith("/"):
        directory = "/"
    return os.path.lexists(_descended(directory, parts_of(path), Names()))


def parts_of(path: str) -> list[str]:
    """Return the names in an absolute path."""
    return [name for name in path.split("/") if name not in {"", "."}]


def parts_below(path: str, directory: str) -> list[str] | None:
    """Return the names from `directory` to `path`, compared as text; None if `path` is not below it."""
    parts, above = parts_of(path), parts_of(directory)
    return parts[len(above) :] if parts[: len(above)] == above else None


def declared_uri(location: Location, context: ResolveContext, names: Names) -> str:
    """Return the canonical declaration: relative to an anchored root that contains it, so that it is portable."""
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
    """Return how many names of `path` are below `root`, through links too; None if it is outside."""
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
    """Canonical paths and URIs of files, for other packages. Stateless."""

    def real_path(self, path: str) -> str:
        """Return the real path of `path`. See `real_path`.

        Raises:
            OSError: a name is too long.
        """
        return real_path(path, Names())

    def uri(self, path: str) -> str:
        """Return the canonical URI of a real path."""
        return file_uri(Names().spelled(path))
