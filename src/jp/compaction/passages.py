"""The passages of a log that can be searched: results of tools, arguments, messages and attachments."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol, TypeVar, assert_never

from jp.compaction.log_contents import Leaf, LogContent, contents_in, message_text
from jp.context.markers import checksum_of
from jp.context.search import IndexedPassage, line_without_secrets, passages_of, rank_plainly
from jp.conversation.entries import AnyEntry, ChatRequest, ChatResponse, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import AudioBlock, Carrier, ImageBlock, Payload, Resource
from jp.conversation.turns import turns_of, undone
from jp.errors import JpError

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
