"""Decoder of Ollama's lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from jp.conversation.entries import JsonObject, Usage
from jp.provider.base import (
    BlockEnd,
    DataDelta,
    Finished,
    KeepAlive,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    UsageReport,
    WireRequest,
)
from jp.provider.errors import ProviderError
from jp.provider.ollama.request import Counted, hint, is_full, shortfall
from jp.provider.parameters import stream_error
from jp.provider.reader import (
    CallStarts,
    Split,
    ThinkSplitter,
    arguments_text,
    decode_or_none,
    unreadable_error,
    usage_from_counts,
)

_Kind = Literal["reasoning", "text"]


class _Function(msgspec.Struct):
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class _Call(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _Line(msgspec.Struct):
    """Any line of an answer; the last one is `done` and has the counts."""

    message: _Message | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    prompt_eval_cached_count: int | None = None
    eval_count: int | None = None
    load_duration: int | None = None
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Report(msgspec.Struct):
    """The error in a line."""

    error: msgspec.Raw


_lines = msgspec.json.Decoder(_Line)
_reports = msgspec.json.Decoder(_Report)


class OllamaDecoder:
    """Decoder of the response to one request. `provider` is the name of the server."""

    def __init__(self, request: WireRequest, *, provider: str) -> None:
        self._request = request
        self._provider = provider
        self._is_structured = isinstance(request.body.get("format"), dict)
        self._splitter = ThinkSplitter()
        self._index = -1
        self._open: _Kind | None = None
        self._calls = CallStarts(provider)

    def feed(self, event: str, data: bytes) -> Sequence[Part]:
        """Return the parts of one line.

        Raises:
            ProviderError: it reports an error or cannot be read, or its counts show that the request was truncated.
        """
        del event
        line = self._read(data)
        if line.error is not msgspec.UNSET:
            raise self._error(data)
        parts = list(self._message(line.message or _Message()))
        if line.done:
            parts += self._release()
            parts += self._close_block()
            parts += self._finish(line)
        return parts or [KeepAlive()]

    def close(self) -> Sequence[Part]:
        """Return nothing: an answer is complete only with its last line."""
        return ()

    def _read(self, data: bytes) -> _Line:
        line = decode_or_none(_lines, data)
        if line is not None:
            return line
        if decode_or_none(_reports, data) is None:
            raise unreadable_error(self._provider, "line")
        raise self._error(data)

    def _error(self, data: bytes) -> ProviderError:
        error = stream_error(data, self._provider, self._request.model)
        if error.kind == "context_too_long":
            error.hint = hint(self._request.body, self._provider)
        return error

    def _message(self, message: _Message) -> Iterator[Part]:
        if message.thinking:
            yield from self._release()
            yield from self._split(Split(reasoning=message.thinking))
        if message.content:
            # A server that does not know a model's way of thinking leaves its thoughts in the text.
            text = message.content
            yield from self._split(Split(text=text) if self._is_structured else self._splitter.feed(text))
        for call in message.tool_calls or ():
            yield from self._release()
            yield from self._close_block()
            self._index += 1
            yield self._calls.start(self._index, given=call.id or "", name=call.function.name)
            yield ToolArgumentsDelta(self._index, arguments_text(call.function.arguments))
            yield BlockEnd(self._index)

    def _release(self) -> Iterator[Part]:
        """Return text that was buffered because it might have begun a thought."""
        yield from self._split(self._splitter.finish())

    def _split(self, split: Split) -> Iterator[Part]:
        if split.reasoning:
            yield from self._open_block("reasoning")
            yield ReasoningDelta(self._index, split.reasoning)
        if split.text:
            yield from self._open_block("text")
            kind = DataDelta if self._is_structured else TextDelta
            yield kind(self._index, split.text)

    def _open_block(self, kind: _Kind) -> Iterator[Part]:
        if self._open == kind:
            return
        yield from self._close_block()
        self._index += 1
        self._open = kind

    def _close_block(self) -> Iterator[Part]:
        if self._open is not None:
            yield BlockEnd(self._index, self._made_here() if self._open == "reasoning" else None)
        self._open = None

    def _made_here(self) -> JsonObject:
        """Return metadata that names the model: its reasoning is sent back only to the same model."""
        return {"provider": self._provider, "model": self._request.model}

    def _finish(self, line: _Line) -> Iterator[Part]:
        counted = Counted(
            prompt=line.prompt_eval_count,
            cached=line.prompt_eval_cached_count,
            output=line.eval_count or 0,
            load_nanoseconds=line.load_duration or 0,
        )
        yield UsageReport(_usage(counted))
        body = self._request.body
        if missing := shortfall(body, counted):
            message = f"{self._provider} did not read the whole request: {missing}"
            raise ProviderError(message, kind="context_too_long", hint=hint(body, self._provider))
        yield self._finished(line, counted)

    def _finished(self, line: _Line, counted: Counted) -> Finished:
        if line.done_reason == "length":
            body = self._request.body
            if is_full(body, counted):
                message = f"the context window of {self._request.model!r} is full: the answer is incomplete"
                raise ProviderError(
                    f"{message}; the output so far is kept", kind="context_too_long", hint=hint(body, self._provider)
                )
            return Finished("length")
        return Finished("tools" if self._calls else "stop")


def _usage(count: Counted) -> Usage:
    """Return the usage; the prompt count includes cached tokens if these are reported."""
    cached = min(count.cached or 0, count.prompt or 0)
    return usage_from_counts(prompt=count.prompt, output=count.output, cache_read=cached)
