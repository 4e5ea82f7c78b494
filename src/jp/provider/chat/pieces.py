"""Chunks of a Chat Completions stream, and the calls and reasoning assembled from pieces. Pure."""

from __future__ import annotations

from typing import assert_never

import msgspec

from jp.conversation.entries import JsonObject, Usage
from jp.provider.reader import decode_or_none, text_of, usage_from_counts


class Function(msgspec.Struct):
    """The called function; `arguments` is JSON text in a string or, from some servers, the JSON itself."""

    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"null")


_objects = msgspec.json.Decoder(JsonObject)
_texts = msgspec.json.Decoder(str)


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


def arguments_text(raw: msgspec.Raw) -> str:
    """Return the text of arguments that were sent as a string, as JSON, or not at all."""
    if bytes(raw) == b"null":
        return ""
    text = decode_or_none(_texts, raw)
    return text_of(raw) if text is None else text


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


_OPENING, _CLOSING = "<think>", "</think>"


class Split(msgspec.Struct, frozen=True):
    """The reasoning and the message in a piece of text."""

    reasoning: str = ""
    text: str = ""


def _partial_tag_length(text: str, tag: str) -> int:
    """Return the length of the longest end of `text` that may begin `tag`."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)


class ThinkSplitter:
    """Splitter of one streamed text into reasoning and message. Only tags at the very beginning count."""

    def __init__(self) -> None:
        self._held = ""
        self._state = self._at_start

    def feed(self, text: str) -> Split:
        """Add to the text, and return the part that can be assigned."""
        self._held += text
        return self._state()

    def finish(self) -> Split:
        """Return the rest of the text; reasoning without an end tag is still reasoning."""
        rest, self._held = self._held, ""
        return Split(reasoning=rest) if self._state == self._inside else Split(text=rest)

    def _at_start(self) -> Split:
        begun = self._held.lstrip()
        if begun.startswith(_OPENING):
            self._held = begun.removeprefix(_OPENING)
            self._state = self._at_thought
            return self._state()
        if _OPENING.startswith(begun):
            return Split()
        self._state = self._after
        return self._state()

    def _at_thought(self) -> Split:
        self._held = self._held.lstrip()
        if not self._held:
            return Split()
        self._state = self._inside
        return self._state()

    def _inside(self) -> Split:
        thought, closed, rest = self._held.partition(_CLOSING)
        if closed:
            self._held = rest
            self._state = self._at_text
            then = self._state()
            return Split(reasoning=thought.rstrip(), text=then.text)
        # White space before the tag belongs to it, so it is held until something else follows.
        size = len(self._held) - _partial_tag_length(self._held, _CLOSING)
        size = len(self._held[:size].rstrip())
        thought, self._held = self._held[:size], self._held[size:]
        return Split(reasoning=thought)

    def _at_text(self) -> Split:
        self._held = self._held.lstrip()
        if not self._held:
            return Split()
        self._state = self._after
        return self._state()

    def _after(self) -> Split:
        text, self._held = self._held, ""
        return Split(text=text)
