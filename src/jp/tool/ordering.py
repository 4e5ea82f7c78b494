"""Which calls must wait for others: those about the same files run in the order in which they were asked for.

A model that changes a file twice in one cycle, or changes it and reads it, means the one after the other. Only reading
changes nothing, so that calls which do just that never wait for each other.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from jp.conversation.entries import JsonObject
from jp.tool.base import ReadsOnly
from jp.tool.checking import CheckedCall
from jp.tool.rules import is_path

if TYPE_CHECKING:
    from anyio import Event

_ENDS = frozenset({"source", "target", "destination", "from", "to"})
"""What the two paths of a move are called."""


class _Entered(msgspec.Struct, frozen=True, kw_only=True):
    paths: frozenset[str]
    reads_only: bool
    is_over: Event


class CallOrder:
    """The order of the calls of one cycle, which enter as they were asked for."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._entered: dict[str, _Entered] = {}

    def enter(self, checked: CheckedCall) -> None:
        """Take note of a call that may run, or of its arguments where they have changed."""
        from anyio import Event

        tool, known = checked.configured.tool, self._entered.get(checked.call.id)
        self._entered[checked.call.id] = _Entered(
            paths=paths_named(checked.arguments, self._root),
            reads_only=isinstance(tool, ReadsOnly) and tool.reads_only,
            is_over=Event() if known is None else known.is_over,
        )

    async def wait(self, identity: str) -> None:
        """Wait until all calls are over that have to be before this one."""
        mine = self._entered[identity]
        for other, entered in tuple(self._entered.items()):
            if other == identity:
                return
            if not (mine.reads_only and entered.reads_only) and _touch(mine.paths, entered.paths):
                await entered.is_over.wait()

    def leave(self, identity: str) -> None:
        """A call is over, or does not run."""
        if identity in self._entered:
            self._entered[identity].is_over.set()


def paths_named(arguments: JsonObject, root: str) -> frozenset[str]:
    """The paths that the arguments of a call name, absolute; what a link on the disk leads to is not looked at."""
    return frozenset(posixpath.normpath(posixpath.join(root, text)) for text in _texts(arguments))


def _texts(arguments: JsonObject) -> Iterator[str]:
    for name, value in arguments.items():
        if name in _ENDS or is_path(name):
            yield from (text for text in _elements(value) if isinstance(text, str))


def _elements(value: object) -> Iterable[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _touch(some: frozenset[str], others: frozenset[str]) -> bool:
    """Whether a path of `some` is one of `others`, or the one lies in the other."""
    return any(_is_within(one, other) or _is_within(other, one) for one in some for other in others)


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
