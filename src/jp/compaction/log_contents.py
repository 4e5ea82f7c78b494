"""The contents of a log that can be recalled, and the handles that name them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import cast

import msgspec

from jp.context.markers import SHORTEST, assign_handles, checksum_of, look_up
from jp.conversation.entries import AnyEntry, ChatRequest, ChatResponse, ToolCallRequest
from jp.conversation.resource import Carrier, checksum
from jp.conversation.thread import carriers_in
from jp.errors import UsageError

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


_HANDLE = re.compile(rf"[0-9a-f]{{{SHORTEST},64}}")
_CHECKSUM = "sha256:"
_MOST_NAMED = 10


class UnknownHandleError(UsageError):
    """A handle names nothing."""

    kind = "unknown_handle"


class AmbiguousHandleError(UsageError):
    """A beginning of several handles."""

    kind = "ambiguous_handle"


class NamedContent(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a log: its checksum, the handle that stand-ins have for it, and where it was met first."""

    sha256: str
    handle: str
    content: LogContent


def find_content(wanted: str, entries: Iterable[AnyEntry]) -> NamedContent:
    """What `wanted` names: a handle that stands in a view, or a beginning of only one checksum.

    Letters may be in either case, and `sha256:` may stand before it.

    Raises:
        UsageError: it is no handle, or names nothing or several contents of this log.
    """
    handle = wanted.strip().lower().removeprefix(_CHECKSUM)
    if _HANDLE.fullmatch(handle) is None:
        raise UsageError(f"{wanted!r} is no handle", hint=f"a handle has {SHORTEST} to 64 digits, such as 0123abcd")
    contents = recallable(entries)
    assigned = assign_handles(contents)
    found = look_up(handle, assigned)
    if found is None:
        raise _not_found(handle, contents)
    names = {sha256: name for name, sha256 in assigned.items()}
    return NamedContent(sha256=found, handle=names[found], content=contents[found])


def _not_found(handle: str, checksums: Iterable[str]) -> UsageError:
    alike = [sha256 for sha256 in checksums if sha256.startswith(handle)]
    if not alike:
        hint = "`jp conversation context` lists handles of what is large; --id names another conversation"
        return UnknownHandleError(f"nothing in this conversation has the handle {handle!r}", hint=hint)
    named = [sha256[: _telling(sha256, alike)] for sha256 in alike[:_MOST_NAMED]]
    message = f"{len(alike)} contents of this conversation have handles that begin with {handle!r}"
    return AmbiguousHandleError(message, hint=f"write more digits: {', '.join(named)}")


def _telling(sha256: str, others: Iterable[str]) -> int:
    """How many digits of `sha256` no other one begins with."""
    length = SHORTEST
    for other in others:
        while other != sha256 and other.startswith(sha256[:length]):
            length += 1
    return length
