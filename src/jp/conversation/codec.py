"""Entries ⇄ lines: the only place that knows the file format."""

from __future__ import annotations

import msgspec

from jp.conversation.entries import AnyEntry, KnownEntry, Unknown
from jp.errors import JpError

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[KnownEntry] = msgspec.json.Decoder(KnownEntry)

# Bytes that are no UTF-8 and nesting without end are not reported as DecodeErrors.
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Head(msgspec.Struct, frozen=True):
    type: str = ""
    id: str = ""
    at: str = ""


_head_decoder = msgspec.json.Decoder(_Head)


class MalformedEntryError(JpError):
    """A line of a log is not a JSON object."""


def encode(entry: AnyEntry) -> bytes:
    """One line, without its newline. An unknown entry comes out as it came in."""
    if isinstance(entry, Unknown):
        return entry.raw
    return _encoder.encode(entry)


def decode(line: bytes) -> AnyEntry:
    """Read one line. Whatever is a JSON object but no entry of this version becomes `Unknown`.

    Raises:
        MalformedEntryError: the line is not a JSON object.
    """
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError:
        pass
    except _NOT_JSON as error:
        msg = f"not JSON: {error}"
        raise MalformedEntryError(msg) from None
    try:
        head = _head_decoder.decode(line)
    except _NOT_JSON as error:
        msg = f"not an entry: {error}"
        raise MalformedEntryError(msg) from None
    return Unknown(raw=bytes(line), id=head.id, at=head.at, type=head.type)
