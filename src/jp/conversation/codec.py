"""Entries ⇄ lines: the only place that knows the file format."""

from __future__ import annotations

import msgspec

from jp.conversation.entries import AnyEntry, KnownEntry, Unknown
from jp.errors import JpError, reason_of

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[KnownEntry] = msgspec.json.Decoder(KnownEntry)

# Bytes that are no UTF-8 and nesting without end are not reported as DecodeErrors.
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Head(msgspec.Struct, frozen=True):
    type: object = ""
    id: object = ""
    at: object = ""


_head_decoder = msgspec.json.Decoder(_Head)


class MalformedEntryError(JpError):
    """A line of a log is not a JSON object."""


class UnwritableEntryError(JpError):
    """An entry holds what JSON cannot: text that is no Unicode, or nesting without end."""


def encode(entry: AnyEntry) -> bytes:
    """One line, without its newline. An unknown entry comes out as it came in.

    Raises:
        UnwritableEntryError: it holds surrogates (bytes of a file name or an argument that are no UTF-8), or is nested
            too deeply.
    """
    if isinstance(entry, Unknown):
        return entry.raw
    try:
        return _encoder.encode(entry)
    except (UnicodeEncodeError, RecursionError) as error:
        msg = f"an entry cannot be written: {reason_of(error)}"
        raise UnwritableEntryError(msg, hint="Text has to be UTF-8.") from None


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
        msg = f"not JSON: {reason_of(error)}"
        raise MalformedEntryError(msg) from None
    try:
        head = _head_decoder.decode(line)
    except _NOT_JSON as error:
        msg = f"not an entry: {reason_of(error)}"
        raise MalformedEntryError(msg) from None
    return Unknown(raw=bytes(line), id=_text(head.id), at=_text(head.at), type=_text(head.type))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
