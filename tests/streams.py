"""Hypothesis strategies for streams: logs as a writer leaves them, and logs that hands and accidents have changed.

`stories()` are well-formed and know when requests were sent; `damaged_streams()` are anything that decodes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

import msgspec
from hypothesis import strategies as st
from msgspec.structs import replace

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
from jp.conversation.interruption import INTERRUPTED_CONTENT
from jp.conversation.resource import (
    AudioBlock,
    Block,
    ImageBlock,
    Payload,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
)
from jp.conversation.turns import divide

T = TypeVar("T")
E = TypeVar("E", bound=AnyEntry)

AT = "2026-11-20T12:00:00Z"
URIS = ("file:///w/a.py", "file:///w/b.md", "file:///w/a.py#L1-9")
TOOLS = ("fs_read_file", "fs_create_file", "run")
VERSIONS = ("alpha\n" * 90, "beta\n" * 120, "gamma")
WORDS = ("yes", "Let me see.\n", "prose " * 40, "ünïcode ✓", '{"json": 1}')

NO_ARGUMENTS: JsonObject = {}

words = st.sampled_from(WORDS)
arguments = st.one_of(
    st.fixed_dictionaries({"path": st.sampled_from(("a.py", "b.md"))}),
    st.fixed_dictionaries({"path": st.just("a.py"), "content": st.sampled_from(VERSIONS)}),
    st.just(NO_ARGUMENTS),
    st.just('{"path": "a'),
)
# What is made once is looked at once: hypothesis takes longer to check a strategy than to draw from it.
booleans = st.booleans()
up_to_three = st.integers(0, 3)
up_to_four = st.integers(0, 4)
kinds_of_answers = st.lists(st.sampled_from(("reasoning", "message", "data", "blank", "call")), max_size=3)
summaries = st.none() | st.none() | st.builds(SummaryPolicy, text=words)
metadata = st.none() | st.fixed_dictionaries({"provider": st.just("anthropic"), "signature": st.sampled_from("abc")})


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


@cache
def _one_of(choices: Sequence[T]) -> st.SearchStrategy[T]:
    return st.sampled_from(choices)


class Author:
    """Writes a log as a turn does, choosing by `draw`."""

    def __init__(self, draw: st.DrawFn, *, overlays: bool, diffs: bool) -> None:
        self._draw = draw
        self._overlays = overlays
        self._diffs = diffs
        self._revertible: list[str] = []
        self._delivered: dict[tuple[str, str], str] = {}
        self._newest: dict[str, str] = {}
        self._taken: list[tuple[str, str]] = []
        self.entries: list[AnyEntry] = []
        self.requests: list[Request] = []

    def write(self) -> Story:
        self._append(Header(format=1, created_at=AT, nonce="n0nce"))
        for _ in range(self._pick(range(1, 6))):
            self._turn()
            while self._overlays and self._chance():
                self._overlay()
        return Story(entries=tuple(self.entries), requests=tuple(self.requests))

    def _pick(self, choices: Sequence[T]) -> T:
        return self._draw(_one_of(choices))

    def _chance(self) -> bool:
        return self._draw(booleans)

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
            if finish == "cancelled" or self._draw(up_to_three) == 0:
                if self._chance():
                    return
                self._ask()

    def _ask(self) -> None:
        resources = tuple(self._snapshot() for _ in range(self._pick((0, 0, 1, 2))))
        self._append(ChatRequest(content=self._draw(words), resources=resources))

    def _attempt(self, *, continuing: bool) -> Finish | None:
        """Send a request; None where the writer dies before it is over."""
        self.requests.append(Request(len(self.entries), continuing=continuing))
        finish: Finish | None = self._pick(("tools", "stop", "length", "error", "refused", "cancelled", None))
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
        kinds += self._draw(kinds_of_answers)
        calls: list[ToolCallRequest] = []
        for kind in sorted(kinds, key=("reasoning", "blank", "message", "data", "call").index):
            note = self._draw(metadata)
            match kind:
                case "reasoning":
                    self._append(ChatResponse(reasoning=self._pick(("", *WORDS)), metadata=note))
                case "message":
                    self._append(ChatResponse(message=self._draw(words), metadata=note))
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
            arguments=self._draw(arguments),
            metadata=note,
        )

    def _run(self, calls: list[ToolCallRequest]) -> None:
        for call in self._draw(st.permutations(calls)):
            if self._draw(up_to_four) == 0:
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
                return TextBlock(text=self._draw(words))
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
        resource = replace(stored(version), uri=uri) if self._chance() else Resource(uri=uri, text=version)
        earlier, newest = self._delivered.get((uri, version)), self._newest.get(uri)
        self._taken.append((uri, version))
        if earlier is not None:
            return replace(resource, duplicate_of=earlier) if self._draw(up_to_three) else resource
        if self._diffs and newest is not None and self._draw(up_to_three) == 0:
            return replace(resource, formatted="@@ -1 +1 @@", formatted_against=newest)
        return resource

    def _overlay(self) -> None:
        match self._pick(("compaction", "compaction", "revert", "delta", "unknown")):
            case "compaction":
                entry: AnyEntry = self._compaction()
            case "revert":
                chosen = self._draw(st.lists(st.sampled_from(self._revertible), min_size=1, max_size=2))
                entry = Revert(entries=tuple(chosen))
            case "delta":
                entry = ConfigDelta(delta={"assistant": {"model": "m2"}})
            case _:
                self.entries.append(Unknown(raw=b'{"type":"note","id":"u1","x":1}', id="u1", type="note"))
                return
        self._revertible.append(self._append(entry).id)

    def _compaction(self) -> Compaction:
        turns = divide(self.entries).turns
        ids = st.none() | st.sampled_from([turn.id for turn in turns] + ["missing"])
        return Compaction(
            from_turn=self._draw(st.integers(-1, len(turns))),
            to_turn=self._draw(st.integers(0, len(turns) + 2)),
            from_id=self._draw(ids),
            to_id=self._draw(ids),
            summary=self._draw(summaries),
            reasoning=self._pick((None, "strip")),
            tool_calls=self._draw(tool_policies),
            tool_overrides=self._draw(overrides),
            resources=self._pick((None, "superseded")),
        )

    def _cycle_compaction(self) -> Compaction:
        return replace(
            self._compaction(), to_turn=len(divide(self.entries).turns) - 1, to_id=None, to_cycle=self._pick(range(6))
        )


tool_policies = st.none() | st.builds(
    ToolCallPolicy, policy=st.sampled_from(("strip", "strip", "omit")), request=st.booleans(), response=st.booleans()
)
overrides = st.dictionaries(
    st.sampled_from(TOOLS).map(str),
    st.builds(
        ToolOverride,
        request=st.sampled_from((None, "keep", "strip")),
        response=st.sampled_from((None, "keep", "strip")),
    ),
    max_size=2,
)


@st.composite
def stories(draw: st.DrawFn, *, overlays: bool = True, diffs: bool = True) -> Story:
    """Logs as a writer leaves them.

    Without `overlays` nothing changes how earlier entries are read, without `diffs` every snapshot has all its content.
    """
    return Author(draw, overlays=overlays, diffs=diffs).write()


def streams(*, overlays: bool = True, diffs: bool = True) -> st.SearchStrategy[tuple[AnyEntry, ...]]:
    """The entries of `stories`."""
    return stories(overlays=overlays, diffs=diffs).map(lambda story: story.entries)


@st.composite
def damaged_streams(draw: st.DrawFn) -> tuple[AnyEntry, ...]:
    """Logs after hand edits, merges and crashes: lines lost, doubled, moved, and renamed."""
    entries = list(draw(streams()))
    for _ in range(draw(st.integers(1, 6))):
        position = draw(st.integers(0, len(entries) - 1))
        match draw(st.sampled_from(("lose", "double", "move", "rename", "cut"))):
            case "lose" if len(entries) > 1:
                del entries[position]
            case "double":
                entries.insert(draw(st.integers(0, len(entries))), entries[position])
            case "move":
                entries.insert(draw(st.integers(0, len(entries) - 1)), entries.pop(position))
            case "rename" if not isinstance(entries[position], Unknown):
                entries[position] = replace(entries[position], id=draw(st.sampled_from(("", "e00001", "e00003"))))
            case _:
                del entries[position + 1 :]
    return tuple(entries)
