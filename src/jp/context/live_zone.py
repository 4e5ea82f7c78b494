"""The bytes of a rendered request that may change, and the proof that no others did.

Ranges are half-open and count bytes. What is frozen was sent before: a provider's cache holds it under exactly these
bytes, so whoever edits a request splices into it instead of rendering it anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from jp.errors import JpError

_CONTINUES = range(0x80, 0xC0)
"""The bytes that continue a character of UTF-8."""


class ZoneError(JpError):
    """A range is none of this request, or an edit reaches outside of what may change."""


class Zone(msgspec.Struct, frozen=True, gc=False):
    """The bytes from `start` up to, not including, `end`."""

    start: int
    end: int
    is_frozen: bool


class Edit(msgspec.Struct, frozen=True, gc=False):
    """`replacement` in place of the bytes from `start` up to, not including, `end`; where they are equal, between."""

    start: int
    end: int
    replacement: bytes


class Spliced(msgspec.Struct, frozen=True, kw_only=True):
    """A request with its edits, where its zones are now, and the digest that its frozen bytes have before and after."""

    payload: bytes
    zones: tuple[Zone, ...]
    frozen_digest: str


def zones_of(payload: bytes, frozen: Sequence[tuple[int, int]]) -> tuple[Zone, ...]:
    """The zones of `payload`: the `frozen` ranges, which are in order, and everything between them.

    Raises:
        ZoneError: a range is empty, overlaps another one, ends outside of `payload`, or cuts a character.
    """
    zones: list[Zone] = []
    end = 0
    for start, stop in frozen:
        if start > end:
            zones.append(Zone(end, start, is_frozen=False))
        zones.append(Zone(start, stop, is_frozen=True))
        end = stop
    if end < len(payload):
        zones.append(Zone(end, len(payload), is_frozen=False))
    check_zones(payload, zones)
    return tuple(zones)


def check_zones(payload: bytes, zones: Sequence[Zone]) -> None:
    """See that `zones` are in order, that each byte of `payload` is in one of them, and that none cuts a character.

    Raises:
        ZoneError: they are not.
    """
    edges = [0, *(zone.end for zone in zones)]
    for zone, edge in zip(zones, edges, strict=False):
        if zone.start != edge or zone.end <= zone.start:
            raise ZoneError(f"the range {zone.start} to {zone.end} does not follow on {edge}")
        if zone.end > len(payload):
            raise ZoneError(f"the range {zone.start} to {zone.end} ends behind the {len(payload)} bytes of the request")
        if _cuts_character(payload, zone.end):
            raise ZoneError(f"the range {zone.start} to {zone.end} ends inside of a character")
    if edges[-1] != len(payload):
        raise ZoneError(f"the ranges end at {edges[-1]}, the request at {len(payload)}")


def frozen_digest(payload: bytes, zones: Sequence[Zone]) -> str:
    """The sha256 of the frozen bytes, each range with its length, in hexadecimal digits."""
    whole = hashlib.sha256()
    for zone in zones:
        if zone.is_frozen:
            whole.update(b"%d:" % (zone.end - zone.start))
            whole.update(memoryview(payload)[zone.start : zone.end])
    return whole.hexdigest()


def prove_frozen(payload: bytes, zones: Sequence[Zone], expected: str) -> None:
    """See that the frozen bytes of `payload` have the digest that they had when they were sent.

    Raises:
        ZoneError: they have not.
    """
    if frozen_digest(payload, zones) != expected:
        raise ZoneError("the frozen bytes are not those that were sent", hint="render the request, and freeze it anew")


def splice(payload: bytes, zones: Sequence[Zone], edits: Sequence[Edit], *, expected: str | None = None) -> Spliced:
    """`payload` with `edits`, which are in order.

    `expected` is the digest of the frozen bytes when they were sent; without it that of `payload` counts. Where no edit
    changes anything, the payload is the very object that came in.

    Raises:
        ZoneError: `zones` are none of `payload`; an edit is not inside of one mutable zone, overlaps the one before it
            or cuts a character; or the frozen bytes are not those that were sent.
    """
    check_zones(payload, zones)
    digest = frozen_digest(payload, zones) if expected is None else expected
    waiting = list(reversed(edits))
    parts: list[bytes] = []
    moved: list[Zone] = []
    length = 0
    for zone in zones:
        part = payload[zone.start : zone.end] if zone.is_frozen else _edited(payload, zone, waiting)
        if part:
            parts.append(part)
            moved.append(Zone(length, length + len(part), zone.is_frozen))
            length += len(part)
    if waiting:
        edit = waiting[-1]
        raise ZoneError(f"the edit of bytes {edit.start} to {edit.end} is not inside of one range that may change")
    result = b"".join(parts)
    prove_frozen(result, moved, digest)
    return Spliced(payload=payload if result == payload else result, zones=tuple(moved), frozen_digest=digest)


def _edited(payload: bytes, zone: Zone, waiting: list[Edit]) -> bytes:
    """`zone` with the edits at the end of `waiting` that lie in it; they are taken from there."""
    parts: list[bytes] = []
    position = zone.start
    while waiting and position <= waiting[-1].start <= waiting[-1].end <= zone.end:
        edit = waiting.pop()
        _check_edit(payload, edit)
        parts += [payload[position : edit.start], edit.replacement]
        position = edit.end
    return b"".join([*parts, payload[position : zone.end]])


def _check_edit(payload: bytes, edit: Edit) -> None:
    if _cuts_character(payload, edit.start) or _cuts_character(payload, edit.end):
        raise ZoneError(f"the edit of bytes {edit.start} to {edit.end} cuts a character")
    try:
        edit.replacement.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ZoneError(f"the edit of bytes {edit.start} to {edit.end} puts in what is not UTF-8") from error


def _cuts_character(payload: bytes, position: int) -> bool:
    return position < len(payload) and payload[position] in _CONTINUES
