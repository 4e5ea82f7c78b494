"""A Chat Completions stream as parts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, assert_never

import msgspec

from jp.conversation.entries import JsonObject, Usage
from jp.provider.base import (
    BlockEnd,
    DataDelta,
    Finished,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    UsageReport,
    WireRequest,
)
from jp.provider.chat.messages import Server, strict_schema
from jp.provider.errors import ProviderError
from jp.provider.parameters import LEAST_WAIT, stream_error
from jp.provider.reader import (
    CallStarts,
    Split,
    ThinkSplitter,
    arguments_text,
    decode_or_none,
    unreadable_error,
    usage_from_counts,
)
from jp.provider.schemas import StrictText


class Function(msgspec.Struct):
    """The called function; `arguments` is JSON text in a string or, from some servers, the JSON itself."""

    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"null")


_objects = msgspec.json.Decoder(JsonObject)


class CallPiece(msgspec.Struct):
    """A piece of a call on the wire."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Call:
    """A call that is being received. It starts once its name is known, as block `block`."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.given_id = ""
        self.name = ""
        self.block: int | None = None
        self.waiting = ""
        self._pieces: list[str] = []

    def take(self, piece: CallPiece) -> None:
        """Add a piece: the first id and the first name are used; `waiting` gets the new text of the arguments."""
        self.given_id = self.given_id or piece.id or ""
        if piece.function is not None:
            self.name = self.name or piece.function.name or ""
            text = arguments_text(piece.function.arguments)
            self.waiting += text
            self._pieces.append(text)

    @property
    def is_whole(self) -> bool:
        """True if the arguments are a complete JSON object."""
        return decode_or_none(_objects, "".join(self._pieces)) is not None


class Calls:
    """The calls of one answer in the order in which they start."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def take(self, piece: CallPiece) -> Call:
        """Add a piece to its call, which may be a new one."""
        call = self._meant(piece)
        if call is None:
            call = Call(piece.index)
            self.calls.append(call)
        call.take(piece)
        return call

    def _meant(self, piece: CallPiece) -> Call | None:
        """Return the call of a piece by its index, else by its id, else the last one.

        Some servers give all calls the same index, or none, and send each in one piece: a name with another id starts a
        call, and so does a name without an id after a complete call.
        """
        if piece.index is not None:
            found = next((call for call in reversed(self.calls) if call.index == piece.index), None)
        else:
            same = (call for call in self.calls if piece.id and call.given_id == piece.id)
            found = next(same, self.calls[-1] if self.calls else None)
        return None if found is not None and _begins_another(found, piece) else found


def _begins_another(call: Call, piece: CallPiece) -> bool:
    if piece.function is None or not piece.function.name:
        return False
    if piece.id and call.given_id:
        return piece.id != call.given_id
    return piece.index is None and bool(call.name) and call.is_whole


_NULL = msgspec.Raw(b"null")
_NOTHING = frozenset({b"null", b"{}", b'""', b"false"})


class Piece(msgspec.Struct):
    """A part of a content list: text, or reasoning, which is such a list or a string."""

    text: str | None = None
    thinking: list[Piece] | str | None = None


class Delta(msgspec.Struct):
    """The additions of a chunk."""

    content: list[Piece] | str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: msgspec.Raw = _NULL
    refusal: str | None = None
    tool_calls: list[CallPiece] | None = None


class Choice(msgspec.Struct):
    """One of the answers; jp requests one."""

    index: int = 0
    delta: Delta | None = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    error: msgspec.Raw = _NULL


class Chunk(msgspec.Struct):
    """One event."""

    choices: list[Choice] | None = None
    usage: msgspec.Raw = _NULL
    error: msgspec.Raw = _NULL


class Head(msgspec.Struct):
    """The fields of an event that decide whether it is needed."""

    choices: msgspec.Raw = _NULL
    error: msgspec.Raw = _NULL


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _OutputDetails | None = None
    prompt_cache_hit_tokens: int | None = None


_chunks = msgspec.json.Decoder(Chunk)
_heads = msgspec.json.Decoder(Head)
_usages = msgspec.json.Decoder(_Usage | None)
_details = msgspec.json.Decoder(list[JsonObject] | None)


def chunk_of(data: bytes) -> Chunk | Head | None:
    """Return the chunk of an event; its head if the chunk is malformed; None if the event is not a JSON object."""
    return decode_or_none(_chunks, data) or decode_or_none(_heads, data)


def is_present(raw: msgspec.Raw) -> bool:
    """Return whether a field is present and not empty."""
    return bytes(raw) not in _NOTHING


