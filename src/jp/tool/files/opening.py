"""Opening and walking what was judged, and nothing else, even while links are swapped."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec

from jp.descent import LIST, PASS, descend
from jp.tool.files.surroundings import FileSurroundings, Ignored
from jp.tool.files.territory import FileAccessError, Place, Territory

MAX_BYTES = 10 * 1024 * 1024
"""What is read of one file at most, as for an attachment."""

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
    """The directory that holds `place`, open for use as `dir_fd`.

    Raises:
        FileAccessError: the place is a directory that a rule or the workspace begins at.
        OSError: it is not there any more, or became a link.
    """
    if not place.names:
        raise FileAccessError(f"{place.written!r} is a directory")
    directory = descend(place.base, place.names[:-1])
    try:
        yield directory
    finally:
        os.close(directory)


@contextmanager
def created_parent_of(place: Place) -> Generator[int]:
    """As `parent_of`; directories that are missing are made, and taken away again where what follows fails."""
    made: list[tuple[int, str]] = []
    directory = descend(place.base, ())
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
    above = descend(base, names[:-1])
    try:
        return os.open(names[-1], LIST, dir_fd=above)
    finally:
        os.close(above)


def status_of(directory: int, name: str) -> os.stat_result | None:
    """What `name` in `directory` is, a link standing for itself; None where there is nothing."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def mode_of(place: Place) -> int | None:
    """What kind of thing a place is, and its permissions; None where there is nothing to be seen.

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
    """The text that `data` is.

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
"""How many names one call looks at."""

NEVER_ENTERED = frozenset({".git", ".jp"})


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Where a walk begins. Of the names right there only those count that begin with `beginning`.

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
        """The regular files in the order of their paths, name by name. What cannot be listed below the start has none.

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
        """Whether the extension of a file is among those that count."""
        return not self._endings or name.endswith(self._endings)

    def _allowed(self, start: Place, names: tuple[str, ...]) -> Place | None:
        path = "/".join((start.path.rstrip("/"), *names))
        if not self._territory.allows(path, "read"):
            return None
        shown = self._territory.shown(path)
        return Place(written=shown, path=path, shown=shown, base=start.base, names=(*start.names, *names))

    def _entries_of(self, start: Place, names: tuple[str, ...], ignored: Ignored, beginning: str) -> Sequence[_Entry]:
        """The directories and regular files that count, sorted by name. `names` lead there from the start."""
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
