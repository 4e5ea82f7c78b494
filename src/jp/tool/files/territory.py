"""Which files a tool may reach: the workspace and `access.fs`, without what jp and git keep."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal

import msgspec

from jp.config.tools import FileRuleConfig
from jp.errors import JpError
from jp.tool.files.surroundings import FileSurroundings


class FileAccessError(JpError):
    """A file is missing, out of bounds or of a kind that is not read; or what was asked for does not fit it."""


Use = Literal["read", "write", "walk"]
"""A walk may begin wherever something might be read; what it finds is judged by itself."""

_KEPT = frozenset({".git", ".jp"})
"""What is in such a directory decides what runs (hooks, configuration) or is the record of what was said."""

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
    """What one call may reach."""

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
        """The place that `written`, absolute or relative to the root, leads to through whatever links.

        Raises:
            FileAccessError: it must not be reached for that use, or is no path.
        """
        _require_path(written)
        return self._reached(written, self._real(written, written), use)

    def entry(self, written: str, use: Use) -> Place:
        """The place of what is called `written` itself: if it is a link, then of the link.

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
        """Whether the real path may be reached."""
        return self._refusal(path, repr(path), use) is None

    def shown(self, path: str) -> str:
        """A real path as a call would spell it."""
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
        """The directory from which `path` is opened, and the names from there."""
        inside = names_below(path, self.root)
        if inside is not None:
            return self.root, inside
        above = max((rule.path for rule in self._rules if names_below(path, rule.path) is not None), key=len)
        base = above if above != path else str(Path(path).parent)
        return base, names_below(path, base) or ()

    def _refusal(self, path: str, written: str, use: Use) -> str | None:
        """Why a real path must not be reached, in words."""
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
    """The names that lead from `directory` to `path`, both real paths; None where it lies elsewhere."""
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
