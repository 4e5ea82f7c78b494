"""Reading one response: bytes to events to parts, with a bound on what they hold. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import msgspec

from jp.provider.base import Framing, ResponseDecoder
from jp.provider.errors import ProviderError
from jp.provider.framing import Frames, NdjsonDecoder, ServerSentEvent, SseDecoder, WholeDecoder
from jp.provider.parts import DataDelta, Finished, Part, ReasoningDelta, TextDelta, ToolArgumentsDelta, UsageReport
from jp.provider.strangers import UNREADABLE


def _content(part: Part) -> str:
    match part:
        case TextDelta(text=text) | ReasoningDelta(text=text) | DataDelta(text=text) | ToolArgumentsDelta(text=text):
            return text
        case _:
            return ""


def _is_whole(event: ServerSentEvent) -> bool:
    try:
        msgspec.json.decode(event.data, type=msgspec.Raw)
    except UNREADABLE:
        return False
    return True


def _frames(framing: Framing) -> Frames:
    match framing:
        case "sse":
            return SseDecoder()
        case "ndjson":
            return NdjsonDecoder()
        case "json":
            return WholeDecoder()
        case _:
            assert_never(framing)


class Reader:
    """Turns the bytes of one response into parts, up to `Finished`. `begun` says whether there was any event.

    `max_bytes` bounds their content. `frames` goes before `framing`, where a cloud has wrapped the events otherwise.
    """

    def __init__(
        self, decoder: ResponseDecoder, framing: Framing, *, max_bytes: int, frames: Frames | None = None
    ) -> None:
        self._decoder = decoder
        self._frames = _frames(framing) if frames is None else frames
        self._max_bytes = max_bytes
        self._bytes = 0
        self.begun = False
        self.finished = False

    def feed(self, chunk: bytes) -> Iterable[Part]:
        """Take more bytes; the parts that they complete.

        Raises:
            ProviderError: the provider reports an error, or the content is longer than allowed (`output_limit`).
        """
        return self._parts(self._frames.feed(chunk))

    def close(self) -> Iterable[Part]:
        """Read what no line end completed, where it is whole, and what the end of the stream completes."""
        yield from self._parts([event for event in self._frames.close() if _is_whole(event)])
        if not self.finished:
            yield from self._counted(self._decoder.close())

    def _parts(self, events: list[ServerSentEvent]) -> Iterable[Part]:
        self.begun = self.begun or bool(events)
        for event in events:
            yield from self._counted(self._read(event))
            if self.finished:
                return

    def _read(self, event: ServerSentEvent) -> Iterable[Part]:
        """Read one event, and report what an error counted before it is raised."""
        try:
            parts = self._decoder.feed(event.event, event.data)
        except ProviderError as error:
            if error.usage is not None:
                yield UsageReport(error.usage)
            raise
        yield from parts

    def _counted(self, parts: Iterable[Part]) -> Iterable[Part]:
        for part in parts:
            self._count(part)
            yield part
            if isinstance(part, Finished):
                self.finished = True
                return

    def _count(self, part: Part) -> None:
        text = _content(part)
        self._bytes += len(text) if text.isascii() else len(text.encode())
        if self._bytes > self._max_bytes:
            message = f"the answer is longer than {self._max_bytes} bytes"
            hint = "`assistant.request.max_response_bytes` is where jp stops"
            raise ProviderError(message, kind="output_limit", hint=hint)
