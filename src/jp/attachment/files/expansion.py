"""From a directory or a glob to files: what a walk finds, leaves out, and refuses to enter."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator

import msgspec

from jp.attachment.base import AttachmentError, Declaration
from jp.attachment.files.exclusion import Exclusion
from jp.attachment.files.ignore import IgnoreRules
from jp.attachment.files.location import parts_below, parts_of
from jp.attachment.files.names import joined
from jp.attachment.files.pattern import PathPattern, States
from jp.attachment.files.snapshot import open_directory

MAX_FILES = 2_000
"""How many files one declaration may stand for: beyond it, somebody attaches a tree by mistake."""

MAX_ENTRIES = 250_000
"""How many names one walk looks at."""

NEVER_ENTERED = frozenset({".git", ".jp"})

_CHECK_EVERY = 1_000


class Grounds(msgspec.Struct, frozen=True, kw_only=True):
    """Where a walk happens. `base` is where it begins; nothing outside of `anchor` is reached. Both are real paths."""

    base: str
    anchor: str


class Expansion(msgspec.Struct, kw_only=True):
    """What a walk has found: real paths, in no order. `left_out` are paths by the reason, in words."""

    files: set[str] = msgspec.field(default_factory=set[str])
    left_out: dict[str, list[str]] = msgspec.field(default_factory=dict[str, list[str]])
    excluded_by: str | None = None
    has_ignored: bool = False
    has_directories: bool = False

    def leave_out(self, path: str, reason: str) -> None:
        """Remember that `path` is not among the files."""
        self.left_out.setdefault(reason, []).append(path)


class Walk:
    """One expansion. Directory links are not followed, so it ends; links to files are, inside the anchor."""

    def __init__(self, declaration: Declaration, grounds: Grounds, exclusion: Exclusion, root: str) -> None:
        self._declaration = declaration
        self._grounds = grounds
        self._exclusion = exclusion
        self._ignore = IgnoreRules.around(grounds.base, root)
        self._found = Expansion()
        self._links: list[str] = []
        self._entries = 0
        self._todo: list[tuple[str, States]] = []

    def run(self, pattern: PathPattern, check: Callable[[], None]) -> Expansion:
        """Find what matches `pattern` below the base. `check` is called now and then; what it raises ends the walk.

        Raises:
            AttachmentError: there is too much of it.
            OSError: the base cannot be listed.
        """
        self._todo.append((self._grounds.base, pattern.start))
        while self._todo:
            check()
            directory, states = self._todo.pop()
            try:
                self._visit(directory, states, pattern, check)
            except OSError as error:
                if directory == self._grounds.base:
                    raise
                self._found.leave_out(directory, error.strerror or str(error))
        for link in self._links:
            check()
            self._follow(link)
        return self._found

    def _visit(self, directory: str, states: States, pattern: PathPattern, check: Callable[[], None]) -> None:
        descriptor = open_directory(self._grounds.anchor, parts_below(directory, self._grounds.anchor) or [])
        try:
            with os.scandir(descriptor) as entries:
                for entry in self._counted(entries, check):
                    following = frozenset[int]() if entry.name in NEVER_ENTERED else pattern.step(states, entry.name)
                    self._take(directory, entry, following, accepted=pattern.accepts(following))
        finally:
            os.close(descriptor)

    def _counted(self, entries: Iterable[os.DirEntry[str]], check: Callable[[], None]) -> Iterator[os.DirEntry[str]]:
        for entry in entries:
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                message = f"{self._declaration.written!r} has more than {MAX_ENTRIES:,} entries"
                raise AttachmentError(message, hint=_NARROW)
            if self._entries % _CHECK_EVERY == 0:
                check()
            yield entry

    def _take(self, directory: str, entry: os.DirEntry[str], following: States, *, accepted: bool) -> None:
        is_directory = bool(following) and entry.is_dir(follow_symlinks=False)
        path = joined(directory, entry.name)
        if not (accepted or is_directory) or self._is_ignored(directory, entry.name, is_directory=is_directory):
            return
        if self._is_excluded(path, accepted=accepted):
            return
        if is_directory:
            self._found.has_directories |= accepted
            self._todo.append((path, following))
        elif entry.is_symlink():
            self._links.append(path)
        elif entry.is_file(follow_symlinks=False):
            self._found.files.add(path)
        else:
            self._found.leave_out(path, "neither a file nor a directory")
        if len(self._found.files) + len(self._links) > MAX_FILES:
            message = f"{self._declaration.written!r} stands for more than {MAX_FILES:,} files"
            raise AttachmentError(message, hint=_NARROW)

    def _is_ignored(self, directory: str, name: str, *, is_directory: bool) -> bool:
        is_ignored = self._ignore.ignores(directory, name, is_directory=is_directory)
        self._found.has_ignored |= is_ignored
        return is_ignored

    def _is_excluded(self, path: str, *, accepted: bool = True) -> bool:
        exclude = self._exclusion.by(path)
        if exclude is not None and accepted:
            self._found.excluded_by = exclude
        return exclude is not None

    def _follow(self, link: str) -> None:
        try:
            real = os.path.realpath(link, strict=True)
            mode = os.stat(real).st_mode  # noqa: PTH116  text, as everywhere here
        except OSError as error:
            self._found.leave_out(link, f"a link that leads nowhere: {error.strerror}")
            return
        inside = parts_below(real, self._grounds.anchor)
        if inside is None:
            self._found.leave_out(link, f"a link that leads outside of {self._grounds.anchor!r}")
        elif not stat.S_ISREG(mode):
            self._found.leave_out(link, "a link to what is no file")
        elif not NEVER_ENTERED.intersection(inside) and not self._is_excluded(real):
            self._found.files.add(real)


_NARROW = "Narrow it with a glob such as 'src/**/*.py', or leave a directory out with '!DIRECTORY'."


def is_never_entered(path: str, root: str) -> bool:
    """Whether the real path `path` lies in a directory that jp or git keeps for itself."""
    inside = parts_below(path, root)
    return bool(NEVER_ENTERED.intersection(parts_of(path) if inside is None else inside))
