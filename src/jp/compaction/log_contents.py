"""Content of a log by its handle, and search in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar, assert_never, cast

import msgspec

from jp.context.markers import SHORTEST, HandleAssigner, assign_handles, checksum_of, look_up
from jp.context.search import IndexedPassage, line_without_secrets, passages_of, rank_plainly
from jp.conversation.entries import AnyEntry, ChatRequest, ChatResponse, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import AudioBlock, Carrier, ImageBlock, Payload, Resource, checksum
from jp.conversation.thread import LogCursor, carriers_in
from jp.conversation.turns import turns_of, undone
from jp.errors import JpError, UsageError
from jp.remedies import Option, Show, phrase

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Leaf(msgspec.Struct, frozen=True):
    """A string in the arguments of a call, or all that the model sent where that was no object."""

    text: str


LogContent = Carrier | Leaf


def contents_in(entry: AnyEntry) -> Iterator[tuple[str, LogContent]]:
    """Yield the raw contents of `entry` in order, each after its sha256.

    Contents whose checksum is damaged are skipped.
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
    """Return the handle for each checksum in a log. Adding to the log changes no handle."""
    assigner = HandleAssigner()
    _assign(assigner, entries)
    return dict(assigner.handles)


class HandleIndex:
    """The handles of a log that grows; see `handles_of`."""

    def __init__(self) -> None:
        self._cursor = LogCursor()
        self._assigner = HandleAssigner()

    def handles(self, entries: Sequence[AnyEntry], added: AnyEntry) -> Mapping[str, str]:
        """Return the handle for each checksum in a log to which `added` is appended.

        Args:
            entries: The log. See `LogCursor.advance` on passing the same list again.
            added: An entry that the log does not have yet.
        """
        new, only_adds = self._cursor.advance(entries)
        self._assigner = self._assigner if only_adds else HandleAssigner()
        _assign(self._assigner, new)
        whole = self._assigner.fork()
        _assign(whole, (added,))
        return whole.handles


