"""Bytes to events as AWS wraps them (`application/vnd.amazon.eventstream`), with what AWS's own library reads."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import msgspec

from jp.provider.errors import ProviderError
from jp.provider.framing import ServerSentEvent

CONTENT_TYPE = "application/vnd.amazon.eventstream"


class _Chunk(msgspec.Struct):
    """A message that holds an event of the model's vendor, encoded."""

    bytes: str


class _Named(msgspec.Struct):
    """What all of them have."""

    type: str = ""


class _Exception(msgspec.Struct):
    """What AWS says went wrong."""

    message: str = ""


class EventStreamFrames:
    """The events of Anthropic's Messages API, out of the messages of Bedrock's stream.

    A message that reports an exception becomes an `error` event, as Anthropic itself sends it.
    """

    def __init__(self) -> None:
        # It has no type stubs.
        self._library: Any = import_module("botocore.eventstream")
        self._buffer: Any = self._library.EventStreamBuffer()

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Take more bytes; the events that they complete.

        Raises:
            ProviderError: they are damaged.
        """
        self._buffer.add_data(data)
        try:
            return [event for message in self._buffer if (event := _event(message)) is not None]
        except (self._library.ParserError, ValueError) as error:  # msgspec's and base64's are ValueErrors
            message = "the stream of Bedrock is damaged on its way"
            raise ProviderError(message, kind="transient") from error

    def close(self) -> list[ServerSentEvent]:
        """The stream is over: of a message that is not complete nothing can be read."""
        return []


def _event(message: Any) -> ServerSentEvent | None:
    headers: Mapping[str, object] = message.headers
    payload: bytes = message.payload
    if headers.get(":message-type") != "event":
        return _failure(headers, payload)
    if headers.get(":event-type") != "chunk":
        return None
    data = b64decode(msgspec.json.decode(payload, type=_Chunk).bytes, validate=True)
    return ServerSentEvent(msgspec.json.decode(data, type=_Named).type, data)


def _failure(headers: Mapping[str, object], payload: bytes) -> ServerSentEvent:
    name = str(headers.get(":exception-type") or headers.get(":error-code") or "internalServerException")
    try:
        text = msgspec.json.decode(payload, type=_Exception).message
    except ValueError:
        text = ""
    text = text or str(headers.get(":error-message") or "")
    error = {"type": "error", "error": {"type": name, "message": text}}
    return ServerSentEvent("error", msgspec.json.encode(error))
