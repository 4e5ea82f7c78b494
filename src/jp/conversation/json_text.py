"""The JSON value in a model's answer, for models that wrap it in words or in a code fence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

_FENCED = re.compile(r"(`{3,}|~{3,})[^\n]*\n(?P<inside>.*)\n[ \t]*\1[`~]*", re.DOTALL)
_OPENING = re.compile(r'\{\s*["}]|\[\s*(?:["{\[\]]|-?\d|(?:true|false|null)\s*[,\]])')
"""The beginning of an object or an array; other brackets are punctuation."""

_KEY = re.compile(r'"\s*:\s*\Z')
"""The name of a member, right before its value."""


class JsonValue(msgspec.Struct, frozen=True):
    """A value. `is_whole`: the text says nothing else."""

    value: Any
    is_whole: bool


NoValue = Literal["none", "several", "broken", "repeated"]
"""The reason why a text has no value: none, several, a malformed one, or an object with two members of one name."""


def find_json(text: str) -> JsonValue | NoValue:
    """Return the one JSON value in `text`: the whole text, the whole code fence in it, or an object or an array.

    Two equal values count as one. If brackets look like JSON and are malformed, there is no value: a well-formed
    value inside of them would be a part only.
    """
    stripped = text.strip().removeprefix("\ufeff")
    fenced = _FENCED.fullmatch(stripped)
    for candidate, is_whole in ((stripped, True), (fenced["inside"] if fenced else "", False)):
        found = _decoded(candidate)
        if isinstance(found, str):
            return found
        if found is not None:
            return JsonValue(found.value, is_whole)
    return _embedded(stripped)


def _decoded(text: str) -> JsonValue | Literal["repeated"] | None:
    try:
        value = msgspec.json.decode(text)
        return "repeated" if _repeats(text) else JsonValue(value, is_whole=True)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def _repeats(text: str) -> bool:
    """Return whether an object in `text`, which is JSON, has two members of the same name."""
    if "{" not in text:
        return False
    import json

    found = False

    def look(members: list[tuple[str, object]]) -> None:
        nonlocal found
        found = found or len({name for name, _ in members}) < len(members)

    json.loads(text, object_pairs_hook=look, parse_int=str)
    return found


def _embedded(text: str) -> JsonValue | NoValue:
    found: dict[bytes, JsonValue] = {}
    outside: list[str] = []
    position = 0
    for start, end, value in _values(text):
        if value is None or _KEY.search(text[position:start]) is not None:
            return "broken"
        if isinstance(value, str):
            return value
        found[msgspec.json.encode(value.value, order="deterministic")] = value
        outside.append(text[position:start])
        position = end
    if any(_closes_more("".join((*outside, text[position:])), pair) for pair in ("{}", "[]")):
        return "broken"
    if len(found) > 1:
        return "several"
    return JsonValue(next(iter(found.values())).value, is_whole=False) if found else "none"


def _closes_more(text: str, pair: str) -> bool:
    """Return whether a bracket is closed that was not opened, so that the beginning of a value is missing."""
    return text.count(pair[1]) > text.count(pair[0])


def _values(text: str) -> Iterator[tuple[int, int, JsonValue | Literal["repeated"] | None]]:
    """Yield the start, the end and the value of each object or array in `text`; None for a malformed one."""
    from json import JSONDecoder

    decoder = JSONDecoder()
    position = 0
    while (opening := _OPENING.search(text, position)) is not None:
        start = opening.start()
        try:
            _, position = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            position = len(text)
        yield start, position, _decoded(text[start:position])
