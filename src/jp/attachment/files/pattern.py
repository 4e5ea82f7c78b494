"""Globs over paths: `*`, `?`, `[a-z]`, `[!a-z]` inside a segment, `**` for any number of directories. Pure.

Wildcards are the raw characters of a URI; percent-encoded they mean themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import assert_never

import msgspec

from jp.attachment.uri import decode, encode, nfc

_TOKEN = re.compile(r"(?P<star>\*+)|(?P<one>\?)|\[(?P<not>[!^]?)(?P<set>\]?[^\]]+|\])\]|(?P<text>[^*?\[]+|\[)")
ANY_DEPTH = "**"


class _Text(msgspec.Struct, frozen=True):
    text: str


class _Star(msgspec.Struct, frozen=True):
    pass


class _One(msgspec.Struct, frozen=True):
    pass


class _Set(msgspec.Struct, frozen=True):
    negated: bool
    ranges: tuple[tuple[str, str], ...]


_Token = _Text | _Star | _One | _Set


def _ranges(body: str) -> tuple[tuple[str, str], ...]:
    ranges: list[tuple[str, str]] = []
    index = 0
    while index < len(body):
        is_range = body[index + 1 : index + 2] == "-" and index + 2 < len(body)
        ranges.append((body[index], body[index + 2] if is_range else body[index]))
        index += 3 if is_range else 1
    return tuple(ranges)


def _tokens(segment: str) -> list[_Token]:
    tokens: list[_Token] = []
    for match in _TOKEN.finditer(segment):
        if match["star"]:
            tokens.append(_Star())
        elif match["one"]:
            tokens.append(_One())
        elif match["set"]:
            tokens.append(_Set(negated=bool(match["not"]), ranges=_ranges(nfc(decode(match["set"])))))
        elif tokens and isinstance(last := tokens[-1], _Text):
            tokens[-1] = _Text(nfc(last.text + decode(match["text"])))
        else:
            tokens.append(_Text(nfc(decode(match["text"]))))
    return tokens


def has_wildcard(segment: str) -> bool:
    """Whether a percent-encoded segment is more than a name."""
    return any(not isinstance(token, _Text) for token in _tokens(segment))


def canonical_segment(segment: str) -> str:
    """`segment` with one spelling for each pattern: wildcards raw, everything else percent-encoded, in NFC."""
    return ANY_DEPTH if segment == ANY_DEPTH else "".join(map(_spelled, _tokens(segment)))


def _spelled(token: _Token) -> str:
    match token:
        case _Text(text=text):
            return encode(text)
        case _Star():
            return "*"
        case _One():
            return "?"
        case _Set(negated=negated, ranges=ranges):
            body = "".join(encode(low) if low == high else f"{encode(low)}-{encode(high)}" for low, high in ranges)
            return f"[{'!' if negated else ''}{body}]"
        case _:
            assert_never(token)


def _expression(token: _Text | _One | _Set) -> str:
    match token:
        case _Text(text=text):
            return re.escape(text)
        case _One():
            return "."
        case _Set(negated=negated, ranges=ranges):
            # As for a shell, a range that ends before it begins holds nothing.
            items = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges if low <= high)
            if not items:
                return "." if negated else "(?!)"
            return f"[{'^' if negated else ''}{items}]"
        case _:
            assert_never(token)


def _compiled(tokens: Iterable[_Token]) -> re.Pattern[str]:
    runs = [""]
    for token in tokens:
        if isinstance(token, _Star):
            runs.append("")
        else:
            runs[-1] += _expression(token)
    if len(runs) == 1:
        return re.compile(runs[0], re.DOTALL)
    # Between two stars the first place that fits is as good as any other: atomic, so that no name takes long.
    middle = "".join(f"(?>.*?{run})" for run in runs[1:-1])
    return re.compile(f"{runs[0]}{middle}.*{runs[-1]}", re.DOTALL)


class _Name(msgspec.Struct, frozen=True):
    """One segment. `hidden` says that it names hidden files: it begins with a dot of its own."""

    expression: re.Pattern[str]
    hidden: bool


States = frozenset[int]
"""How far a pattern has matched: the segments that may come next."""


class PathPattern:
    """A glob, matched name by name so that a walk need not enter what cannot match."""

    def __init__(self, segments: Iterable[str]) -> None:
        """`segments` are percent-encoded."""
        self._segments = tuple(None if segment == ANY_DEPTH else _name(segment) for segment in segments)
        self.start: States = self._closed({0})

    def _closed(self, states: Iterable[int]) -> States:
        """The states with those that a `**` for no directory at all leads to."""
        closed = set(states)
        for state in range(len(self._segments)):
            if state in closed and self._segments[state] is None:
                closed.add(state + 1)
        return frozenset(closed)

    def step(self, states: States, name: str, *, hidden: bool = False) -> States:
        """The states below `name`; none where nothing below can match.

        Only with `hidden` do wildcards match names that begin with a dot.
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
        """Whether what led to `states` matches."""
        return len(self._segments) in states

    def covers(self, names: Sequence[str]) -> bool:
        """Whether the path `names` or a directory above it matches, hidden names included."""
        states = self.start
        for name in names:
            states = self.step(states, name, hidden=True)
            if self.accepts(states):
                return True
        return False


_END = _Name(re.compile(r"(?!)"), hidden=False)


def _name(segment: str) -> _Name:
    tokens = _tokens(segment)
    first = tokens[0]
    return _Name(_compiled(tokens), hidden=isinstance(first, _Text) and first.text.startswith("."))
