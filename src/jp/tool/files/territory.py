"""Files that a tool may reach (the workspace and `access.fs`), and safe opening and walking of them.

What jp and git keep is out of reach. What was judged is what is opened, even while links are swapped.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from jp.config.entries import FileRuleConfig
from jp.errors import JpError
from jp.file_access import LIST, PASS, open_directory_below


class Ignored(Protocol):
    """Ignore rules of one walk."""

    def ignores(self, directory: str, name: str, *, is_directory: bool) -> bool:
        """Return whether `name` in `directory`, a real path, is left out."""
        ...


class FileSurroundings(Protocol):
    """Names and ignore rules of files: the same as for attachments, so that one file has one URI."""

    def real_path(self, path: str) -> str:
        """`path`, which is absolute, without symlinks, each name as its directory lists it.

        Raises:
            OSError: a name is too long.
        """
        ...

    def uri(self, path: str) -> str:
        """Return the canonical URI of a real path."""
        ...

    def mime_type(self, path: str) -> str:
        """Return the MIME type of a text file: that of an attachment of it, so that a request shows one type."""
        ...

    def ignored(self, base: str, root: str) -> Ignored:
        """Return the rules for a walk of `base` in the workspace `root`. Both are real paths."""
        ...

    def private(self) -> Sequence[str]:
        """Return the directories that jp keeps for itself outside of workspaces: keys, trust, other conversations."""
        ...


class FileAccessError(JpError):
    """A file is missing, out of bounds or of a kind that is not read; or what was asked for does not fit it."""


Use = Literal["read", "write", "walk"]
"""A walk may begin wherever something might be read; what it finds is judged by itself."""

_KEPT = frozenset({".git", ".jp"})
"""Directories whose content decides what runs (hooks, configuration) or records conversations."""

_UNREAD = frozenset({"blobs", "conversations"})
"""Below `.jp`: what other conversations hold is theirs. `jp` attachments and `recall` are the ways to it."""

_DONE = {"read": "read", "walk": "read", "write": "changed"}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A path that a tool may reach.

    `written` is how the call spells it, `path` the real path, `shown` the same from the workspace's root if it lies
    there. `names` lead to it from the directory `base`, which is a real path.
    """

    written: str
    path: str
    shown: str
    base: str
    names: tuple[str, ...]