def _assign(assigner: HandleAssigner, entries: Iterable[AnyEntry]) -> None:
    for entry in entries:
        for sha256, _ in contents_in(entry):
            assigner.add(sha256)


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
    """Return the content that `wanted` names: by a handle from a view, or by a unique beginning of its checksum.

    Upper case and the prefix `sha256:` are accepted.

    Raises:
        UsageError: `wanted` is not a handle, or names no content or several contents of this log.
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
        hint = phrase(
            "`", Show("context"), "` lists handles of what is large; ", Option.TARGET, " names another conversation"
        )
        return UnknownHandleError(f"nothing in this conversation has the handle {handle!r}", hint=hint)
    named = [sha256[: _telling(sha256, alike)] for sha256 in alike[:_MOST_NAMED]]
    message = f"{len(alike)} contents of this conversation have handles that begin with {handle!r}"
    return AmbiguousHandleError(message, hint=f"write more digits: {', '.join(named)}")


def _telling(sha256: str, others: Iterable[str]) -> int:
    """Return the number of digits that distinguish `sha256` from the others."""
    length = SHORTEST
    for other in others:
        while other != sha256 and other.startswith(sha256[:length]):
            length += 1
    return length


C = TypeVar("C", bound=Carrier)

_SHORT_ARGUMENT = 200
"""Characters up to which an argument is part of what describes the call, and no content of its own."""

_ABOUT = 300


class ContentLoader(Protocol):
    """Reads content that lies outside of the log."""

    def load(self, carrier: C, /) -> C:
        """Return the carrier with its content inline.

        Raises:
            StorageError: it is missing or damaged.
        """
        ...


def searchable_passages(
    entries: Sequence[AnyEntry], loader: ContentLoader, *, without: Collection[str] = (), since: int = 0
) -> Iterator[IndexedPassage]:
    """Yield the passages of a log in its order; turns that were undone have none.

    Args:
        entries: The whole log.
        loader: Reads blobs; content that cannot be read is not searched.
        without: Names of tools whose calls and results are copies of what is searched.
        since: How many entries were indexed before: only passages of later ones are yielded.
    """
    numbers = _turn_numbers(entries)
    calls = {entry.id: entry for entry in entries if isinstance(entry, ToolCallRequest)}
    seen: set[tuple[str, str]] = set()
    for position, entry in enumerate(entries):
        turn = numbers.get(id(entry))
        if turn is None:
            continue
        call = calls.get(entry.request) if isinstance(entry, ToolCallResponse) else entry
        tool = call.name if isinstance(call, ToolCallRequest) else ""
        if tool in without and tool:
            continue
        for sha256, content, about in _contents(entry, call):
            if (sha256, about) in seen:
                continue
            seen.add((sha256, about))
            text = _text_of(content, loader) if position >= since else None
            if text is None:
                continue
            size = len(text.encode("utf-8", "surrogatepass"))
            for passage in passages_of(text):
                yield IndexedPassage(
                    sha256=sha256,
                    entry=entry.id,
                    turn=turn,
                    tool=tool,
                    about=about,
                    offset=passage.offset,
                    size=size,
                    text=passage.text,
                )


def search_plainly(
    entries: Sequence[AnyEntry], loader: ContentLoader, query: str, limit: int, *, without: Collection[str] = ()
) -> list[IndexedPassage]:
    """Return the best passages for `query` without any index; see `jp.context.search.rank_plainly`."""
    return rank_plainly(searchable_passages(entries, loader, without=without), query, limit)


def _turn_numbers(entries: Sequence[AnyEntry]) -> dict[int, int]:
    """Return the turn of each entry in a turn that counts, by identity: entries of imported logs may have no id."""
    gone = undone(entries)
    return {id(entry): turn.number for turn in turns_of(entries) if turn.id not in gone for entry in turn.entries}


def _contents(entry: AnyEntry, call: AnyEntry | None) -> Iterator[tuple[str, LogContent, str]]:
    """Yield the contents of an entry with their checksums and what describes them."""
    match entry:
        case ChatRequest() | ChatResponse():
            role = "user" if isinstance(entry, ChatRequest) else "assistant"
            text = message_text(entry)
            if text:
                yield checksum_of(text), Leaf(text), role
            for sha256, content in contents_in(entry):
                yield sha256, content, _uri(content) or "attachment"
        case ToolCallRequest():
            about = _described(entry)
            yield from ((sha256, leaf, about) for sha256, leaf in contents_in(entry) if not _is_short(leaf))
        case ToolCallResponse():
            about = f"{_described(call)} {_status(entry)}".strip()
            yield from ((sha256, content, about) for sha256, content in contents_in(entry))
        case _:
            pass


def _is_short(content: LogContent) -> bool:
    return isinstance(content, Leaf) and len(content.text) <= _SHORT_ARGUMENT


def _described(call: AnyEntry | None) -> str:
    """Return the name of a call's tool and its short arguments, in one line without secrets."""
    if not isinstance(call, ToolCallRequest):
        return ""
    short = [leaf.text for _, leaf in contents_in(call) if isinstance(leaf, Leaf) and _is_short(leaf)]
    return line_without_secrets(" ".join((call.name, *short)), _ABOUT)


def _status(response: ToolCallResponse) -> str:
    facts = response.facts
    code = "" if facts is None or facts.exit_code is None else f"exit code {facts.exit_code}"
    return " ".join(part for part in ("error" if response.is_error else "", code) if part)


def _uri(content: LogContent) -> str:
    return line_without_secrets(content.uri, _ABOUT) if isinstance(content, Resource) else ""


def _text_of(content: LogContent, loader: ContentLoader) -> str | None:
    """Return the text of a content; None where it is binary or cannot be read."""
    match content:
        case Leaf(text=text):
            return text
        case ImageBlock() | AudioBlock():
            return None
        case Resource() | Payload():
            try:
                return loader.load(content).text
            except JpError:
                return None
        case _:
            assert_never(content)
