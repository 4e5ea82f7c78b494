"""What a log keeps beside what was said, in a line: a change of the configuration, and what the original JP wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

from jp.conversation.entries import JsonObject, Unknown
from jp.render.amounts import count_text
from jp.render.cells import truncate
from jp.render.sanitise import one_line

_LINE_WIDTH = 120
_PATH_WIDTH = 60
_VALUE_WIDTH = 40
_NOTHING: Sequence[Any] = (None, "", [], {})
_SHOWN = 3
_FIRST = "assistant.model."


class _Remainder(msgspec.Struct, frozen=True):
    """A line of the type `original`: an event, whole, or fields of another line."""

    event: JsonObject | None = None
    fields: JsonObject | None = None


def change_text(delta: JsonObject, *, is_whole: bool) -> str:
    """A change of the configuration as JSON; of a long one, unless `is_whole`, some values and how many there are."""
    text = _json(delta)
    if is_whole or len(text) <= _LINE_WIDTH:
        return f"configuration {text}"
    # Which model answers is what a reader looks for.
    found = sorted(_leaves(delta), key=lambda leaf: (leaf[1] in _NOTHING, not leaf[0].startswith(_FIRST)))
    shown = [f"{truncate(one_line(path), _PATH_WIDTH)}={_short(_json(value))}" for path, value in found[:_SHOWN]]
    return f"configuration {_with_count(shown, len(found), 'value')}"


def unknown_text(entry: Unknown, *, is_whole: bool) -> str:
    """What an entry of a type without a place is: of the original JP's, what it holds; all of it if `is_whole`."""
    from jp.conversation.original import REMAINDER

    remainder = _remainder(entry) if entry.type == REMAINDER else _Remainder()
    if remainder.event is not None:
        kind = remainder.event.get("type")
        return _kept(f"an event of type {_short(repr(kind))}", remainder.event, is_whole=is_whole)
    if remainder.fields is not None:
        return _kept(_named(remainder.fields), remainder.fields, is_whole=is_whole)
    return f"an entry of type {entry.type!r}, which this version does not know"


def _remainder(entry: Unknown) -> _Remainder:
    try:
        return msgspec.json.decode(entry.raw, type=_Remainder)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Remainder()


def _kept(what: str, value: JsonObject, *, is_whole: bool) -> str:
    said = f"kept from the original JP, without a place of its own here: {what}"
    return f"{said}: {_json(value)}" if is_whole else said


def _named(fields: JsonObject) -> str:
    if isinstance(delta := fields.get("delta"), dict) and len(fields) == 1:
        spelled = sum(1 for _ in _leaves(cast("JsonObject", delta)))
        return f"the spelling of {count_text(spelled, 'value')} of the configuration"
    return _with_count([_short(repr(name)) for name in list(fields)[:_SHOWN]], len(fields), "field")


def _with_count(shown: Sequence[str], count: int, noun: str) -> str:
    more = count - len(shown)
    return ", ".join([*shown, *([f"and {count_text(more, f'more {noun}')}"] if more else [])])


def _leaves(value: JsonObject, above: str = "") -> Iterator[tuple[str, Any]]:
    for name, below in value.items():
        if isinstance(below, dict) and below:
            yield from _leaves(cast("JsonObject", below), f"{above}{name}.")
        else:
            yield f"{above}{name}", below


def _short(text: str) -> str:
    return truncate(one_line(text), _VALUE_WIDTH)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
