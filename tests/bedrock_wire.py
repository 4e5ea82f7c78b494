"""Messages of AWS's event stream, as Bedrock wraps events into them.

A message: its length and that of its headers, their checksum, the headers, the payload, the checksum of all.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Mapping

import msgspec

EVENT_STREAM = (("content-type", "application/vnd.amazon.eventstream"),)


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    named = b"".join(
        struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(named) + len(payload), len(named))
    checked = prelude + struct.pack(">I", zlib.crc32(prelude)) + named + payload
    return checked + struct.pack(">I", zlib.crc32(checked))


def chunk(data: bytes) -> bytes:
    """A message that holds one event."""
    payload = msgspec.json.encode({"bytes": b64encode(data).decode(), "p": "abcdef"})
    return message({":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}, payload)


def wrapped(body: bytes) -> bytes:
    """The events of a body of server-sent events, each in a message."""
    lines = body.decode().splitlines()
    return b"".join(chunk(line.removeprefix("data: ").encode()) for line in lines if line.startswith("data: "))


def exception(name: str, text: str) -> bytes:
    payload = msgspec.json.encode({"message": text})
    return message(
        {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}, payload
    )
