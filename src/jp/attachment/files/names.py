"""How a file system spells names, and how URIs do: real case, composed Unicode form, one spelling for one file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

from jp.attachment.uri import nfc

Identity = tuple[int, int]
"""Device and inode: equal for two paths to one file."""


class Tree(Protocol):
    """What is asked of a file system."""

    def names(self, directory: str) -> Sequence[str]:
        """What `directory` lists; nothing where it cannot be read."""
        ...

    def identity(self, path: str) -> Identity | None:
        """What `path` names, a link standing for itself; None where that is nothing."""
        ...


def joined(directory: str, name: str) -> str:
    """The path of `name` in `directory`."""
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
    """Spellings of names, remembered: one object serves one resolution."""

    def __init__(self, tree: Tree | None = None) -> None:
        self._tree: Tree = DiskTree() if tree is None else tree
        self._listings: dict[str, Sequence[str]] = {}
        self._spelled: dict[str, str] = {"/": "/"}

    def _names(self, directory: str) -> Sequence[str]:
        if directory not in self._listings:
            self._listings[directory] = self._tree.names(directory)
        return self._listings[directory]

    def listed(self, directory: str, name: str) -> str:
        """The name under which `directory` lists what `name` finds there, whatever its case and Unicode form.

        Where the file system finds nothing, the only name that differs in its Unicode form alone; else `name`.
        """
        path = joined(directory, name)
        identity = self._tree.identity(path)
        if identity is None:
            same = [] if name.isascii() else self._of_same_form(directory, name)
            return same[0] if len(same) == 1 else name
        other = joined(directory, name.swapcase())
        # The listing is only read where another spelling finds the same file, or might.
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
        """The absolute `path`, whose names are as listed, as URIs spell it: each name in NFC.

        A name keeps its own form where its directory holds another name that differs in form alone, so that two
        files never have one URI.
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