class _Rule(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    read: bool
    write: bool


def _permits(rule: _Rule | None, use: Use) -> bool:
    return rule is not None and (rule.write if use == "write" else rule.read)


class Territory:
    """The files that one call may reach."""

    def __init__(self, root: Path, rules: Sequence[FileRuleConfig], surroundings: FileSurroundings) -> None:
        """`rules` are `access.fs`: where there are any, what none of them allows is denied."""
        self._surroundings = surroundings
        self._written_root = str(root)
        self.root = surroundings.real_path(str(root.absolute()))
        """The workspace's root, a real path."""
        self._rules = tuple(
            _Rule(path=surroundings.real_path(str(Path(self.root, rule.path))), read=rule.read, write=rule.write)
            for rule in rules
        )
        self._private = tuple(map(surroundings.real_path, surroundings.private()))

    def place(self, written: str, use: Use) -> Place:
        """Return the place that `written`, absolute or relative to the root, leads to through whatever links.

        Raises:
            FileAccessError: it must not be reached for that use, or is no path.
        """
        _require_path(written)
        return self._reached(written, self._real(written, written), use)

    def entry(self, written: str, use: Use) -> Place:
        """Return the place of what is called `written` itself: if it is a link, then of the link.

        Raises:
            FileAccessError: see `place`.
        """
        _require_path(written)
        directory, name = os.path.split(written.rstrip("/"))
        if name in {"", ".", ".."}:
            raise FileAccessError(f"{written!r} is a directory")
        real = self._real(directory, written)
        return self._reached(written, f"{real.rstrip('/')}/{name}", use)

    def allows(self, path: str, use: Use) -> bool:
        """Return whether the real path may be reached."""
        return self._refusal(path, repr(path), use) is None

    def shown(self, path: str) -> str:
        """Return a real path as a call would spell it."""
        return "/".join(names_below(path, self.root) or ()) or path

    def _real(self, path: str, written: str) -> str:
        try:
            return self._surroundings.real_path(str(Path(self.root, path)))
        except OSError as error:
            raise FileAccessError(f"cannot reach {written!r}: {error.strerror}") from None

    def _reached(self, written: str, path: str, use: Use) -> Place:
        refusal = self._refusal(path, repr(written), use)
        if refusal is not None:
            raise FileAccessError(refusal)
        base, names = self._from(path)
        return Place(written=written, path=path, shown=self.shown(path), base=base, names=names)

    def _from(self, path: str) -> tuple[str, tuple[str, ...]]:
        """Return the directory from which `path` is opened, and the names from there."""
        inside = names_below(path, self.root)
        if inside is not None:
            return self.root, inside
        above = max((rule.path for rule in self._rules if names_below(path, rule.path) is not None), key=len)
        base = above if above != path else str(Path(path).parent)
        return base, names_below(path, base) or ()

    def _refusal(self, path: str, written: str, use: Use) -> str | None:
        """Return why a real path must not be reached, in words."""
        is_inside = names_below(path, self.root) is not None
        rule = next((rule for rule in reversed(self._rules) if names_below(path, rule.path) is not None), None)
        if rule is None and not is_inside:
            return f"{written} is outside of {self._written_root!r}, where files may be {_DONE[use]}"
        if self._rules and not (use == "walk" and is_inside) and not _permits(rule, use):
            return f"{written} must not be {_DONE[use]}: the configuration does not let this tool do it"
        return self._kept(path, written, use)

    def _kept(self, path: str, written: str, use: Use) -> str | None:
        if any(names_below(path, private) is not None for private in self._private):
            return f"{written} is what jp keeps for itself, which no tool reaches"
        # A file system may take names of any case for one name.
        names = [name.casefold() for name in path.split("/")]
        if use == "write":
            kept = _KEPT.intersection(names)
            return f"{written} lies in {min(kept)!r}, which no tool changes" if kept else None
        for name, below in pairwise(names):
            if name == ".jp" and below in _UNREAD:
                return f"{written} belongs to jp's conversations, which no file tool reads"
        return None


def names_below(path: str, directory: str) -> tuple[str, ...] | None:
    """Return the names that lead from `directory` to `path`, both real paths; None where it lies elsewhere."""
    if path == directory:
        return ()
    above = directory.rstrip("/") + "/"
    return tuple(path.removeprefix(above).split("/")) if path.startswith(above) else None


def _require_path(written: str) -> None:
    try:
        is_path = b"\0" not in os.fsencode(written)
    except UnicodeEncodeError:
        is_path = False
    if not is_path:
        raise FileAccessError(f"{written!r} is not a path")


MAX_BYTES = 10 * 1024 * 1024
"""Most bytes that are read of one file, as for an attachment."""

# Without O_NONBLOCK, a FIFO that took the file's place after it was looked at would block for ever.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was read. `mode` are its permissions."""

    data: bytes
    mode: int
    owner: int
    group: int


@contextmanager
def in_words(place: Place, doing: str) -> Generator[None]:
    """Turn what the operating system refuses into words; `doing` is a verb.

    Raises:
        FileAccessError: it refused.
    """
    try:
        yield
    except FileNotFoundError:
        raise FileAccessError(f"there is no file {place.written!r}") from None
    except OSError as error:
        raise FileAccessError(f"cannot {doing} {place.written!r}: {error.strerror or error}") from None


@contextmanager
def parent_of(place: Place) -> Generator[int]:
    """Yield the directory that holds `place`, open for use as `dir_fd`.

    Raises:
        FileAccessError: the place is a directory that a rule or the workspace begins at.
        OSError: it is not there any more, or became a link.
    """
    if not place.names:
        raise FileAccessError(f"{place.written!r} is a directory")
    directory = open_directory_below(place.base, place.names[:-1])
    try:
        yield directory
    finally:
        os.close(directory)


@contextmanager
def created_parent_of(place: Place) -> Generator[int]:
    """As `parent_of`; directories that are missing are made, and taken away again where what follows fails."""
    made: list[tuple[int, str]] = []
    directory = open_directory_below(place.base, ())
    try:
        for name in place.names[:-1]:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=directory)
                made.append((os.dup(directory), name))
            below = os.open(name, PASS, dir_fd=directory)
            os.close(directory)
            directory = below
        yield directory
    except BaseException:
        for above, name in reversed(made):
            with suppress(OSError):
                os.rmdir(name, dir_fd=above)
        raise
    finally:
        for above, _ in made:
            os.close(above)
        os.close(directory)


