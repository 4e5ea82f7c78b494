"""Single values as the original JP stores them: encoded texts and moments."""

from __future__ import annotations

import binascii
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from jp.conversation.entries import JsonObject

_URL_SAFE = str.maketrans("-_", "+/")
_DEEPEST = 8
"""Signatures were encoded up to four times."""

_RENDERED = "rendered_arguments"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS_A_SECOND = 1000


class Moment(msgspec.Struct, frozen=True):
    """A point in time: RFC 3339 in UTC, and milliseconds since the Unix epoch, at least 0."""

    at: str
    milliseconds: int


def moment_of(text: object) -> Moment | None:
    """Read `YYYY-MM-DD HH:MM:SS.f`, which is UTC, or RFC 3339; None where it is neither."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        utc = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    at = f"{utc.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
    return Moment(at, max(0, _milliseconds(utc)))


def moment_at(milliseconds: int) -> Moment | None:
    """The moment that many milliseconds after the Unix epoch; None past the year 9999."""
    try:
        utc = datetime.fromtimestamp(milliseconds // _MILLISECONDS_A_SECOND, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    rest = milliseconds % _MILLISECONDS_A_SECOND
    return Moment(f"{utc.replace(tzinfo=None).isoformat()}.{rest:03d}Z", milliseconds)


def _milliseconds(moment: datetime) -> int:
    passed = moment - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * _MILLISECONDS_A_SECOND + passed.microseconds // 1000


def decoded_text(stored: str) -> str:
    """The text that is stored as base64, in the standard alphabet or the URL-safe one; what is none stays as it is."""
    return stored if (found := _decoded(stored)) is None else found


def _decoded(stored: str) -> str | None:
    try:
        return binascii.a2b_base64(stored.translate(_URL_SAFE), strict_mode=True).decode()
    except ValueError:
        return None


def decoded_values(value: Any) -> Any:
    """`value` with every string in it decoded; the keys of objects are plain."""
    match value:
        case str():
            return decoded_text(value)
        case dict():
            return {name: decoded_values(below) for name, below in cast("JsonObject", value).items()}
        case list():
            return [decoded_values(item) for item in cast("list[Any]", value)]
        case _:
            return value


def decoded_metadata(metadata: JsonObject, *, provider: str, model: str) -> JsonObject:
    """An event's metadata, as entries have it: what belongs to `provider` and `model` under its own short names.

    Signatures were encoded anew whenever some old versions stored them, and rendered arguments are encoded before they
    are stored.
    """
    found: JsonObject = {}
    prefix = f"{provider}_"
    is_owned = False
    for name, stored in metadata.items():
        if provider and name.startswith(prefix):
            is_owned = True
            found[_SHORT_NAMES.get(name, name.removeprefix(prefix))] = _metadata_value(name, stored)
        else:
            found[name] = _metadata_value(name, stored)
    return {"provider": provider, "model": model, **found} if is_owned else found


_SHORT_NAMES = {
    "anthropic_thinking_signature": "signature",
    "anthropic_redacted_thinking": "redacted",
    "google_thought_signature": "signature",
}


def _metadata_value(name: str, stored: Any) -> Any:
    value = decoded_values(stored)
    if not isinstance(value, str):
        return value
    if name == _RENDERED:
        return decoded_text(value)
    return _innermost(value) if name.endswith("_signature") else value


def _innermost(text: str) -> str:
    """A signature without what was put around it: it is base64 itself, of bytes that mean nothing to us."""
    for _ in range(_DEEPEST):
        below = _decoded(text)
        if not below or not _is_base64(below):
            return text
        text = below
    return text


def _is_base64(text: str) -> bool:
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return False
    return True
