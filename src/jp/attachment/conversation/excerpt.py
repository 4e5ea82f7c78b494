"""Selected turns of a conversation as Markdown, or as the entries that are stored. Pure but for what `load` does."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import assert_never

import msgspec
from msgspec.structs import replace

from jp.attachment.conversation.selection import CONTENTS, Content
from jp.conversation.carriers import CarrierChange, map_carriers
from jp.conversation.codec import encode
from jp.conversation.entries import (
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Event,
    InquiryRequest,
    InquiryResponse,
    RequestContext,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import (
    Block,
    Carrier,
    ResourceBlock,
    ResourceLink,
    TextBlock,
    TextContent,
    checksum,
    content_of,
    size_in_bytes,
)
from jp.conversation.turns import Attempt, Turn, cycles_of, is_blank

_BACKTICKS = re.compile("`+")
_SHORTEST_FENCE = 3
_LINE_FEED = "\n"


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown, and of what. `load` reads content from where it is stored, and only what is shown is read."""

    turns: Sequence[Turn]
    contents: Collection[Content]
    load: CarrierChange


def markdown(excerpt: Excerpt) -> Iterator[str]:
    """The turns that have something of what is wanted, in pieces. Attached content is named, not repeated."""
    shown: set[tuple[str, str]] = set()
    for turn in excerpt.turns:
        pieces = _Turn(turn, excerpt, shown).pieces()
        first = next(pieces, None)
        if first is not None:
            yield f"\n## Turn {turn.number}\n"
            yield first
            yield from pieces


