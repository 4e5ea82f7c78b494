"""From the log to one request: project, load what the view shows, hand to the adapter; and hashes of what was sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, ne
from typing import Protocol, TypeVar

import msgspec

from jp.compaction.projection import VERSION, IncrementalView
from jp.compaction.status_lines import StatusFormatter
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    CycleEnd,
    Digests,
    Header,
    JsonObject,
    RequestContext,
    TurnStart,
)
from jp.conversation.resource import Carrier, Payload, StoredContent, checksum, content_of, formatted_of
from jp.conversation.thread import (
    IncrementalMap,
    LogCursor,
    Parameters,
    Thread,
    ToolDefinition,
    ViewEvent,
    count_unchanged,
    map_view_carriers,
    set_parameters,
)
from jp.provider.base import Sections, SentMessage, digest_of


def message_digests(entries: Iterable[AnyEntry]) -> tuple[str, ...]:
    """Return the hashes of every message of the newest request in a stream."""
    messages: tuple[str, ...] = ()
    for entry in entries:
        if isinstance(entry, CycleEnd):
            messages = messages[: entry.digests.kept] + entry.digests.messages
    return messages


_digest_of: Callable[[SentMessage], str] = attrgetter("digest")


def digests_of(sections: Sections, before: Sequence[str]) -> Digests:
    """Return the digests of a request for the log, after a request whose messages hash to `before`."""
    messages = list(map(_digest_of, sections.messages))
    kept = count_unchanged(before, messages, ne)
    return Digests(
        system=digest_of(sections.system),
        tools=digest_of(sections.tools),
        kept=kept,
        messages=tuple(messages[kept:]),
        settings=digest_of(sections.settings) if sections.settings else "",
    )


C = TypeVar("C", bound=Carrier)


class Loader(Protocol):
    """Reads content from the blob store."""

    def load(self, carrier: C, /) -> C:
        """Return the carrier with its content inline."""
        ...


def _is_needed(carrier: Carrier) -> bool:
    return formatted_of(carrier) is None and isinstance(content_of(carrier), StoredContent)


class InlineLoader:
    """For a stream whose content is all inline."""

    def load(self, carrier: C, /) -> C:
        """Return the carrier unchanged."""
        return carrier


class RequestSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a request besides the stream. `tools` are sorted by name; `renderer` is a `rendering_version`."""

    provider: str
    model: str
    renderer: int
    system: tuple[str, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    parameters: Parameters = Parameters()


def rendering_version(renderer: int) -> int:
    """Return the version of the rendering from a log to a request; `renderer` is the provider's part of it."""
    return VERSION + renderer


class ContentCache:
    """A loader that reads everything once: a turn renders the same stream again in each cycle."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._read: dict[Carrier, Carrier] = {}

    def load(self, carrier: C, /) -> C:
        """Return the carrier with its content inline; content that is shown in another form is not loaded."""
        if not _is_needed(carrier):
            return carrier
        found = self._read.get(carrier)
        if not isinstance(found, type(carrier)):
            found = self._read[carrier] = self._loader.load(carrier)
        return found


def canonical_json(value: object) -> str:
    """JSON whose bytes depend on the value only: sorted keys, no white space."""
    return msgspec.json.encode(value, order="deterministic").decode()


_Tools = tuple[ToolDefinition, ...]


def read_tools(text: str) -> tuple[ToolDefinition, ...]:
    """Return the tools that a `request_context` keeps as canonical JSON."""
    return msgspec.json.decode(text, type=_Tools)


def canonical_tools(tools: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
    """Return `tools` as a log returns them, with sorted keys in their schemas, so that a request can be repeated."""
    return read_tools(canonical_json(tools))


def context_entry(settings: RequestSettings) -> RequestContext:
    """Return the entry from which a request with these settings can be rebuilt."""
    return RequestContext(
        provider=settings.provider,
        model=settings.model,
        renderer=settings.renderer,
        system=tuple(Payload(text=part) for part in settings.system),
        tools=Payload(text=canonical_json(settings.tools)) if settings.tools else None,
        parameters=set_parameters(settings.parameters),
    )


def _identity(context: RequestContext) -> tuple[object, ...]:
    tools = None if context.tools is None else checksum(context.tools)
    return (
        context.provider,
        context.model,
        context.renderer,
        [checksum(part) for part in context.system],
        tools,
        context.parameters,
    )


def context_in_force(entries: Iterable[AnyEntry]) -> RequestContext | None:
    """Return the newest `request_context` of a stream."""
    newest = None
    for entry in entries:
        if isinstance(entry, RequestContext):
            newest = entry
    return newest


class SchemaReader:
    """The schema that the answer in the newest turn of a log must match. Later entries of the turn do not revoke it."""

    def __init__(self) -> None:
        self._cursor = LogCursor()
        self._schema: JsonObject | None = None

    def read(self, entries: Sequence[AnyEntry]) -> JsonObject | None:
        """Return the schema for a log."""
        added, only_adds = self._cursor.advance(entries)
        self._schema = self._schema if only_adds else None
        for entry in added:
            if isinstance(entry, TurnStart):
                self._schema = None
            elif isinstance(entry, ChatRequest) and entry.schema is not None:
                self._schema = entry.schema
        return self._schema


def is_same_context(one: RequestContext | None, other: RequestContext) -> bool:
    """Return True if two contexts have the same effect, wherever their content is stored."""
    return one is not None and _identity(one) == _identity(other)


def build_thread(
    entries: Sequence[AnyEntry],
    settings: RequestSettings,
    *,
    loader: Loader,
    status_formatter: StatusFormatter,
    continuing: bool = False,
) -> Thread:
    """Return the request for a stream. Only the content that the view shows is read, each once.

    `continuing`: ask the model to continue the answer at the end of the stream.
    """
    return ThreadBuilder(loader, status_formatter).build(entries, settings, continuing=continuing)


class ThreadBuilder:
    """Builds one request after another from a log that grows: events that have not changed are the same objects."""

    def __init__(self, loader: Loader, status_formatter: StatusFormatter) -> None:
        content = ContentCache(loader)
        self._view = IncrementalView(status_formatter)
        self._schema = SchemaReader()
        self._loaded = IncrementalMap[ViewEvent, ViewEvent](lambda event: map_view_carriers(event, content.load))

    def build(self, entries: Sequence[AnyEntry], settings: RequestSettings, *, continuing: bool = False) -> Thread:
        """Return what `build_thread` returns.

        Raises:
            StorageError: content that the view shows cannot be read.
        """
        shown = self._view.project(entries, continuing=continuing).events
        return Thread(
            model=settings.model,
            system=settings.system,
            tools=settings.tools,
            events=tuple(self._loaded.map(shown)),
            parameters=settings.parameters,
            schema=self._schema.read(entries),
            conversation=_name_of(entries),
        )


def _name_of(entries: Sequence[AnyEntry]) -> str:
    """Return the name of a conversation for providers. It depends on the log alone, so it is the same everywhere."""
    first = entries[0] if entries else None
    return first.id if isinstance(first, Header) else ""
