"""Decoder of the Responses API's events. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import msgspec

from jp.conversation.entries import JsonObject, Usage
from jp.provider.base import (
    BlockEnd,
    DataDelta,
    Finished,
    InputReport,
    KeepAlive,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    UsageReport,
    WireRequest,
)
from jp.provider.errors import ProviderError
from jp.provider.openai.request import ANSWER, PROVIDER
from jp.provider.parameters import object_at, stream_error
from jp.provider.reader import (
    UNREADABLE,
    CallStarts,
    decode_or_none,
    input_changes,
    unreadable_error,
    usage_from_counts,
)
from jp.provider.schemas import StrictText


class Kind(msgspec.Struct):
    """The type of an event or an item."""

    type: str = ""


class WirePart(msgspec.Struct):
    """A piece of a message or of reasoning."""

    type: str = ""
    text: str = ""
    refusal: str = ""


class Item(msgspec.Struct):
    """A message, reasoning or a function call, distinguished by `type`; each has some of the fields."""

    type: str
    id: str | None = None
    status: str | None = None
    phase: str | None = None
    content: list[WirePart] | None = None
    summary: list[WirePart] | None = None
    encrypted_content: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Counted(msgspec.Struct):
    """Token counts of the API: the input includes cache reads and writes."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class Incomplete(msgspec.Struct):
    """The reason why a response is incomplete."""

    reason: str | None = None


class Failure(msgspec.Struct):
    """The error of a failed response."""

    code: str | None = None
    message: str | None = None


class Response(msgspec.Struct):
    """A whole response."""

    status: str | None = None
    output: list[msgspec.Raw] | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")
    incomplete_details: Incomplete | None = None
    error: Failure | None = None
    input_transformations: msgspec.Raw = msgspec.Raw(b"null")


class Event(msgspec.Struct):
    """Every event; each has some of the fields."""

    output_index: int = 0
    content_index: int = 0
    summary_index: int = 0
    delta: str = ""
    item: msgspec.Raw = msgspec.Raw(b"{}")
    response: Response | None = None


ITEMS = frozenset({"message", "reasoning", "function_call"})
"""Types of items that have parts. Those of tools that the provider hosts have none."""

kinds = msgspec.json.Decoder(Kind)
events = msgspec.json.Decoder(Event)
items = msgspec.json.Decoder(Item)
responses = msgspec.json.Decoder(Response)
_counts = msgspec.json.Decoder(_Counted | None)


def usage_of(raw: msgspec.Raw) -> Usage | None:
    """Return tokens in classes that do not overlap; None if they are missing or malformed."""
    found = decode_or_none(_counts, raw)
    if found is None:
        return None
    given = found.input_tokens_details or _InputDetails()
    made = found.output_tokens_details or _OutputDetails()
    return usage_from_counts(
        prompt=found.input_tokens,
        output=found.output_tokens,
        cache_read=given.cached_tokens,
        cache_write=given.cache_write_tokens,
        reasoning=made.reasoning_tokens,
    )


Place = tuple[str, int, int]
"""The kind of a delta, and the index of the part of its item."""

_WHOLE: Place = ("", 0, 0)


class Words:
    """A message. `has_begun` is true once any text was received."""

    def __init__(self, index: int) -> None:
        self._index = index
        self.has_begun = False

    def grow(self, text: str, *, place: Place) -> list[Part]:
        """Add to the text."""
        del place
        if not text:
            return []
        self.has_begun = True
        return [TextDelta(self._index, text)]

    def finish(self, item: Item) -> list[Part]:
        """Return the whole text, unless parts of it were streamed."""
        return [] if self.has_begun else self.grow(_text_of(item), place=_WHOLE)


class Data:
    """An answer with a schema."""

    def __init__(self, index: int, text: StrictText) -> None:
        self._index = index
        self._text = text
        self._has_grown = False
        self.has_begun = False

    def grow(self, text: str, *, place: Place) -> list[Part]:
        """Add to the data, and return the part that can be decoded."""
        del place
        self._has_grown = self._has_grown or bool(text)
        return self._out(self._text.feed(text)) or [KeepAlive()]

    def finish(self, item: Item) -> list[Part]:
        """Return the rest of the data."""
        first = "" if self._has_grown else self._text.feed(_text_of(item))
        return self._out(first + self._text.finish())

    def _out(self, text: str) -> list[Part]:
        self.has_begun = self.has_begun or bool(text)
        return [DataDelta(self._index, text)] if text else []