def fenced(text: str, language: str = "") -> str:
    """`text` as a code block that nothing in it can end."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(longest + 1, _SHORTEST_FENCE)
    return f"{fence}{language}\n{text.rstrip(_LINE_FEED)}\n{fence}\n"


class _Turn:
    """Shows one turn. `shown` is what of resources the excerpt holds already."""

    def __init__(self, turn: Turn, excerpt: Excerpt, shown: set[tuple[str, str]]) -> None:
        self._turn = turn
        self._wanted = excerpt.contents
        self._load = excerpt.load
        self._shown = shown
        self._names = {entry.id: entry.name for entry in turn.entries if isinstance(entry, ToolCallRequest)}
        self._speaker = ""
        self._message = ""  # what is not shown yet: the next attempt may go on with it
        self._is_cut = False

    def pieces(self) -> Iterator[str]:
        for cycle in cycles_of(self._turn):
            if "user" in self._wanted:
                for request in cycle.requests:
                    yield from self._request(request)
            for attempt in cycle.attempts:
                yield from self._attempt(attempt)
            if "tools" in self._wanted:
                for response in cycle.responses:
                    yield from self._response(response)
        yield from self._said()

    def _heading(self, speaker: str) -> Iterator[str]:
        if self._speaker != speaker:
            self._speaker = speaker
            yield f"\n### {speaker}\n"

    def _said(self) -> Iterator[str]:
        """The message that was held back."""
        message, self._message, self._is_cut = self._message, "", False
        if "assistant" in self._wanted and not is_blank(message):
            yield from self._heading("Assistant")
            yield f"\n{message.strip(_LINE_FEED)}\n"

    def _request(self, request: ChatRequest) -> Iterator[str]:
        yield from self._said()
        yield from self._heading(f"User: {_line(request.author)}" if request.author else "User")
        yield f"\n{request.content.strip(_LINE_FEED)}\n"
        if request.resources:
            names = ", ".join(_code(resource.name or resource.uri) for resource in request.resources)
            yield f"\nAttached: {names}\n"

    def _attempt(self, attempt: Attempt) -> Iterator[str]:
        """What a model produced; calls of an attempt that failed never ran, and what was refused nobody saw."""
        finish = None if attempt.end is None else attempt.end.finish
        if finish == "refused":
            return
        for answer in attempt.answers:
            if isinstance(answer, ChatResponse):
                yield from self._answer(answer)
            elif "tools" in self._wanted and finish != "error":
                yield from self._call(answer)
        last = attempt.answers[-1] if attempt.answers else None
        is_message = isinstance(last, ChatResponse) and last.message is not None
        self._is_cut = is_message and finish in {"length", "error", "cancelled"}

    def _answer(self, answer: ChatResponse) -> Iterator[str]:
        if answer.reasoning is not None:
            if "reasoning" in self._wanted and not is_blank(answer.reasoning):
                yield from () if self._is_cut else self._said()
                yield from self._heading("Reasoning")
                yield f"\n{answer.reasoning.strip(_LINE_FEED)}\n"
        elif answer.message is not None:
            yield from () if self._is_cut else self._said()
            self._message, self._is_cut = self._message + answer.message, False
        elif answer.data is not msgspec.UNSET and "assistant" in self._wanted:
            yield from self._said()
            yield from self._heading("Assistant")
            yield "\n" + fenced(_json(answer.data), "json")

    def _call(self, call: ToolCallRequest) -> Iterator[str]:
        yield from self._said()
        yield from self._heading(f"Call of {_code(call.name)}")
        self._speaker = ""
        arguments = call.arguments if isinstance(call.arguments, str) else _json(call.arguments)
        yield "\n" + fenced(arguments, "json")

    def _response(self, response: ToolCallResponse) -> Iterator[str]:
        yield from self._said()
        name = self._names.get(response.request, "a tool")
        yield from self._heading(f"{'Error' if response.is_error else 'Result'} of {_code(name)}")
        self._speaker = ""
        for block in response.content:
            yield "\n" + self._block(block)

    def _block(self, block: Block) -> str:
        if isinstance(block, ResourceLink):
            return f"Link: {_code(block.uri)}\n"
        if isinstance(block, TextBlock):
            return self._content(block, "")
        if not isinstance(block, ResourceBlock):
            return self._content(block, block.mime_type)
        resource = block.resource
        identity = (resource.uri, checksum(resource))
        if identity in self._shown:
            return f"{_code(resource.uri)}, unchanged: it stands above\n"
        self._shown.add(identity)
        return f"{_code(resource.uri)}\n\n" + self._content(resource, resource.mime_type or "binary")

    def _content(self, carrier: Carrier, kind: str) -> str:
        content = content_of(self._load(carrier)) if _may_be_text(carrier) else None
        if isinstance(content, TextContent):
            return fenced(content.text)
        return f"({_line(kind)}, {size_in_bytes(carrier):,} bytes)\n"


def _may_be_text(carrier: Carrier) -> bool:
    """Whether it is worth reading: what has no characters is a picture."""
    if isinstance(content_of(carrier), TextContent):
        return True
    return getattr(carrier, "chars", None) is not None


def _line(text: str) -> str:
    return " ".join(text.split())


def _code(text: str) -> str:
    line = _line(text)
    longest = max(map(len, _BACKTICKS.findall(line)), default=0)
    ticks = "`" * (longest + 1)
    return f"{ticks} {line} {ticks}" if longest else f"`{line}`"


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def entries(excerpt: Excerpt) -> Iterator[str]:
    """The entries of the turns that are wanted, one on each line.

    Of a provider's opaque `metadata` nothing is kept: it may hold the reasoning that was not asked for, and serves
    nobody but that provider. The content of attached resources stays where it is stored.
    """
    for turn in excerpt.turns:
        for entry in turn.entries:
            if _is_wanted(entry, excerpt.contents):
                yield encode(_plain(entry, excerpt.load)).decode() + "\n"


def _is_wanted(entry: Event, wanted: Collection[Content]) -> bool:
    match entry:
        case ChatRequest():
            return "user" in wanted
        case ChatResponse(reasoning=reasoning):
            return ("assistant" if reasoning is None else "reasoning") in wanted
        case ToolCallRequest() | ToolCallResponse() | InquiryRequest() | InquiryResponse():
            return "tools" in wanted
        case TurnStart() | RequestContext() | CycleEnd():
            return len(wanted) == len(CONTENTS)
        case _:
            assert_never(entry)


def _plain(entry: Event, load: CarrierChange) -> Event:
    if isinstance(entry, (ChatResponse, ToolCallRequest)):
        return replace(entry, metadata=None)
    if isinstance(entry, ToolCallResponse):
        loaded = map_carriers(entry, load)
        return loaded if isinstance(loaded, ToolCallResponse) else entry
    return entry
