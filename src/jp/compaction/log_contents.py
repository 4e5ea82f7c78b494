"""The contents of a log that can be recalled, and the handles that name them. No blob is read for that."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import cast

import msgspec

from jp.context.handles import assign_handles, checksum_of
from jp.conversation.carriers import carriers_in
from jp.conversation.entries import AnyEntry, ChatRequest, ChatResponse, ToolCallRequest
from jp.conversation.resource import Carrier, checksum

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Leaf(msgspec.Struct, frozen=True):
    """A string in the arguments of a call, or all that the model sent where that was no object."""

    text: str


LogContent = Carrier | Leaf


def contents_in(entry: AnyEntry) -> Iterator[tuple[str, LogContent]]:
    """The raw contents of `entry`, in their order, each after its sha256.

    What a damaged entry says in place of a checksum names nothing.
    """
    if isinstance(entry, ToolCallRequest):
        for text in _strings_in(entry.arguments):
            yield checksum_of(text), Leaf(text)
    else:
        for carrier in carriers_in(entry):
            sha256 = checksum(carrier)
            if _SHA256.fullmatch(sha256):
                yield sha256, carrier


def message_text(entry: AnyEntry) -> str:
    """Return what a user or the model wrote in `entry`; empty where it is no message, or one without text."""
    match entry:
        case ChatRequest(content=text):
            return text
        case ChatResponse(message=message, text=text):
            return message or text or ""
        case _:
            return ""


def handles_of(entries: Iterable[AnyEntry]) -> dict[str, str]:
    """The handle for each checksum in a log. What is added to the log changes none of them."""
    assigned = assign_handles(sha256 for entry in entries for sha256, _ in contents_in(entry))
    return {sha256: handle for handle, sha256 in assigned.items()}


def recallable(entries: Iterable[AnyEntry]) -> dict[str, LogContent]:
    """Return everything in a log that a handle names, by its sha256: contents in their order, then messages.

    Messages come last, so that none changes the handle of a content that a view shows.
    """
    found: dict[str, LogContent] = {}
    messages: dict[str, LogContent] = {}
    for entry in entries:
        for sha256, content in contents_in(entry):
            found.setdefault(sha256, content)
        if text := message_text(entry):
            messages.setdefault(checksum_of(text), Leaf(text))
    return found | {sha256: message for sha256, message in messages.items() if sha256 not in found}


def _strings_in(arguments: object) -> Iterator[str]:
    waiting = [arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += reversed(cast("dict[str, object]", value).values())
        elif isinstance(value, list):
            waiting += reversed(cast("list[object]", value))
