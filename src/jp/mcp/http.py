"""A session over streamable HTTP, within bounds. Proxies and certificates are those of the environment."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from anyio import Event

from jp.mcp.bounds import TooManyValuesError, ValueMeter
from jp.mcp.stdio import LONGEST_MESSAGE

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

_CONNECT_SECS = 20.0
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class HttpLink:
    """What connects an address with a session. `refused` is the status of the last answer that was a refusal.

    `broken` says why the session was ended by jp.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """Every request gets `headers`."""
        self.refused: int | None = None
        self.broken = ""
        self.ended = Event()
        self._url = url
        self._headers = headers

    def stop(self, why: str) -> None:
        """See `jp.mcp.bounds.Link`."""
        self.broken = self.broken or why
        self.ended.set()

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[TransportStreams]:
        """The two streams of a session. How long an answer may take is the caller's business."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        from jp.tls import context_for

        client = httpx2.AsyncClient(
            # What is compressed may be a thousand times as long.
            headers={"accept-encoding": "identity", **self._headers},
            verify=context_for(self._url),
            timeout=httpx2.Timeout(None, connect=_CONNECT_SECS),
            event_hooks={"response": [self._look]},
        )
        async with (
            client,
            streamable_http_client(self._url, http_client=client, max_sse_event_size=LONGEST_MESSAGE) as streams,
        ):
            yield streams

    async def _look(self, response: httpx2.Response) -> None:
        """Note a refusal, and have a body end where it is too long. One of events has its bound in each of them."""
        import httpx2

        if response.is_error and response.request.method == "POST":
            self.refused = response.status_code
        stream = response.stream
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            if isinstance(stream, httpx2.AsyncByteStream):
                response.stream = _bounded_stream(stream, self.stop, of_events=True)
            return
        if response.headers.get("content-encoding", "identity") != "identity":
            message = "the answer is compressed, though that was not asked for"
            raise httpx2.DecodingError(message, request=response.request)
        if isinstance(stream, httpx2.AsyncByteStream):
            response.stream = _bounded_stream(stream, self.stop, of_events=False)


def _bounded_stream(
    stream: httpx2.AsyncByteStream, stop: Callable[[str], None], *, of_events: bool
) -> httpx2.AsyncByteStream:
    """Return `stream`, which fails where it is too long, and which stops the session where it has too many values.

    Of a stream `of_events`, each event is a message, and how long one may be is held elsewhere.
    """
    import httpx2

    values = ValueMeter()

    def count(chunk: bytes) -> None:
        *events, rest = _EVENT_END.split(chunk) if of_events else [chunk]
        for event in events:
            values.feed(event)
            values.reset()
        values.feed(rest)

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            received = 0
            async for chunk in stream:
                received += len(chunk)
                if received > LONGEST_MESSAGE and not of_events:
                    raise httpx2.ReadError(f"the answer has more than {LONGEST_MESSAGE:,} bytes")
                try:
                    count(chunk)
                except TooManyValuesError as error:
                    stop(f"it sent {error}")
                    raise httpx2.ReadError(str(error)) from None
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
