"""What is read of the chunks of a Chat Completions stream: leniently, for every server words them otherwise. Pure."""

from __future__ import annotations

from typing import assert_never

import msgspec

from jp.conversation.entries import JsonObject, Usage
from jp.provider.chat.calls import CallPiece
from jp.provider.strangers import UNREADABLE, counted

_NULL = msgspec.Raw(b"null")
_NOTHING = frozenset({b"null", b"{}", b'""', b"false"})


class Piece(msgspec.Struct):
    """A part of a content that is a list: text, or a thought, which is such a list or a text itself."""

    text: str | None = None
    thinking: list[Piece] | str | None = None


class Delta(msgspec.Struct):
    """What a chunk adds."""

    content: list[Piece] | str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: msgspec.Raw = _NULL
    refusal: str | None = None
    tool_calls: list[CallPiece] | None = None


class Choice(msgspec.Struct):
    """One of the answers; jp asks for one."""

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
    """As much of an event as it takes to tell whether it has to be understood."""

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
    """The chunk that an event holds; its head where it is formed otherwise; None where it is no JSON object."""
    try:
        return _chunks.decode(data)
    except UNREADABLE:
        pass
    try:
        return _heads.decode(data)
    except UNREADABLE:
        return None


def says_something(raw: msgspec.Raw) -> bool:
    """Whether a field is there and not just empty."""
    return bytes(raw) not in _NOTHING


def plain(thinking: list[Piece] | str | None) -> str:
    """A thought as text."""
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
    """The pieces of detailed reasoning; none where they are not formed as such."""
    try:
        return _details.decode(raw) or []
    except UNREADABLE:
        return []


def usage_of(raw: msgspec.Raw) -> Usage | None:
    """The count of tokens, None where there is none, or none that can be read: no answer is lost for it."""
    try:
        reported = _usages.decode(raw)
    except UNREADABLE:
        return None
    if reported is None:
        return None
    prompt = reported.prompt_tokens_details or _PromptDetails()
    output = reported.completion_tokens_details or _OutputDetails()
    return counted(
        prompt=reported.prompt_tokens,
        output=reported.completion_tokens,
        cache_read=prompt.cached_tokens or reported.prompt_cache_hit_tokens,
        cache_write=prompt.cache_write_tokens,
        reasoning=output.reasoning_tokens,
    )
