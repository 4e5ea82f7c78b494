"""Positions in configuration files: a tomlkit parser notes where each key and value begins, which tomlkit itself drops.

It is imported on use, for an error or an explanation: a query only reads values, with tomllib.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from contextlib import suppress

import msgspec
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Item, Key, Table
from tomlkit.parser import Parser

from jp.config.schema import KeyPath

_SPACE = re.compile(r"[ \t]*")
_LARGEST = 64 * 1024
"""tomlkit takes seconds for a longer text; its errors name no line."""


class Position(msgspec.Struct, frozen=True):
    """A line and a column of a text, both counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


def place_of(text: str, path: KeyPath, *, of_value: bool = False) -> Position | None:
    """Return where a key is written first, or the nearest key above it; None where the text has none of them.

    Args:
        text: the text of a file; of TOML, the part that tomlkit can read.
        path: the key; what a list or a table holds may stand below the `value` of its long form.
        of_value: return where the value begins instead.
    """
    found = positions(text)
    place: KeyPath = ()
    for name in path:
        steps = ((*place, name), (*place, "value", name))
        nearer = next((step for step in steps if step in found), None)
        if nearer is None:
            break
        place = nearer
    if not place:
        return None
    offset = found[place][of_value]
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


@functools.lru_cache(maxsize=8)
def positions(text: str) -> Mapping[KeyPath, tuple[int, int]]:
    """Return the offsets at which each key, or element of a list, and its value begin; elements are named by index."""
    if len(text) > _LARGEST:
        return {}
    locator = _Locator(text)
    with suppress(TOMLKitError, RecursionError):  # what stands above is located
        locator.parse()
    if locator.found:
        return locator.found

    from jp.config.formats import offsets

    return offsets(text)


class _Locator(Parser):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.found: dict[KeyPath, tuple[int, int]] = {}
        self._above: KeyPath = ()
        self._names: KeyPath = ()
        self._start = 0
        self._lengths: dict[KeyPath, int] = {}
        """The number of elements of each list so far."""

    def _parse_table(self, parent_name: Key | None = None, parent: Table | None = None) -> tuple[Key, Table | AoT]:
        start = self._idx
        is_repeated, _ = self._peek_table()
        path: KeyPath = ()
        for name in self._names[:-1]:
            path = (*path, name)
            if path in self._lengths:
                path = (*path, str(self._lengths[path] - 1))
        path = (*path, self._names[-1])
        self._above = (*path, str(self._next_index(path))) if is_repeated else path
        self._note(self._above, start, start)
        return super()._parse_table(parent_name, parent)

    def _parse_key_value(self, parse_comment: bool = False) -> tuple[Key, Item]:  # noqa: FBT001, FBT002  as tomlkit has it
        above = self._above
        space = _SPACE.match(self._src, self._idx)
        self._start = self._idx if space is None else space.end()
        pair = super()._parse_key_value(parse_comment)
        self._above = above
        return pair

    def _parse_key(self) -> Key:
        key = super()._parse_key()
        self._names = tuple(part.key for part in key)
        return key

    def _parse_value(self) -> Item:
        above, start = self._above, self._idx
        if self._names:
            self._above = (*above, *self._names)
            self._note(self._above, self._start, start)
        else:
            self._above = (*above, str(self._next_index(above)))
            self._note(self._above, start, start)
        self._names = ()
        value = super()._parse_value()
        self._above = above
        return value

    def _next_index(self, path: KeyPath) -> int:
        self._lengths[path] = self._lengths.get(path, 0) + 1
        return self._lengths[path] - 1

    def _note(self, path: KeyPath, start: int, value_start: int) -> None:
        for count in range(1, len(path) + 1):
            self.found.setdefault(path[:count], (start, value_start))
