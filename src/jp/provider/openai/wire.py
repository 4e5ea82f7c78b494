"""The events of the Responses API, as much of them as is needed. Pure."""

from __future__ import annotations

import msgspec

from jp.conversation.entries import Usage
from jp.provider.strangers import UNREADABLE, counted


class Kind(msgspec.Struct):
    """What an event, or an item, is."""

    type: str = ""


class Part(msgspec.Struct):
    """A piece of a message or of reasoning."""

    type: str = ""
    text: str = ""
    refusal: str = ""


class Item(msgspec.Struct):
    """A message, reasoning or a call of a function, told apart by `type`; each has some of the fields."""

    type: str
    id: str | None = None
    status: str | None = None
    phase: str | None = None
    content: list[Part] | None = None
    summary: list[Part] | None = None
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
    """Tokens as the API counts them: the input with what the cache gave and took."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class Incomplete(msgspec.Struct):
    """Why a response is not complete."""

    reason: str | None = None


class Failure(msgspec.Struct):
    """Why a response failed."""

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
"""Items that have parts. Those of tools that the provider hosts have none."""

kinds = msgspec.json.Decoder(Kind)
events = msgspec.json.Decoder(Event)
items = msgspec.json.Decoder(Item)
responses = msgspec.json.Decoder(Response)
_counts = msgspec.json.Decoder(_Counted | None)


def usage_of(raw: msgspec.Raw) -> Usage | None:
    """Tokens in classes that do not overlap; None where none are told, or not so that they can be read."""
    try:
        found = _counts.decode(raw)
    except UNREADABLE:
        return None
    if found is None:
        return None
    given = found.input_tokens_details or _InputDetails()
    made = found.output_tokens_details or _OutputDetails()
    return counted(
        prompt=found.input_tokens,
        output=found.output_tokens,
        cache_read=given.cached_tokens,
        cache_write=given.cache_write_tokens,
        reasoning=made.reasoning_tokens,
    )