class Call:
    """A function call; `text` decodes its arguments if these have a strict schema."""

    has_begun = True

    def __init__(self, index: int, text: StrictText | None) -> None:
        self._index = index
        self._text = text
        self._has_grown = False

    def grow(self, text: str, *, place: Place) -> list[Part]:
        """Add to the arguments, and return the part that can be decoded."""
        del place
        self._has_grown = self._has_grown or bool(text)
        return self._out(text if self._text is None else self._text.feed(text)) or [KeepAlive()]

    def finish(self, item: Item) -> list[Part]:
        """Return the rest of the arguments."""
        parts = [] if self._has_grown else self.grow(item.arguments or "", place=_WHOLE)
        return [*parts, *self._out("" if self._text is None else self._text.finish())]

    def _out(self, text: str) -> list[Part]:
        return [ToolArgumentsDelta(self._index, text)] if text else []


class Thought:
    """Reasoning: its summary, or its text if a server sends that; parts are separated by a blank line."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._place: Place | None = None
        self.has_begun = False

    def grow(self, text: str, *, place: Place) -> list[Part]:
        """Add to the reasoning. Of summary and text, only the one that is received first is shown."""
        if not text or (self._place is not None and place[0] != self._place[0]):
            return []
        gap = "" if self._place in {None, place} else "\n\n"
        self._place = place
        self.has_begun = True
        return [ReasoningDelta(self._index, gap + text)]

    def finish(self, item: Item) -> list[Part]:
        """Return the whole reasoning, unless parts of it were streamed; encrypted reasoning is a block without text."""
        if self.has_begun:
            return []
        parts = list(self._all(item))
        if not parts and item.encrypted_content:
            self.has_begun = True
            return [ReasoningDelta(self._index, "")]
        return parts

    def _all(self, item: Item) -> Iterator[Part]:
        for number, part in enumerate(item.summary or item.content or ()):
            yield from self.grow(part.text, place=("", number, 0))


Output = Words | Data | Call | Thought


def _text_of(item: Item) -> str:
    return "".join(part.text for part in item.content or ())


_POLICIES = frozenset({
    *("invalid_prompt", "bio_policy", "misalignment_policy_violation", "image_content_policy_violation"),
})
"""Error codes of refusals."""

_DELTAS = frozenset({
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_ITEM_EVENTS = frozenset({"response.output_item.added", "response.output_item.done"})
_SIGNS_OF_LIFE = frozenset({"response.created", "response.queued", "response.in_progress", "keepalive"})


def _strict_tools(body: JsonObject) -> Mapping[str, JsonObject]:
    tools: list[JsonObject] = body.get("tools", [])
    return {tool["name"]: tool["parameters"] for tool in tools if tool.get("strict")}


def _strict_format(body: JsonObject) -> JsonObject | None:
    given = object_at(object_at(body, "text"), "format")
    return object_at(given, "schema") if given.get("name") == ANSWER else None


class OpenaiDecoder:
    """Decoder of the response to one request; reasoning is stored with its model."""

    def __init__(self, request: WireRequest, *, provider: str = PROVIDER) -> None:
        self._provider = provider
        self._model = request.model
        self._is_whole = request.framing == "json"
        self._tools = _strict_tools(request.body)
        self._format = _strict_format(request.body)
        self._open: dict[int, Output] = {}
        self._seen: set[int] = set()
        self._calls = CallStarts(provider)
        self._refusal = ""

    def feed(self, event: str, data: bytes) -> Sequence[Part]:
        """Return the parts of one event, or of the whole response. Unknown events and items have none.

        Raises:
            ProviderError: it reports an error or is malformed.
        """
        if data.strip() == b"[DONE]":
            return []
        try:
            if self._is_whole:
                return self._whole(data)
            kind = kinds.decode(data).type or event
            return self._event(kind, data)
        except UNREADABLE as error:
            raise unreadable_error(self._provider) from error

    def close(self) -> Sequence[Part]:
        """Return nothing: an answer is complete only with its last event."""
        return ()

    def _whole(self, data: bytes) -> Sequence[Part]:
        response = responses.decode(data)
        if response.status is None and not response.output:
            raise stream_error(data, self._provider, self._model)
        return self._ended(response)

    def _event(self, kind: str, data: bytes) -> Sequence[Part]:
        if kind in _DELTAS:
            return self._delta(kind, events.decode(data))
        if kind in _ITEM_EVENTS:
            read = events.decode(data)
            return self._item(read.output_index, read.item, is_done=kind == "response.output_item.done")
        if kind in _ENDS:
            response = events.decode(data).response
            return self._ended(response or Response(status=kind.removeprefix("response.")))
        if kind == "error":
            raise stream_error(data, self._provider, self._model)
        return [KeepAlive()] if kind in _SIGNS_OF_LIFE else []

    def _item(self, index: int, raw: msgspec.Raw, *, is_done: bool) -> Sequence[Part]:
        if kinds.decode(raw).type not in ITEMS:
            return []
        item = items.decode(raw)
        parts = [] if index in self._seen else self._start(index, item)
        return [*parts, *self._end(index, item)] if is_done else parts

    def _start(self, index: int, item: Item) -> list[Part]:
        self._seen.add(index)
        match item.type:
            case "reasoning":
                self._open[index] = Thought(index)
            case "message" if self._format is not None and item.phase != "commentary":
                self._open[index] = Data(index, StrictText(self._format, is_answer=True))
            case "message":
                self._open[index] = Words(index)
            case _:
                name = item.name or ""
                strict = self._tools.get(name)
                self._open[index] = Call(index, None if strict is None else StrictText(strict, is_answer=False))
                return [self._calls.start(index, given=item.call_id or item.id or "", name=name)]
        return []

    def _delta(self, kind: str, event: Event) -> Sequence[Part]:
        output = self._open.get(event.output_index)
        if kind == "response.refusal.delta":
            self._refusal += event.delta
            return []
        if output is None:
            return []
        return output.grow(event.delta, place=(kind, event.content_index, event.summary_index))

    def _end(self, index: int, item: Item) -> list[Part]:
        output = self._open.pop(index, None)
        if output is None:
            return []
        self._hear_refusal(item)
        if isinstance(output, Call) and item.status == "incomplete":
            return []  # an incomplete call is dropped
        parts = list(output.finish(item))
        metadata = self._metadata(output, item)
        return [*parts, BlockEnd(index, metadata)] if output.has_begun else parts

    def _hear_refusal(self, item: Item) -> None:
        if not self._refusal:
            self._refusal = "".join(part.refusal for part in item.content or ())

    def _metadata(self, output: Output, item: Item) -> JsonObject | None:
        match output:
            case Thought():
                is_whole = item.status != "incomplete"
                found = {"item_id": item.id, "encrypted_content": item.encrypted_content if is_whole else None}
            case Words() | Data():
                found = {"item_id": item.id, "phase": item.phase}
            case Call():
                found = {}
            case _:
                assert_never(output)
        kept = {name: value for name, value in found.items() if value}
        return {"provider": self._provider, "model": self._model, **kept} if kept else None

    def _ended(self, response: Response) -> Sequence[Part]:
        """Return the items that no event had reported, then the end."""
        if response.status in {"failed", "cancelled"}:
            try:
                return [self._refused_or_failed(response.error or Failure())]
            except ProviderError as error:
                error.usage = usage_of(response.usage)
                raise
        parts: list[Part] = []
        for index, raw in enumerate(response.output or ()):
            if index in self._open or index not in self._seen:
                parts += self._item(index, raw, is_done=True)
        for index in sorted(self._open):
            parts += self._end(index, Item(type="", status=response.status))
        if (usage := usage_of(response.usage)) is not None:
            parts.append(UsageReport(usage))
        if (changes := input_changes(response.input_transformations)) is not None:
            parts.append(InputReport(changes))
        return [*parts, self._finished(response)]

    def _finished(self, response: Response) -> Finished:
        reason = (response.incomplete_details or Incomplete()).reason
        if self._refusal or reason == "content_filter":
            return Finished("refused", self._refusal or "content_filter")
        if response.status == "incomplete":
            return Finished("length", "" if reason == "max_output_tokens" else reason or "")
        return Finished("tools" if self._calls else "stop")

    def _refused_or_failed(self, failure: Failure) -> Finished:
        if failure.code in _POLICIES:
            return Finished("refused", failure.message or failure.code or "")
        code = failure.code or "server_error"
        body = msgspec.json.encode({"error": {"code": code, "message": failure.message or ""}})
        raise stream_error(body, self._provider, self._model)
