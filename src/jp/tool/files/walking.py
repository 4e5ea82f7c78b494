"""Finding files below directories: sorted, without what is hidden or ignored, and without following links."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

from jp.tool.files.errors import FileAccessError
from jp.tool.files.opening import in_words, listed
from jp.tool.files.surroundings import FileSurroundings, Ignored
from jp.tool.files.territory import Place, Territory

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
