"""The parts of a TOML text: what is written where, comments and empty lines included.

tomllib says what a text means and forgets where it stood. A text that tomllib has accepted is cut up whole; of another
one comes what stands before the first line that makes no sense here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, assert_never, cast

import msgspec

from jp.config.keys import KeyPath

_MOST_DEPTH = 200
_LONG_KEY = r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){200}"""
"""So many names with dots between them are a key, or no text that anybody writes."""

_SPACE = re.compile(r"[ \t]*")
_COMMENT = re.compile(r"#[^\n]*")
_NAME = re.compile(r"""[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)[ \t]*""")
_ATOM = re.compile(
    r'''"""(?:\\.|[^\\])*?"""(?:"{0,2})'''
    r"""|'{3}.*?'{3}(?:'{0,2})"""
    r"""|"(?:\\.|[^"\\\n])*"|'[^'\n]*'"""
    r"""|\d{4}-\d\d-\d\d[ ]\d\d:[0-9:.Zz+-]+|[^\s,\[\]{}#"']+""",
    re.DOTALL,
)


class Position(msgspec.Struct, frozen=True):
    """Where in a text something begins, both counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Atom(msgspec.Struct, frozen=True):
    """A text, number, date or truth value as it is written."""

    start: int
    text: str


class Element(msgspec.Struct, frozen=True, kw_only=True):
    """An element of a list, with the comments above it and the one behind it."""

    value: Value
    above: tuple[str, ...] = ()
    behind: str = ""


class Array(msgspec.Struct, frozen=True):
    """A list; `below` are the comments after its last element."""

    start: int
    elements: tuple[Element, ...]
    below: tuple[str, ...] = ()


class Inline(msgspec.Struct, frozen=True):
    """A table in braces."""

    start: int
    pairs: tuple[Pair, ...]


Value = Atom | Array | Inline


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A key, which may have dots, with its value, and the comment behind it."""

    start: int
    names: KeyPath
    value: Value
    behind: str = ""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The line that opens a table, or with `repeated` an element of a list of tables."""

    start: int
    names: KeyPath
    repeated: bool
    behind: str = ""


class Remark(msgspec.Struct, frozen=True):
    """A line that is only a comment; without text, an empty one."""

    text: str = ""


Part = Pair | Header | Remark


class _UnreadableError(Exception):
    """Here stands what is no TOML."""


def scan(text: str) -> tuple[Part, ...]:
    """The lines of a text, in order; lines end with a line feed."""
    return tuple(_Scanner(text).parts())


@functools.lru_cache(maxsize=8)
def positions(text: str) -> Mapping[KeyPath, tuple[Position, Position]]:
    """Where each key and each element is written first, and where its value is."""
    lines = _Lines(text)
    found: dict[KeyPath, tuple[Position, Position]] = {}
    for path, start, value_start in _starts(scan(text)):
        found.setdefault(path, (lines.position(start), lines.position(value_start)))
    return found


def place_of(text: str, path: KeyPath, *, of_value: bool = False) -> Position | None:
    """Where the key, or the nearest one above it, is written, or its value; None where nothing of it is.

    What a list or a table with free names holds may stand below the `value` of its long form.
    """
    found = positions(text)
    place: KeyPath = ()
    for name in path:
        steps = ((*place, name), (*place, "value", name))
        nearer = next((step for step in steps if step in found), None)
        if nearer is None:
            break
        place = nearer
    return found[place][of_value] if place else None


class _Lines:
    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def position(self, offset: int) -> Position:
        from bisect import bisect_right

        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)


def _starts(parts: tuple[Part, ...]) -> Iterator[tuple[KeyPath, int, int]]:
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    for part in parts:
        match part:
            case Header(names=names, repeated=repeated, start=start):
                table = element_path(names, counts, repeated=repeated)
                yield from ((table[:count], start, start) for count in range(1, len(table) + 1))
            case Pair():
                yield from _pair_starts(part, table)
            case Remark():
                pass
            case _:
                assert_never(part)


def element_path(names: KeyPath, counts: dict[KeyPath, int], *, repeated: bool) -> KeyPath:
    """The path that a header opens, with the indexes of elements in lists of tables; `counts` remembers them."""
    path: KeyPath = ()
    for index, name in enumerate(names):
        path = (*path, name)
        if repeated and index == len(names) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, str(counts[path]))
    return path


def _pair_starts(pair: Pair, above: KeyPath) -> Iterator[tuple[KeyPath, int, int]]:
    for count in range(1, len(pair.names) + 1):
        yield (*above, *pair.names[:count]), pair.start, pair.value.start
    yield from _value_starts(pair.value, (*above, *pair.names))


def _value_starts(value: Value, path: KeyPath) -> Iterator[tuple[KeyPath, int, int]]:
    match value:
        case Array(elements=elements):
            for index, element in enumerate(elements):
                start = element.value.start
                yield (*path, str(index)), start, start
                yield from _value_starts(element.value, (*path, str(index)))
        case Inline(pairs=pairs):
            for pair in pairs:
                yield from _pair_starts(pair, path)
        case Atom():
            pass
        case _:
            assert_never(value)


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def parts(self) -> Iterator[Part]:
        while self._at < len(self._text):
            try:
                part = self._line()
            except (_UnreadableError, RecursionError):
                return
            yield part

    def _line(self) -> Part:
        self._skip(_SPACE)
        start = self._at
        if self._next() == "[":
            part = self._header(start)
        elif self._next() in {"#", "\n", "\r", ""}:
            part = Remark(self._comment())
        else:
            part = self._pair()
            part = msgspec.structs.replace(part, behind=self._comment())
        self._skip(_SPACE)
        if self._next() == "\r":
            self._at += 1
        if self._at < len(self._text):
            self._expect("\n")
        return part

    def _header(self, start: int) -> Header:
        repeated = self._text.startswith("[[", start)
        self._at += 1 + repeated
        names = self._names()
        self._expect("]]" if repeated else "]")
        return Header(start=start, names=names, repeated=repeated, behind=self._comment())

    def _pair(self) -> Pair:
        self._skip(_SPACE)
        start = self._at
        names = self._names()
        self._expect("=")
        self._skip(_SPACE)
        return Pair(start=start, names=names, value=self._value())

    def _names(self) -> KeyPath:
        names = [self._name()]
        while self._next() == ".":
            self._at += 1
            names.append(self._name())
        return tuple(names)

    def _name(self) -> str:
        match = _NAME.match(self._text, self._at)
        if match is None:
            raise _UnreadableError
        self._at = match.end()
        return _unquoted(match[1])

    def _value(self) -> Value:
        match self._next():
            case "[":
                return self._array()
            case "{":
                return self._inline()
            case _:
                found = _ATOM.match(self._text, self._at)
                if found is None:
                    raise _UnreadableError
                self._at = found.end()
                return Atom(found.start(), found[0])

    def _array(self) -> Array:
        start = self._at
        self._at += 1
        elements: list[Element] = []
        waiting: list[str] = []
        while True:
            is_same_line = self._blank()
            match self._next():
                case "]":
                    self._at += 1
                    return Array(start, tuple(elements), tuple(waiting))
                case ",":
                    self._at += 1
                case "#" if is_same_line and elements and not waiting:
                    elements[-1] = msgspec.structs.replace(elements[-1], behind=self._comment())
                case "#":
                    waiting.append(self._comment())
                case _:
                    elements.append(Element(value=self._value(), above=tuple(waiting)))
                    waiting = []

    def _inline(self) -> Inline:
        start = self._at
        self._at += 1
        pairs: list[Pair] = []
        while True:
            self._skip(_SPACE)
            match self._next():
                case "}":
                    self._at += 1
                    return Inline(start, tuple(pairs))
                case ",":
                    self._at += 1
                case _:
                    pairs.append(self._pair())

    def _blank(self) -> bool:
        """Go on to what is no white space; whether that is on the same line."""
        start = self._at
        while self._next() in {" ", "\t", "\n", "\r"} and self._next():
            self._at += 1
        return "\n" not in self._text[start : self._at]

    def _comment(self) -> str:
        self._skip(_SPACE)
        match = _COMMENT.match(self._text, self._at)
        if match is None:
            return ""
        self._at = match.end()
        return match[0].rstrip()

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        self._at = self._at if match is None else match.end()

    def _expect(self, text: str) -> None:
        self._skip(_SPACE)
        if not self._text.startswith(text, self._at):
            raise _UnreadableError
        self._at += len(text)


def _unquoted(name: str) -> str:
    if name[0] == "'":
        return name[1:-1]
    if name[0] != '"':
        return name
    if "\\" not in name:
        return name[1:-1]
    import tomllib

    try:
        return str(tomllib.loads(f"x = {name}")["x"])
    except tomllib.TOMLDecodeError:
        raise _UnreadableError from None


def load_toml(text: str) -> dict[str, Any]:
    """The data of a text, of which everything else that reads it can be recursive.

    Raises:
        TOMLDecodeError: it is no TOML.
        RecursionError: it is nested too deeply.
    """
    import tomllib

    # The library takes the square of a key's length.
    if text.count(".") > _MOST_DEPTH and re.search(_LONG_KEY, text):
        raise RecursionError
    found = tomllib.loads(text)
    level: list[object] = [found]
    for _ in range(_MOST_DEPTH):
        level = [below for value in level for below in _below(value)]
        if not level:
            return found
    raise RecursionError


def _below(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()
