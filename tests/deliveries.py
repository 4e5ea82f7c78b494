"""Hypothesis strategies for streams whose attachments and results were delivered as a query does it.

A few files change now and then. They are attached, read by a tool, wholly or in part, and read again as attachments;
what comes of that goes through the same functions as in a turn.
"""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from choices import Choices, choices
from jp.app.query.sources import LogAddresses
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.projection import newest_copy
from jp.config.entries import ToolConfig
from jp.config.model import DeduplicationConfig
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Facts,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import Resource, ResourceBlock, TextBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ConfiguredTool, NoStream, Stream, ToolInvocation, ToolOutput
from jp.tool.context_tools import KnownCopy, RefreshResource, attached_uris
from jp.tool.delivery import OrdinaryDelivery
from jp.tool.duplicates import DeliveryIndex, mark_resources
from streams import WORDS, Author, Request, Story

FILES: tuple[str, ...] = ("file:///w/a.py", "file:///w/a.py", "file:///w/b.md", "file:///w/empty")
LINES = 200
BOUND = 900
DEDUPLICATION = DeduplicationConfig(min_bytes=300, lookback_turns=3)


@cache
def text_of(file: str, version: int) -> str:
    """What `file` holds in a version; two of them are alike, and versions come back."""
    if file.endswith("empty"):
        return ""
    return "".join(f"line {number} {version if number == 30 else ''}\n" for number in range(LINES))


class Seen(NoStream):
    """A log as a tool sees it; everything in it is inline."""

    def __init__(self, entries: list[AnyEntry]) -> None:
        self._entries = entries

    @property
    def entries(self) -> list[AnyEntry]:
        return self._entries


class Reading:
    """A tool that is only named: what it returns is made here."""

    definition = ToolDefinition(name="read", description="", parameters={"type": "object"})

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        raise NotImplementedError


class Files:
    """What lies on the disk, and what of it can be seen in a view."""

    def __init__(self) -> None:
        self.versions = dict.fromkeys(FILES, 0)

    def read(self, uri: str) -> Resource:
        file, _, part = uri.partition("#")
        text = text_of(file, self.versions[file])
        return Resource(uri=uri, text=text[:400] if part else text)

    async def resolve(self, uri: str, stream: Stream) -> Resource:
        assert uri in attached_uris(stream.entries)
        return self.read(uri)

    def newest_copy(self, uri: str, stream: Stream) -> KnownCopy | None:
        copy = newest_copy(uri, stream.entries, StatusLineFormatter())
        if copy is None or (copy.resource.formatted is not None and copy.resource.formatted_against is None):
            return None
        return KnownCopy(text=copy.resource.text or "", entry=copy.entry, place=copy.place)


class Deliverer(Author):
    """Writes a log in which files are attached, read and read again."""

    def __init__(self, drawn: Choices) -> None:
        super().__init__(drawn, overlays=True, diffs=False)
        self._files = Files()
        self._deliver = OrdinaryDelivery(DEDUPLICATION, LogAddresses())
        self._runner = asyncio.Runner()

    def write(self) -> Story:
        with self._runner:
            return super().write()

    def _turn(self) -> None:
        self._revertible.append(self._append(TurnStart()).id)
        self._ask()
        for _ in range(self._pick((0, 1, 2, 3))):
            self.requests.append(Request(len(self.entries), continuing=False))
            calls = [self._append(self._call(None)) for _ in range(self._pick((1, 1, 2)))]
            self._append(CycleEnd(attempt=1, finish="tools"))
            self._run(calls)
            if self._drawn.one_in(5):
                self._append(self._cycle_compaction())
        self.requests.append(Request(len(self.entries), continuing=False))
        self._append(ChatResponse(message="Done."))
        self._append(CycleEnd(attempt=1, finish="stop"))

    def _ask(self) -> None:
        self._edit()
        attached = [self._files.read(self._pick(FILES)) for _ in range(self._pick((0, 1, 1, 2)))]
        deliveries = DeliveryIndex(self.entries)
        marked = mark_resources(
            attached,
            deliveries,
            turn=deliveries.turns - 1,
            enabled=DEDUPLICATION.enabled,
            min_bytes=DEDUPLICATION.min_bytes,
            lookback_turns=DEDUPLICATION.lookback_turns,
        )
        self._append(ChatRequest(content=self._pick(WORDS), resources=marked))

    def _run(self, calls: list[ToolCallRequest]) -> None:
        for call in calls:
            self._edit()
            settings = ToolConfig(
                max_bytes=self._pick((None, BOUND, BOUND)), deduplicate=self._pick((None, None, False))
            )
            output = self._refreshed(settings) if self._chance() else self._read()
            tool = ConfiguredTool(tool=Reading(), settings=settings)
            delivered = self._deliver(tool, output, self.entries)
            self._append(
                ToolCallResponse(
                    request=call.id, content=delivered.content, is_error=delivered.is_error, facts=delivered.facts
                )
            )

    def _edit(self) -> None:
        if self._chance():
            file = self._pick(FILES)
            self._files.versions[file] = 1 - self._files.versions[file]

    def _read(self) -> ToolOutput:
        uris = [self._pick((*FILES, f"{FILES[0]}#L1-40")) for _ in range(self._pick((1, 1, 2)))]
        blocks = tuple(ResourceBlock(resource=self._files.read(uri)) for uri in uris)
        text = TextBlock(text=self._pick(("", "prose\n" * 300)))
        return ToolOutput(content=(*blocks, text), facts=Facts(kind="read"))

    def _refreshed(self, settings: ToolConfig) -> ToolOutput:
        uris = attached_uris(self.entries)
        if not uris:
            return self._read()
        arguments = {"uri": self._pick(uris)}
        invocation = ToolInvocation(arguments=arguments, root=Path(), settings=settings, stream=Seen(self.entries))
        return self._runner.run(RefreshResource(self._files).run(invocation))


def delivered_stories() -> st.SearchStrategy[Story]:
    """Logs as a query writes them, with overlays between."""
    return choices().map(lambda drawn: Deliverer(drawn).write())
