"""A Chat Completions stream as parts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from jp.conversation.entries import JsonObject
from jp.provider.base import WireRequest
from jp.provider.chat.answer import strict_schema
from jp.provider.chat.calls import CallPiece, Calls
from jp.provider.chat.chunks import Choice, Chunk, Delta, Head, chunk_of, details_of, plain, says_something, usage_of
from jp.provider.chat.prose import Indices, Prose
from jp.provider.chat.quirks import Server
from jp.provider.errors import ProviderError
from jp.provider.parts import BlockEnd, Finished, Part, ToolArgumentsDelta, UsageReport
from jp.provider.reporting import LEAST_WAIT, reported
from jp.provider.strangers import CallStarts, unreadable

_DONE = b"[DONE]"

Reason = Literal["stop", "tools", "length", "refused"]

_REASONS: dict[str, Reason] = {
    "stop": "stop",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
    "refusal": "refused",
    "safety": "refused",
}
_FAILURES = frozenset({"error", "abort", "insufficient_system_resource"})
"""Reasons by which an answer ends without being one, though nothing is wrong with the request."""

_WINDOW_IS_FULL = "model_length"


class ChatDecoder:
    """Reads one response.

    Blocks have no ends on the wire: an answer has one thought and one message until it calls a tool, and what is open
    ends with it. `model` and `provider` are kept with the reasoning. `is_structured` says that text is data, `strict`
    is the schema that it is written to, and `think_tags` looks for reasoning at the beginning of the text.
    """

    def __init__(
        self,
        *,
        model: str,
        provider: str,
        is_structured: bool = False,
        strict: JsonObject | None = None,
        think_tags: bool = True,
    ) -> None:
        self._model = model
        self._provider = provider
        self._indices = Indices()
        self._prose = Prose(
            self._indices,
            {"provider": provider, "model": model},
            strict=strict,
            is_structured=is_structured,
            think_tags=think_tags,
        )
        self._calls = Calls()
        self._starts = CallStarts(provider)
        self._refusal = ""
        self._last = Choice()

    @classmethod
    def of(cls, request: WireRequest, server: Server) -> ChatDecoder:
        """What reads the response to `request`."""
        wanted: JsonObject = request.body.get("response_format", {})
        return cls(
            model=request.model,
            provider=server.provider,
            is_structured=bool(wanted),
            strict=strict_schema(wanted),
            think_tags=server.quirks.think_tags,
        )

    def feed(self, event: str, data: bytes) -> Sequence[Part]:
        """Read one event. What is unknown gives nothing.

        Raises:
            ProviderError: the event reports an error, or is not what it should be.
        """
        data = data.strip()
        if data == _DONE:
            return self.close()
        chunk = chunk_of(data) if data else Chunk()
        if chunk is not None and says_something(chunk.error):
            return self._failed(data, chunk)
        if isinstance(chunk, Chunk):
            try:
                return list(self._read(chunk))
            except ProviderError as error:
                error.usage = usage_of(chunk.usage)
                raise
        if chunk is None or says_something(chunk.choices):
            raise unreadable(self._provider)
        return ()

    def close(self) -> Sequence[Part]:
        """The answer is complete where it said why it ends, and not without.

        Raises:
            ProviderError: a call has no name.
        """
        return self._end()

    def _end(self, *, is_final: bool = False) -> Sequence[Part]:
        native = self._last.finish_reason
        if native is None:
            return ()
        reason = _REASONS.get(native.lower(), "stop")
        return [*self._prose.end(), *self._end_calls(reason), self._finished(reason, native, is_final=is_final)]

    def _failed(self, data: bytes, chunk: Chunk | Head) -> Sequence[Part]:
        """Read an event that reports an error: of an answer that had said why it ends, it takes nothing.

        Calls do not run after an error, and an answer at its longest is not continued after one.
        """
        usage = usage_of(chunk.usage) if isinstance(chunk, Chunk) else None
        if self._last.finish_reason is not None and not self._calls.calls:
            counted = () if usage is None else (UsageReport(usage),)
            return [*counted, *self._end(is_final=True)]
        error = reported(data, self._provider, self._model)
        error.usage = usage
        raise error

    def _read(self, chunk: Chunk) -> Iterator[Part]:
        for choice in chunk.choices or ():
            if choice.index == 0:
                yield from self._chosen(choice)
        usage = usage_of(chunk.usage)
        if usage is not None:
            yield UsageReport(usage)

    def _chosen(self, choice: Choice) -> Iterator[Part]:
        if says_something(choice.error):
            raise reported(b'{"error":%b}' % bytes(choice.error), self._provider, self._model)
        if choice.delta is not None:
            yield from self._delta(choice.delta)
        if not choice.finish_reason:
            return
        if choice.finish_reason in _FAILURES:
            message = f"{self._provider} broke the answer off: {choice.native_finish_reason or choice.finish_reason}"
            raise ProviderError(message, kind="transient", least_wait=LEAST_WAIT)
        self._last = choice

    def _delta(self, delta: Delta) -> Iterator[Part]:
        """What a chunk adds. Where it has reasoning and text, the reasoning is what came first."""
        # Some servers send the same reasoning under two names.
        text = delta.reasoning or delta.reasoning_content or ""
        yield from self._prose.detail(details_of(delta.reasoning_details), text)
        if isinstance(delta.content, str):
            yield from self._prose.say(delta.content)
        elif delta.content is not None:
            for piece in delta.content:
                yield from self._prose.think(plain(piece.thinking))
                yield from self._prose.say(piece.text or "")
        self._refusal += delta.refusal or ""
        for piece in delta.tool_calls or ():
            yield from self._call(piece)

    def _call(self, piece: CallPiece) -> Iterator[Part]:
        call = self._calls.take(piece)
        if not call.name:
            return
        if call.block is None:
            yield from self._prose.pause()
            call.block = self._indices.take()
            number = self._calls.calls.index(call)
            yield self._starts.start(call.block, given=call.given_id, name=call.name, number=number)
        if call.waiting:
            text, call.waiting = call.waiting, ""
            yield ToolArgumentsDelta(call.block, text)

    def _end_calls(self, reason: Reason) -> Iterator[Part]:
        """End the calls. One that the longest output cut is not ended, and so does not come to exist."""
        for call in self._calls.calls:
            if call.block is None and call.waiting and reason != "length":
                raise self._starts.nameless()
            if call.block is not None and (reason != "length" or call.is_whole):
                yield BlockEnd(call.block)

    def _finished(self, reason: Reason, native: str, *, is_final: bool) -> Finished:
        if self._refusal or reason == "refused":
            return Finished("refused", self._refusal or self._last.native_finish_reason or native)
        if reason != "length":
            has_calls = any(call.block is not None for call in self._calls.calls)
            reason = "tools" if has_calls else "stop"
        detail = "" if native.lower() in _REASONS else native
        return Finished(reason, detail, is_final=is_final or native == _WINDOW_IS_FULL)