def reasoning_text(thinking: list[Piece] | str | None) -> str:
    """Return reasoning as text."""
    match thinking:
        case None:
            return ""
        case str():
            return thinking
        case list():
            return "".join(piece.text or "" for piece in thinking)
        case _:
            assert_never(thinking)


def details_of(raw: msgspec.Raw) -> list[JsonObject]:
    """Return the pieces of detailed reasoning; none if they are malformed."""
    return decode_or_none(_details, raw) or []


def usage_of(raw: msgspec.Raw) -> Usage | None:
    """Return the token counts; None if they are missing or malformed, which must not fail the answer."""
    reported = decode_or_none(_usages, raw)
    if reported is None:
        return None
    prompt = reported.prompt_tokens_details or _PromptDetails()
    output = reported.completion_tokens_details or _OutputDetails()
    return usage_from_counts(
        prompt=reported.prompt_tokens,
        output=reported.completion_tokens,
        cache_read=prompt.cached_tokens or reported.prompt_cache_hit_tokens,
        cache_write=prompt.cache_write_tokens,
        reasoning=output.reasoning_tokens,
    )


_GROWING = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""Types whose items are sent in pieces, and the field that grows."""

_LATEST = frozenset({"signature"})
"""Fields that are complete in the piece that has them."""


class Details:
    """The items of one answer, with the pieces of each item joined."""

    def __init__(self) -> None:
        self._items: list[JsonObject] = []

    def add(self, pieces: Iterable[JsonObject]) -> None:
        """Add the items of one event; each continues an earlier one or is new."""
        for piece in pieces:
            earlier = self._earlier(piece)
            if earlier is None:
                self._items.append(dict(piece))
            else:
                _grow(earlier, piece)

    @property
    def items(self) -> Sequence[JsonObject]:
        """The complete items received so far."""
        return self._items

    def _earlier(self, piece: JsonObject) -> JsonObject | None:
        """Return the item that a piece continues: one of the same type and index, and not of another id."""
        if str(piece.get("type")) not in _GROWING:
            return None
        index = piece.get("index")
        # Without an index, it can only continue the item before it.
        candidates = self._items if index is not None else self._items[-1:]
        for item in reversed(candidates):
            if item.get("type") == piece.get("type") and item.get("index") == index:
                ids = [given for given in (item.get("id"), piece.get("id")) if given is not None]
                return item if ids[:1] == ids[-1:] else None
        return None


def _grow(item: JsonObject, piece: JsonObject) -> None:
    growing = _GROWING[item["type"]]
    for name, value in piece.items():
        if name == growing and isinstance(value, str) and isinstance(item.get(name), str):
            item[name] += value
        elif item.get(name) is None or (name in _LATEST and value):
            item[name] = value


def text_of(pieces: Iterable[JsonObject]) -> str:
    """Return the readable text of pieces of reasoning."""
    found = (piece.get(_GROWING.get(str(piece.get("type")), "")) for piece in pieces)
    return "".join(text for text in found if isinstance(text, str))


class Indices:
    """The numbers of the blocks, in the order in which they start."""

    def __init__(self) -> None:
        self._next = 0

    def take(self) -> int:
        """Return the next index."""
        self._next += 1
        return self._next - 1


class AnswerText:
    """The reasoning and the text of an answer, in whatever order they alternate on the wire.

    `made` identifies the model of the reasoning. `strict` is the schema of the text, and `is_structured` marks it as
    data.
    """

    def __init__(
        self, indices: Indices, made: JsonObject, *, strict: JsonObject | None, is_structured: bool, think_tags: bool
    ) -> None:
        self._indices = indices
        self._made = made
        self._is_structured = is_structured
        self._strict = None if strict is None else StrictText(strict, is_answer=True)
        self._splitter = ThinkSplitter() if think_tags else None
        self._details = Details()
        self._reasoning: int | None = None
        self._text: int | None = None

    def think(self, text: str) -> Iterator[Part]:
        """Add reasoning."""
        if text:
            yield ReasoningDelta(self._thought(), text)

    def detail(self, pieces: Sequence[JsonObject], text: str) -> Iterator[Part]:
        """Add detailed reasoning; `text` is its readable text, possibly empty."""
        self._details.add(pieces)
        yield from self.think(text or text_of(pieces))
        if pieces and self._reasoning is None:
            yield ReasoningDelta(self._thought(), "")

    def say(self, content: str) -> Iterator[Part]:
        """Add text, which may begin with reasoning."""
        if content:
            yield from self._split(Split(text=content) if self._splitter is None else self._splitter.feed(content))

    def pause(self) -> Iterator[Part]:
        """Return the parts that are complete when a call begins."""
        yield from self._release()
        if not self._details.items:
            yield from self._end_reasoning()
        if self._strict is None:
            yield from self._end_text()

    def end(self) -> Iterator[Part]:
        """Return the remaining parts at the end of the answer."""
        yield from self._release()
        yield from self._end_reasoning()
        if self._strict is not None:
            yield from self._word(self._strict.finish())
        yield from self._end_text()

    def _thought(self) -> int:
        if self._reasoning is None:
            self._reasoning = self._indices.take()
        return self._reasoning

    def _release(self) -> Iterator[Part]:
        if self._splitter is not None:
            yield from self._split(self._splitter.finish())

    def _split(self, split: Split) -> Iterator[Part]:
        yield from self.think(split.reasoning)
        yield from self._word(split.text if self._strict is None else self._strict.feed(split.text))

    def _word(self, text: str) -> Iterator[Part]:
        if not text:
            return
        if self._text is None:
            self._text = self._indices.take()
        yield DataDelta(self._text, text) if self._is_structured else TextDelta(self._text, text)

    def _end_reasoning(self) -> Iterator[Part]:
        if self._reasoning is None:
            return
        items = list(self._details.items)
        yield BlockEnd(self._reasoning, {**self._made, "reasoning_details": items} if items else self._made)
        self._reasoning = None

    def _end_text(self) -> Iterator[Part]:
        if self._text is not None:
            yield BlockEnd(self._text)
            self._text = None


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
"""Finish reasons of a failed answer to a valid request."""

_WINDOW_IS_FULL = "model_length"


class ChatDecoder:
    """Decoder of one response.

    Blocks have no ends on the wire: an answer has one block of reasoning and one message until it calls a tool, and
    open blocks end with it. `model` and `provider` are stored with the reasoning. `is_structured` marks text as data,
    `strict` is its schema, and `think_tags` means that the text may begin with reasoning in tags.
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
        self._prose = AnswerText(
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
        """Return the decoder of the response to `request`."""
        wanted: JsonObject = request.body.get("response_format", {})
        return cls(
            model=request.model,
            provider=server.provider,
            is_structured=bool(wanted),
            strict=strict_schema(wanted),
            think_tags=server.quirks.think_tags,
        )

    def feed(self, event: str, data: bytes) -> Sequence[Part]:
        """Return the parts of one event. Unknown events have none.

        Raises:
            ProviderError: the event reports an error or is malformed.
        """
        data = data.strip()
        if data == _DONE:
            return self.close()
        chunk = chunk_of(data) if data else Chunk()
        if chunk is not None and is_present(chunk.error):
            return self._failed(data, chunk)
        if isinstance(chunk, Chunk):
            try:
                return list(self._read(chunk))
            except ProviderError as error:
                error.usage = usage_of(chunk.usage)
                raise
        if chunk is None or is_present(chunk.choices):
            raise unreadable_error(self._provider)
        return ()

    def close(self) -> Sequence[Part]:
        """Return the last parts of an answer; it is complete only if it has a finish reason.

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
        """Handle an event that reports an error: an answer that already has a finish reason is kept.

        Calls do not run after an error, and an answer that reached the output limit is not continued after one.
        """
        usage = usage_of(chunk.usage) if isinstance(chunk, Chunk) else None
        if self._last.finish_reason is not None and not self._calls.calls:
            counted = () if usage is None else (UsageReport(usage),)
            return [*counted, *self._end(is_final=True)]
        error = stream_error(data, self._provider, self._model)
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
        if is_present(choice.error):
            raise stream_error(b'{"error":%b}' % bytes(choice.error), self._provider, self._model)
        if choice.delta is not None:
            yield from self._delta(choice.delta)
        if not choice.finish_reason:
            return
        if choice.finish_reason in _FAILURES:
            message = f"{self._provider} cut the answer: {choice.native_finish_reason or choice.finish_reason}"
            raise ProviderError(message, kind="transient", least_wait=LEAST_WAIT)
        self._last = choice

    def _delta(self, delta: Delta) -> Iterator[Part]:
        """Return the parts of a chunk; its reasoning comes before its text."""
        # Some servers send the same reasoning under two names.
        text = delta.reasoning or delta.reasoning_content or ""
        yield from self._prose.detail(details_of(delta.reasoning_details), text)
        if isinstance(delta.content, str):
            yield from self._prose.say(delta.content)
        elif delta.content is not None:
            for piece in delta.content:
                yield from self._prose.think(reasoning_text(piece.thinking))
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
        """End the calls. A call cut by the output limit is not ended, and so is dropped."""
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