def listed(base: str, names: tuple[str, ...]) -> int:
    """Open a directory for listing.

    Raises:
        OSError: it is not there any more, or became a link.
    """
    if not names:
        return os.open(base, LIST)
    above = open_directory_below(base, names[:-1])
    try:
        return os.open(names[-1], LIST, dir_fd=above)
    finally:
        os.close(above)


def status_of(directory: int, name: str) -> os.stat_result | None:
    """Return what `name` in `directory` is, a link standing for itself; None where there is nothing."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def mode_of(place: Place) -> int | None:
    """Return what kind of thing a place is, and its permissions; None where there is nothing to be seen.

    Only good for choosing what to do: what is opened is looked at again.
    """
    try:
        return os.lstat(place.path).st_mode
    except OSError:
        return None


def require_regular(status: os.stat_result, place: Place) -> None:
    """Refuse what is no regular file.

    Raises:
        FileAccessError: it is none.
    """
    if stat.S_ISDIR(status.st_mode):
        raise FileAccessError(f"{place.written!r} is a directory")
    if stat.S_ISLNK(status.st_mode):
        raise FileAccessError(f"{place.written!r} is a link, not a regular file")
    if not stat.S_ISREG(status.st_mode):
        raise FileAccessError(f"{place.written!r} is not a regular file")


def read_whole(place: Place) -> Content:
    """Read a regular file.

    Raises:
        FileAccessError: it is missing, no regular file, or too large.
    """
    with in_words(place, "read"), parent_of(place) as directory:
        return read_in(directory, place)


def read_in(directory: int, place: Place) -> Content:
    """Read the regular file `place` in its parent.

    Raises:
        FileAccessError: it is no regular file, or too large.
        OSError: the operating system refuses.
    """
    name = place.names[-1]
    # A device is not even opened: that alone can have an effect.
    require_regular(os.stat(name, dir_fd=directory, follow_symlinks=False), place)
    descriptor = os.open(name, _READ, dir_fd=directory)
    with open(descriptor, "rb") as file:  # noqa: PTH123  a descriptor has no path
        status = os.fstat(descriptor)
        require_regular(status, place)
        size = status.st_size
        # A file may grow while it is read, and those of /proc say that they are empty.
        data = b"" if size > MAX_BYTES else file.read(MAX_BYTES + 1)
    if max(size, len(data)) > MAX_BYTES:
        raise FileAccessError(f"{place.written!r} is larger than {MAX_BYTES:,} bytes, which is the most that is read")
    return Content(data=data, mode=stat.S_IMODE(status.st_mode), owner=status.st_uid, group=status.st_gid)


def text_of(data: bytes, written: str) -> str:
    """Return the text that `data` is.

    Raises:
        FileAccessError: it is none.
    """
    if b"\0" in data:
        raise FileAccessError(f"{written!r} is binary ({len(data):,} bytes), not text")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FileAccessError(f"{written!r} is not UTF-8 text: byte {error.start:,} does not fit") from None


def encoded(text: str, what: str) -> bytes:
    """`text` in UTF-8; `what` names it.

    Raises:
        FileAccessError: JSON can hold halves of characters, and files cannot.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise FileAccessError(f"{what} holds half a character, at {error.start:,}, so nothing was written") from None


