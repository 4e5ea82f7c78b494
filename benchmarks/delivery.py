"""What references, bounds and diffs would have kept out of recorded sessions, had their tools been jp's.

Each session becomes a log, its results delivered as a query does it: what read a file is a resource, a whole file that
has changed since it was read last comes as refresh_resource would give it. Every request sends everything before it
again, as an agent without compaction does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from context.sessions import TOOLS, Session, recorded_sessions
from jp.app.query.sources import LogAddresses
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.large_items import Saved, savings_of
from jp.compaction.projection import newest_copy
from jp.config.entries import ToolConfig
from jp.config.model import DeduplicationConfig
from jp.context.estimate import estimate_tokens_of_bytes
from jp.context.types import Call, Message, texts_of
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Facts,
    Header,
    JsonObject,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import Block, Resource, ResourceBlock, TextBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ConfiguredTool, ToolInvocation, ToolOutput
from jp.tool.context_tools import Version, short_diff
from jp.tool.delivery import BOUND, OrdinaryDelivery

_ABSENT = "skipped: JP_TEST_DATA does not name a folder with recorded sessions"
_MIB = 1024 * 1024
_UNBOUNDED = 2**40
_RANGE = ("offset", "limit", "start_line", "end_line", "view_range", "pages")


class Ways(NamedTuple):
    """What takes part."""

    name: str
    references: bool
    bounds: bool
    diffs: bool


WAYS = (
    Ways("as it was", references=False, bounds=False, diffs=False),
    Ways("references", references=True, bounds=False, diffs=False),
    Ways("diffs", references=False, bounds=False, diffs=True),
    Ways("bounds", references=False, bounds=True, diffs=False),
    Ways("all three", references=True, bounds=True, diffs=True),
)


class Sent(NamedTuple):
    """Bytes over all requests: of everything without savings, of results among that, and what was saved."""

    everything: int
    results: int
    saved: Saved
    requests: int


class _Recorded:
    definition = ToolDefinition(name="recorded", description="", parameters={"type": "object"})

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        raise NotImplementedError


class _Replay:
    """Makes a log of a session, with deliveries in one of the ways."""

    def __init__(self, ways: Ways) -> None:
        settings = ToolConfig(max_bytes=BOUND if ways.bounds else _UNBOUNDED)
        self._ways = ways
        self._configured = ConfiguredTool(tool=_Recorded(), settings=settings)
        self._deliver = OrdinaryDelivery(DeduplicationConfig(enabled=ways.references), LogAddresses())
        self._status_formatter = StatusLineFormatter()
        self._calls: dict[str, tuple[str, Call]] = {}
        self.requests: list[int] = []
        self.entries: list[AnyEntry] = [Header(id="h", format=1, created_at="2026-01-01T00:00:00Z", nonce="n0nce")]

    def take(self, message: Message) -> None:
        """Take the next message."""
        text = "\n".join(texts_of(message))
        match message.role:
            case "user" | "system":
                if message.role == "user" and message.meta.kind == "real":
                    self._append(TurnStart())
                self._append(ChatRequest(content=text))
            case "assistant":
                self.requests.append(len(self.entries))
                if text:
                    self._append(ChatResponse(message=text))
                for call in message.calls:
                    self._call(call)
                self._append(CycleEnd(attempt=1, finish="tools" if message.calls else "stop"))
            case "tool":
                self._result(message, text)

    def _append(self, entry: AnyEntry) -> str:
        identity = f"e{len(self.entries):06}"
        self.entries.append(replace(entry, id=identity))
        return identity

    def _call(self, call: Call) -> None:
        arguments = _decoded(call.arguments)
        identity = self._append(ToolCallRequest(call_id=call.id, name=call.name, arguments=arguments))
        self._calls[call.id] = identity, call

    def _result(self, message: Message, text: str) -> None:
        identity, call = self._calls[message.call_id]
        facts = None if message.meta.facts is None else Facts(kind=message.meta.facts.kind)
        output = ToolOutput(content=(self._block(call, message, text),), is_error=message.is_error, facts=facts)
        delivered = self._deliver(self._configured, output, self.entries)
        response = ToolCallResponse(
            request=identity, content=delivered.content, is_error=message.is_error, facts=delivered.facts
        )
        self._append(response)

    def _block(self, call: Call, message: Message, text: str) -> Block:
        uri = "" if message.is_error else uri_of(call, message)
        if not uri:
            return TextBlock(text=text)
        resource = Resource(uri=uri, text=text)
        return ResourceBlock(resource=self._changed(resource) if self._ways.diffs and "#" not in uri else resource)

    def _changed(self, resource: Resource) -> Resource:
        """A file that was read before, as refresh_resource gives it."""
        copy = newest_copy(resource.uri, self.entries, self._status_formatter)
        if copy is None or copy.resource.text in {None, resource.text} or _is_cut(copy.resource):
            return resource
        before = Version(text=copy.resource.text or "", place=copy.place)
        diff = short_diff(resource.uri, before, Version(text=resource.text or "", place="now"))
        return resource if diff is None else replace(resource, formatted=diff, formatted_against=copy.entry)


def uri_of(call: Call, message: Message) -> str:
    """The URI of what a call read, with the part of the file as its fragment; empty where it read no file."""
    tool, facts = TOOLS.get(call.name), message.meta.facts
    if tool is None or tool.kind != "read" or facts is None or not facts.path:
        return ""
    arguments = _decoded(call.arguments)
    parts = {} if isinstance(arguments, str) else {name: arguments[name] for name in _RANGE if arguments.get(name)}
    fragment = msgspec.json.encode(parts, order="sorted").decode() if parts else ""
    return f"file://{facts.path}#{fragment}" if fragment else f"file://{facts.path}"


def sent_in(session: Session, ways: Ways) -> Sent:
    """What the requests of a session send, and what of it is saved."""
    replay = _Replay(ways)
    for message in session.messages:
        replay.take(message)
    entries = replay.entries
    saved = savings_of(entries, StatusLineFormatter(), recall="recall").sent
    sizes = [_size(entry) for entry in entries]
    results = [size if isinstance(entry, ToolCallResponse) else 0 for entry, size in zip(entries, sizes, strict=True)]
    return Sent(
        everything=resent(sizes, replay.requests),
        results=resent(results, replay.requests),
        saved=saved,
        requests=len(replay.requests),
    )


def resent(sizes: Sequence[int], requests: Sequence[int]) -> int:
    """What goes out if each of `requests`, which are positions in `sizes`, sends everything before it."""
    sums = list(accumulate(sizes, initial=0))
    return sum(sums[request] for request in requests)


def _is_cut(resource: Resource) -> bool:
    return resource.formatted is not None and resource.formatted_against is None


def _decoded(text: str) -> JsonObject | str:
    try:
        return msgspec.json.decode(text, type=JsonObject)
    except msgspec.DecodeError:
        return text


def _size(entry: AnyEntry) -> int:
    match entry:
        case ChatRequest(content=text) | ChatResponse(message=str(text)):
            return len(text.encode())
        case ToolCallRequest(arguments=arguments):
            return len(msgspec.json.encode(arguments))
        case ToolCallResponse(content=blocks):
            return sum(_size_of_block(block) for block in blocks)
        case _:
            return 0


def _size_of_block(block: Block) -> int:
    text = block.resource.text if isinstance(block, ResourceBlock) else getattr(block, "text", None)
    return len((text or "").encode())


def rows(report: Callable[[str], None]) -> Iterator[str]:
    """The table, over all sessions together."""
    sessions = recorded_sessions()
    if not sessions:
        yield _ABSENT
        return
    yield f"{'':<12}{'sent, MiB':>11}{'tokens, M':>11}{'less %':>8}{'of results, less %':>20}"
    for ways in WAYS:
        report(f"what is sent: {ways.name}")
        yield line(ways.name, [sent_in(session, ways) for session in sessions])
    yield f"{len(sessions)} sessions, each request with everything before it; a token is taken for four bytes"


def line(name: str, found: Sequence[Sent]) -> str:
    """A row of the table."""
    everything = sum(sent.everything for sent in found)
    results = sum(sent.results for sent in found)
    saved = sum(sent.saved.total for sent in found)
    left = everything - saved
    tokens = estimate_tokens_of_bytes(left)
    return (
        f"{name:<12}{left / _MIB:>11.1f}{tokens / 1_000_000:>11.2f}"
        f"{saved * 100 / max(everything, 1):>8.1f}{saved * 100 / max(results, 1):>20.1f}"
    )
