"""Shorter arguments of calls: long strings in JSON are cut, and every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.context.groups import GroupIndex
from jp.context.markers import Cutter, plan_cut, shortest_limit
from jp.context.types import Call, Message, Transcript

_TOKEN = re.compile(
    r"[ \t\n\r]*+(?:"
    r'(?P<string>"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+")'
    r"|(?P<scalar>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null)"
    r"|(?P<brace>\{)|(?P<end_brace>\})|(?P<bracket>\[)|(?P<end_bracket>\])|(?P<comma>,)|(?P<colon>:))"
)
_BLANK = re.compile(r"[ \t\n\r]*+")

_State = Literal["value", "first value", "key", "first key", "colon", "in object", "in array", "end"]
_Step = _State | Literal["open object", "open array", "leaf", "close"]

_OPENING: dict[str, _Step] = {
    "string": "leaf",
    "scalar": "leaf",
    "brace": "open object",
    "bracket": "open array",
}
_STEPS: dict[_State, dict[str, _Step]] = {
    "value": _OPENING,
    "first value": {**_OPENING, "end_bracket": "close"},
    "key": {"string": "colon"},
    "first key": {"string": "colon", "end_brace": "close"},
    "colon": {"colon": "value"},
    "in object": {"comma": "key", "end_brace": "close"},
    "in array": {"comma": "value", "end_bracket": "close"},
    "end": {},
}


def string_values(text: str, longer_than: int) -> list[tuple[int, int]] | None:
    """From where to where the strings that are values stand in `text`, quotes included; None if it is not JSON.

    Only those that have more than `longer_than` characters between their quotes. Names of members are none.
    """
    found: list[tuple[int, int]] = []
    state: _State = "value"
    inside: list[_State] = ["end"]
    position = 0
    while (token := _TOKEN.match(text, position)) is not None:
        position = token.end()
        kind = token.lastgroup or ""
        step = _STEPS[state].get(kind)
        if step is None:
            return None
        if step == "leaf":
            start = token.start(kind)
            if kind == "string" and position - start - 2 > longer_than:
                found.append((start, position))
            state = inside[-1]
        elif step == "open object":
            inside.append("in object")
            state = "first key"
        elif step == "open array":
            inside.append("in array")
            state = "first value"
        elif step == "close":
            inside.pop()
            state = inside[-1]
        else:
            state = step
    return found if state == "end" and _BLANK.fullmatch(text, position) else None


MAX_LEAF = 400

_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.")
"""What spells one code point in more than one character."""

_LONGEST_SPELLING = len(r"\ud83d\ude00")
_LONGEST_PLAIN_SPELLING = len(r"\n")
_NO_BACKSLASH = re.compile(r"[^\\]")
"""After this, escapes are read as they are meant; the rest of one that began before it is plain text."""

_SEARCHED = 200


class LeafCut(msgspec.Struct, frozen=True, kw_only=True):
    """A string that was cut. `start` is where it began in the text before; `handle` recalls its whole value."""

    start: int
    handle: str
    omitted: int


class Shrunk(msgspec.Struct, frozen=True, kw_only=True):
    """`text` is the very object that came in where nothing was cut."""

    text: str
    changed: bool = False
    cuts: tuple[LeafCut, ...] = ()


def shrink_json_string_leaves(
    text: str, cutter: Cutter, *, max_leaf: int = MAX_LEAF, max_total: int | None = None
) -> Shrunk:
    """`text` with its strings cut to `max_leaf` characters, and so that all of them together have `max_total`.

    Only strings that are values, never names of members; a string that holds JSON is a string like any other. A string
    is never cut below what a marker takes, whatever the limits say. What is not JSON, as RFC 8259 has it, comes back
    as it is. Never longer; doing it again changes nothing.
    """
    floor = shortest_limit(cutter.nonce)
    limit = max(max_leaf, floor)
    if len(text) <= min(limit, limit if max_total is None else max_total):
        return Shrunk(text=text)
    if max_total is None and not _may_be_long(text, limit):
        return Shrunk(text=text)
    leaves = string_values(text, limit if max_total is None else 0)
    if not leaves:
        return Shrunk(text=text)
    if max_total is not None:
        limit = max(_fitting([_length(text, *leaf) for leaf in leaves], limit, max_total), floor)
    return _splice(text, leaves, limit, cutter)


def _splice(text: str, leaves: Sequence[tuple[int, int]], limit: int, cutter: Cutter) -> Shrunk:
    pieces: list[str] = []
    cuts: list[LeafCut] = []
    position = 0
    for start, end in leaves:
        value = _decoded(text, start, end) if end - start - 2 > limit else ""
        cut = plan_cut(value, limit, cutter)
        if cut is None:
            continue
        handle = cutter.artifacts.keep(value)
        inside = text[start + 1 : end - 1]
        head, tail = _spelled(inside, cut.head), _spelled_from_end(inside, cut.tail)
        pieces += [text[position : start + 1], inside[:head], cut.marker, inside[tail:]]
        cuts.append(LeafCut(start=start, handle=handle, omitted=cut.length - cut.head - cut.tail))
        position = end - 1
    if not cuts:
        return Shrunk(text=text)
    return Shrunk(text="".join((*pieces, text[position:])), changed=True, cuts=tuple(cuts))


def _may_be_long(text: str, limit: int) -> bool:
    """Whether `text`, if it is JSON, can have a string of more than `limit` characters: a look that costs little."""
    quotes_apart = text.replace(r"\\", "__").replace(r"\"", "__").split('"')
    return max(map(len, quotes_apart)) > limit


def _fitting(lengths: Sequence[int], limit: int, max_total: int) -> int:
    """The longest that strings of these `lengths` may be, at most `limit`, to have `max_total` characters together.

    What the shortest ones leave is shared by the others; that is most where no string is longer than its share.
    """
    if sum(min(length, limit) for length in lengths) <= max_total:
        return limit
    left = max(max_total, 0)
    *shorter, _ = accumulate(sorted(lengths), initial=0)
    shares = (max(left - taken, 0) // (len(lengths) - done) for done, taken in enumerate(shorter))
    return min(max(shares), limit)


def _decoded(text: str, start: int, end: int) -> str:
    if "\\" not in text[start:end]:
        return text[start + 1 : end - 1]
    import json

    value: str = json.loads(text[start:end])
    return value


def _length(text: str, start: int, end: int) -> int:
    """Characters of the value that the literal stands for."""
    if text.find("\\", start, end) < 0:
        return end - start - 2
    return len(_decoded(text, start, end))


def _spelled(inside: str, count: int) -> int:
    """How many characters of the literal spell the first `count` of its value."""
    position = 0
    left = count
    for escape in _ESCAPE.finditer(inside):
        plain = escape.start() - position
        if left <= plain:
            break
        left -= plain + 1
        position = escape.end()
    return position + left


def _spelled_from_end(inside: str, count: int) -> int:
    """Where the spelling of the last `count` characters of the value begins; only the end of the literal is read."""
    near = max(len(inside) - count * _LONGEST_SPELLING, 0)
    if inside.find("\\u", near) < 0:
        near = max(len(inside) - count * _LONGEST_PLAIN_SPELLING, 0)
    readable = _NO_BACKSLASH.search(inside, max(near - _SEARCHED, 0), near)
    start = readable.end() if readable else 0
    end = inside[start:]
    escapes = _ESCAPE.findall(end)
    length = len(end) - sum(map(len, escapes)) + len(escapes)
    return start + _spelled(end, length - count)


class CallCut(msgspec.Struct, frozen=True, kw_only=True):
    """What was cut in the arguments of call number `call` of message `position`."""

    position: int
    call: int
    cuts: tuple[LeafCut, ...]


class ShrunkCalls(msgspec.Struct, frozen=True, kw_only=True):
    """`messages` is the very object that came in where nothing was cut."""

    messages: Transcript
    cuts: tuple[CallCut, ...] = ()


def shrink_old_arguments(
    messages: Transcript,
    index: GroupIndex,
    cutter: Cutter,
    *,
    between: tuple[int, int],
    max_leaf: int = MAX_LEAF,
) -> ShrunkCalls:
    """`messages` with shorter strings in the arguments of the calls between two positions, the second one excluded.

    The first is where the protected head ends, the second where the exact tail starts. Pending calls and messages that
    are `verbatim` stay as they are.
    """
    start, end = between
    found: list[CallCut] = []
    changed: dict[int, Message] = {}
    for position in range(max(start, 0), min(end, len(messages))):
        message = messages[position]
        if not message.calls or message.meta.verbatim or index.groups[index.group_of[position]].pending:
            continue
        calls, cuts = _shrunk(position, message.calls, cutter, max_leaf)
        if cuts:
            found.extend(cuts)
            changed[position] = replace(message, calls=calls)
    if not changed:
        return ShrunkCalls(messages=messages)
    result = tuple(changed.get(position, message) for position, message in enumerate(messages))
    return ShrunkCalls(messages=result, cuts=tuple(found))


def _shrunk(
    position: int, calls: Sequence[Call], cutter: Cutter, max_leaf: int
) -> tuple[tuple[Call, ...], tuple[CallCut, ...]]:
    results = [shrink_json_string_leaves(call.arguments, cutter, max_leaf=max_leaf) for call in calls]
    cuts = tuple(
        CallCut(position=position, call=number, cuts=result.cuts)
        for number, result in enumerate(results)
        if result.changed
    )
    shorter = tuple(replace(call, arguments=result.text) for call, result in zip(calls, results, strict=True))
    return shorter, cuts