def legible(path: str) -> str:
    """`path` as one line of text that any log can hold: names are bytes, and need not be UTF-8 or printable."""
    return path if path.isprintable() else "".join(map(_legible, path))


def _legible(char: str) -> str:
    if char.isprintable():
        return char
    return "\ufffd" if "\ud800" <= char <= "\udfff" else ascii(char)[1:-1]


MAX_ENTRIES = 250_000
"""Most names that one call looks at."""

NEVER_ENTERED = frozenset({".git", ".jp"})


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a walk. Of the names right there, only those that begin with `beginning` count.

    A name that begins with a dot counts only if `beginning` does.
    """

    place: Place
    beginning: str = ""


class _Entry(msgspec.Struct, frozen=True):
    names: tuple[str, ...]
    is_directory: bool


class Walks:
    """The walks of one call. `extensions` are endings of names, without the dot; with none, every file counts."""

    def __init__(
        self, territory: Territory, surroundings: FileSurroundings, extensions: frozenset[str] = frozenset()
    ) -> None:
        self._territory = territory
        self._surroundings = surroundings
        self._endings = tuple(f".{extension}" for extension in sorted(extensions))
        self._entries = 0

    def files(self, start: Start) -> Iterator[Place]:
        """Yield the regular files in the order of their paths, name by name; unreadable directories are skipped.

        Raises:
            FileAccessError: the start cannot be listed, or there is too much.
        """
        place = start.place
        ignored = self._surroundings.ignored(place.path, self._territory.root)
        with in_words(place, "list"):
            todo = [iter(self._entries_of(place, (), ignored, start.beginning))]
        while todo:
            entry = next(todo[-1], None)
            if entry is None:
                todo.pop()
            elif entry.is_directory:
                with suppress(OSError):
                    todo.append(iter(self._entries_of(place, entry.names, ignored, "")))
            elif self.has_ending(entry.names[-1]) and (found := self._allowed(place, entry.names)) is not None:
                yield found

    def has_ending(self, name: str) -> bool:
        """Return whether the extension of a file is among those that count."""
        return not self._endings or name.endswith(self._endings)

    def _allowed(self, start: Place, names: tuple[str, ...]) -> Place | None:
        path = "/".join((start.path.rstrip("/"), *names))
        if not self._territory.allows(path, "read"):
            return None
        shown = self._territory.shown(path)
        return Place(written=shown, path=path, shown=shown, base=start.base, names=(*start.names, *names))

    def _entries_of(self, start: Place, names: tuple[str, ...], ignored: Ignored, beginning: str) -> Sequence[_Entry]:
        """Return the directories and regular files that count, sorted by name. `names` lead there from the start."""
        directory = "/".join((start.path.rstrip("/"), *names)) or "/"
        descriptor = listed(start.base, (*start.names, *names))
        try:
            with os.scandir(descriptor) as entries:
                named = [
                    _Entry((*names, entry.name), is_directory)
                    for entry in self._counted(entries)
                    if _is_named(entry.name, beginning)
                    and ((is_directory := entry.is_dir(follow_symlinks=False)) or entry.is_file(follow_symlinks=False))
                ]
        finally:
            os.close(descriptor)
        counting = (
            entry for entry in named if not ignored.ignores(directory, entry.names[-1], is_directory=entry.is_directory)
        )
        return sorted(counting, key=lambda entry: entry.names)

    def _counted(self, entries: Iterable[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        for entry in entries:
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                message = f"there are more than {MAX_ENTRIES:,} files and directories; name a smaller directory"
                raise FileAccessError(message)
            yield entry


def _is_named(name: str, beginning: str) -> bool:
    is_hidden = name.startswith(".") and not beginning.startswith(".")
    return not is_hidden and name.startswith(beginning) and name not in NEVER_ENTERED
