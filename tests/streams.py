"""Hypothesis strategies for streams: logs as a writer leaves them, and logs that hands and accidents have changed.

`stories()` are well-formed and know when requests were sent; `any_streams()` are anything that decodes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import msgspec
from hypothesis import strategies as st
from msgspec.structs import replace

from choices import Choices, choices
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    ConfigDelta,
    CycleEnd,
    Facts,
    Finish,
    Header,
    InquiryRequest,
    InquiryResponse,
    JsonObject,
    Question,
    RequestContext,
    Revert,
    SummaryPolicy,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    ToolOverride,
    TurnStart,
    Unknown,
    Usage,
)
from jp.conversation.resource import (
    INTERRUPTED_CONTENT,
    AudioBlock,
    Block,
    Carrier,
    ImageBlock,
    Payload,
    Resource,
    ResourceBlock,
    ResourceLink,
    StoredContent,
    TextBlock,
    content_of,
)
from jp.conversation.turns import divide

E = TypeVar("E", bound=AnyEntry)

AT = "2026-11-20T12:00:00Z"
NONCE = "n0nce"
URIS = ("file:///w/a.py", "file:///w/b.md", "file:///w/a.py#L1-9")
TOOLS = ("fs_read_file", "fs_create_file", "run")
VERSIONS = ("alpha\n" * 90, "beta\n" * 120, "gamma")
WORDS = ("yes", "Let me see.\n", "prose " * 40, "ünïcode ✓", '{"json": 1}')


C = TypeVar("C", bound=Carrier)


class Blobs:
    """Every text in the blob store is the same one."""

    def load(self, carrier: C, /) -> C:
        if not isinstance(content_of(carrier), StoredContent):
            return carrier
        if isinstance(carrier, (ImageBlock, AudioBlock)):
            return replace(carrier, sha256=None, size=None, blob=b"picture")
        return replace(carrier, sha256=None, size=None, chars=None, lines=None, text="some text")


class Request(msgspec.Struct, frozen=True):
    """A request that was sent when the log held the first `position` entries."""

    position: int
    continuing: bool


class Story(msgspec.Struct, frozen=True):
    """A log, and when requests were sent while it was written."""

    entries: tuple[AnyEntry, ...]
    requests: tuple[Request, ...]


def stored(text: str) -> Resource:
    """A snapshot without a name whose text lies in the blob store."""
    raw = text.encode()
    sha256 = hashlib.sha256(raw).hexdigest()
    return Resource(uri="", sha256=sha256, size=len(raw), chars=len(text), lines=text.count("\n"))


class Author:
    """Writes a log as a turn does."""

    def __init__(self, drawn: Choices, *, overlays: bool, diffs: bool) -> None:
        self._drawn = drawn
        self._pick = drawn.pick
        self._overlays = overlays
        self._diffs = diffs
        self._revertible: list[str] = []
        self._delivered: dict[tuple[str, str], str] = {}
        self._newest: dict[str, str] = {}
        self._taken: list[tuple[str, str]] = []
        self.entries: list[AnyEntry] = []
        self.requests: list[Request] = []

    def write(self) -> Story:
        self._append(Header(format=1, created_at=AT, nonce=NONCE))
        for _ in range(self._pick(range(1, 6))):
            self._turn()
            while self._overlays and self._chance():
                self._overlay()
        return Story(entries=tuple(self.entries), requests=tuple(self.requests))

    def _chance(self) -> bool:
        return self._drawn.one_in(2)

    def _append(self, entry: E) -> E:
        stamped = replace(entry, id=f"e{len(self.entries):05d}", at=AT)
        self.entries.append(stamped)
        for uri, version in self._taken:
            self._delivered[uri, version] = self._newest[uri] = stamped.id
        self._taken.clear()
        return stamped

    def _turn(self) -> None:
        self._revertible.append(self._append(TurnStart()).id)
        self._ask()
        if self._chance():
            self._append(RequestContext(provider="script", model="m", renderer=1, system=(Payload(text="Be brief."),)))
        continuing = False
        for _ in range(5):
            finish = self._attempt(continuing=continuing)
            if finish == "tools" and self._overlays and self._chance():
                self._append(self._cycle_compaction())
            if finish in {"stop", "refused", None}:
                return
            continuing = finish in {"length", "error", "cancelled"}
            if finish == "cancelled" or self._drawn.one_in(4):
                if self._chance():
                    return
                self._ask()

    def _ask(self) -> None:
        resources = tuple(self._snapshot() for _ in range(self._pick((0, 0, 1, 2))))
        self._append(ChatRequest(content=self._pick(WORDS), resources=resources))

    def _attempt(self, *, continuing: bool) -> Finish | None:
        """Send a request; None where the writer dies before it is over."""
        self.requests.append(Request(len(self.entries), continuing=continuing))
        finish: Finish | None = self._pick(("stop", "tools", "tools", "length", "error", "refused", "cancelled", None))
        sent = len(self.entries)
        calls = self._answers(wants_calls=finish == "tools")
        if finish is None:
            if len(self.entries) == sent:
                self.requests.pop()
            self._repair(calls)
            return None
        self._append(CycleEnd(attempt=1, finish=finish, usage=Usage(input=1)))
        if calls and finish in {"tools", "stop", "length"}:
            self._run(calls)
            return "tools"
        return finish

    def _answers(self, *, wants_calls: bool) -> list[ToolCallRequest]:
        kinds = ["call"] if wants_calls else []
        kinds += self._drawn.some(("message", "reasoning", "data", "blank", "call"), most=3)
        calls: list[ToolCallRequest] = []
        for kind in sorted(kinds, key=("reasoning", "blank", "message", "data", "call").index):
            note = self._metadata()
            match kind:
                case "reasoning":
                    self._append(ChatResponse(reasoning=self._pick(("", *WORDS)), metadata=note))
                case "message":
                    self._append(ChatResponse(message=self._pick(WORDS), metadata=note))
                case "blank":
                    self._append(ChatResponse(message=" \n"))
                case "data":
                    self._append(ChatResponse(data={"answer": [1, None, "ä"]}))
                case _:
                    calls.append(self._append(self._call(note)))
        return calls

    def _call(self, note: JsonObject | None) -> ToolCallRequest:
        return ToolCallRequest(
            call_id=self._pick(("call_0", "call_1", "toolu_x")),
            name=self._pick(TOOLS),
            arguments=self._arguments(),
            metadata=note,
        )

    def _metadata(self) -> JsonObject | None:
        return self._pick((None, {"provider": "anthropic", "signature": self._pick("abc")}))

    def _arguments(self) -> JsonObject | str:
        match self._pick(("path", "content", "none", "broken")):
            case "path":
                return {"path": self._pick(("a.py", "b.md"))}
            case "content":
                return {"path": "a.py", "content": self._pick(VERSIONS)}
            case "none":
                return {}
            case _:
                return '{"path": "a'

    def _run(self, calls: list[ToolCallRequest]) -> None:
        for call in self._drawn.shuffled(calls):
            if self._drawn.one_in(5):
                question = Question(id="q", text="Sure?", kind="boolean", default=True)
                asked = self._append(InquiryRequest(request=call.id, question=question))
                self._append(InquiryResponse(request=asked.id, answer=True, answered_by="user"))
            content = tuple(self._block() for _ in range(self._pick((1, 1, 2, 0))))
            facts = Facts(kind="read", path="a.py") if self._chance() else None
            self._append(
                ToolCallResponse(request=call.id, content=content, is_error=self._chance(), duration_ms=3, facts=facts)
            )

    def _repair(self, calls: list[ToolCallRequest]) -> None:
        if self._chance():
            for call in calls:
                self._append(ToolCallResponse(request=call.id, content=INTERRUPTED_CONTENT, is_error=True))

    def _block(self) -> Block:
        match self._pick(("text", "resource", "resource", "image", "audio", "link")):
            case "text":
                return TextBlock(text=self._pick(WORDS))
            case "image":
                return ImageBlock(mime_type="image/png", blob=b"\x89PNG")
            case "audio":
                return AudioBlock(mime_type="audio/wav", sha256="cd" * 32, size=9)
            case "link":
                return ResourceLink(uri="https://example.org/")
            case _:
                return ResourceBlock(resource=self._snapshot())

    def _snapshot(self) -> Resource:
        uri, version = self._pick(URIS), self._pick(VERSIONS)
        if self._delivered and self._chance():
            uri, version = self._pick(tuple(self._delivered))
        resource = replace(stored(version), uri=uri) if self._chance() else Resource(uri=uri, text=version)
        earlier, newest = self._delivered.get((uri, version)), self._newest.get(uri)
        self._taken.append((uri, version))
        if earlier is not None:
            return replace(resource, duplicate_of=earlier) if not self._drawn.one_in(4) else resource
        if self._diffs and newest is not None and self._chance():
            return replace(resource, formatted="@@ -1 +1 @@", formatted_against=newest)
        return resource

    def _overlay(self) -> None:
        match self._pick(("compaction", "compaction", "revert", "delta", "unknown")):
            case "compaction":
                entry: AnyEntry = self._compaction()
            case "revert":
                entry = Revert(entries=tuple(self._drawn.some(self._revertible, least=1, most=2)))
            case "delta":
                entry = ConfigDelta(delta={"assistant": {"model": "m2"}})
            case _:
                self.entries.append(Unknown(raw=b'{"type":"note","id":"u1","x":1}', id="u1", type="note"))
                return
        self._revertible.append(self._append(entry).id)

    def _compaction(self) -> Compaction:
        turns = divide(self.entries).turns
        ids = [turn.id for turn in turns] + ["missing"]
        return Compaction(
            from_turn=self._pick(range(-1, len(turns) + 1)),
            to_turn=self._pick(range(len(turns) + 3)),
            from_id=self._pick((None, self._pick(ids))),
            to_id=self._pick((None, self._pick(ids))),
            summary=self._pick((None, None, SummaryPolicy(text=self._pick(WORDS)))),
            reasoning=self._pick((None, "strip")),
            tool_calls=self._pick((None, self._tool_policy())),
            tool_overrides={self._pick(TOOLS): self._override() for _ in range(self._pick(range(3)))},
            resources=self._pick((None, "superseded")),
        )

    def _tool_policy(self) -> ToolCallPolicy:
        policy = self._pick(("strip", "strip", "omit"))
        return ToolCallPolicy(policy=policy, request=self._chance(), response=self._chance())

    def _override(self) -> ToolOverride:
        kinds = (None, "keep", "strip")
        return ToolOverride(request=self._pick(kinds), response=self._pick(kinds))

    def _cycle_compaction(self) -> Compaction:
        return replace(
            self._compaction(), to_turn=len(divide(self.entries).turns) - 1, to_id=None, to_cycle=self._pick(range(6))
        )


def stories(*, overlays: bool = True, diffs: bool = True) -> st.SearchStrategy[Story]:
    """Logs as a writer leaves them.

    Without `overlays` nothing changes how earlier entries are read, without `diffs` every snapshot has all its content.
    """
    return choices().map(lambda drawn: Author(drawn, overlays=overlays, diffs=diffs).write())


def streams(*, overlays: bool = True, diffs: bool = True) -> st.SearchStrategy[tuple[AnyEntry, ...]]:
    """The entries of `stories`."""
    return stories(overlays=overlays, diffs=diffs).map(lambda story: story.entries)


def damaged_streams() -> st.SearchStrategy[tuple[AnyEntry, ...]]:
    """Logs after hand edits, merges and crashes: lines lost, doubled, moved, and renamed."""
    return choices().map(lambda drawn: _damaged(_entries(drawn), drawn))


def any_streams() -> st.SearchStrategy[tuple[AnyEntry, ...]]:
    """`streams` or `damaged_streams`."""
    return choices().map(lambda drawn: _damaged(_entries(drawn), drawn) if drawn.one_in(2) else _entries(drawn))


def _entries(drawn: Choices) -> tuple[AnyEntry, ...]:
    return Author(drawn, overlays=True, diffs=True).write().entries


def _damaged(whole: Sequence[AnyEntry], drawn: Choices) -> tuple[AnyEntry, ...]:
    entries = list(whole)
    for _ in range(drawn.pick(range(1, 7))):
        position = drawn.below(len(entries))
        match drawn.pick(("lose", "double", "move", "rename", "cut")):
            case "lose" if len(entries) > 1:
                del entries[position]
            case "double":
                entries.insert(drawn.below(len(entries) + 1), entries[position])
            case "move":
                entries.insert(drawn.below(len(entries)), entries.pop(position))
            case "rename" if not isinstance(entries[position], Unknown):
                entries[position] = replace(entries[position], id=drawn.pick(("", "e00001", "e00003")))
            case _:
                del entries[position + 1 :]
    return tuple(entries)
