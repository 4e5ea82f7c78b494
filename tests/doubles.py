"""Doubles for the ports of a turn, each named for its role."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TypeVar, assert_never

import anyio
import msgspec
from msgspec.structs import replace

from jp.conversation.entries import AnyEntry, ChatResponse, Header, ToolCallRequest, Unknown
from jp.conversation.resource import Carrier, TextBlock
from jp.conversation.thread import Thread, ToolDefinition
from jp.provider.base import (
    BlockEnd,
    Finished,
    Part,
    Sections,
    SentMessage,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    WireRequest,
)
from jp.provider.errors import ProviderError
from jp.tool.base import CallOutcome, CallStarted, Inquired, Progressed, ToolEvent, ToolOutput
from jp.turn.ports import CallAnswered, CallMade, Recorder, ToolNews

C = TypeVar("C", bound=Carrier)

AT = "2026-01-02T03:04:05Z"


class MemoryRecorder:
    """A log in memory; ids count from 1. `fails_at` names the append that finds the disk full."""

    def __init__(
        self, entries: Sequence[AnyEntry] = (), *, failure: Exception | None = None, fails_at: int = -1
    ) -> None:
        header = Header(id="header", at=AT, format=1, created_at=AT, nonce="n")
        self.entries: list[AnyEntry] = list(entries) or [header]
        self._failure = failure
        self._fails_at = fails_at

    def append(self, entry: AnyEntry) -> AnyEntry:
        if self._failure is not None and len(self.entries) >= self._fails_at:
            raise self._failure
        stamped = entry if isinstance(entry, Unknown) else replace(entry, id=f"e{len(self.entries):03}", at=AT)
        self.entries.append(stamped)
        return stamped

    def load(self, carrier: C, /) -> C:
        message = f"nothing is stored outside this log: {carrier!r}"
        raise AssertionError(message)


class Screen:
    """Remembers what a renderer is told, in order."""

    def __init__(self) -> None:
        self.shown = ""
        self.thought = ""
        self.notices: list[str] = []
        self.calls: list[str] = []
        self.results: list[str] = []
        self.progress: list[str] = []
        self.inquiries: list[str] = []
        self.entries: list[AnyEntry] = []
        self.blocks = 0
        self.is_closed = False

    def text(self, text: str) -> None:
        self.shown += text

    def reasoning(self, text: str) -> None:
        self.thought += text

    def block_end(self) -> None:
        self.blocks += 1

    def tool(self, event: ToolNews) -> None:
        match event:
            case CallMade(call=call):
                self.calls.append(call.name)
            case Progressed(call=call, text=text):
                self.progress.append(f"{call.name}: {text}")
            case Inquired(call=call, question=question, answer=answer):
                self.inquiries.append(f"{call.name}: {question.text} {answer.value}")
            case CallAnswered(call=call, response=response):
                self.results.append(f"{call.name}: {'error' if response.is_error else 'ok'}")
            case _:
                assert_never(event)

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def entry(self, entry: AnyEntry) -> None:
        self.entries.append(entry)

    def close(self) -> None:
        self.is_closed = True


Step = Part | ProviderError | Callable[[], None]


class ScriptedProvider:
    """Answers request after request with the given steps: parts are yielded, errors raised, functions called.

    An empty step list hangs until it is cancelled. `located` is where it says that rejected reasoning stands.
    """

    id = "scripted"
    renderer = 1

    def __init__(self, *answers: Sequence[Step]) -> None:
        self._answers = list(answers)
        self.threads: list[Thread] = []
        self.located: tuple[str, ...] = ()

    def render(self, thread: Thread) -> WireRequest:
        self.threads.append(thread)
        sections = Sections(messages=tuple(SentMessage((msgspec.json.encode(event),)) for event in thread.events))
        return WireRequest(path="/", model=thread.model, body=msgspec.to_builtins(thread), sections=sections)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        return self.located

    async def stream(self, request: WireRequest) -> AsyncGenerator[Part, None]:
        steps = self._answers.pop(0)
        if not steps:
            await anyio.sleep_forever()
        for step in steps:
            if isinstance(step, ProviderError):
                raise step
            if callable(step):
                step()
                await anyio.lowlevel.checkpoint()
            else:
                yield step


class FakeClock:
    """Waits are noted, not waited for."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return 0.0

    def jitter(self) -> float:
        return 1.0

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await anyio.lowlevel.checkpoint()


class EchoTools:
    """One tool, `echo`, that returns its arguments.

    `deny` refuses all calls; `hang` never answers the second; `ask` never answers whether the second may run.
    """

    def __init__(self, *, deny: bool = False, hang: bool = False, ask: bool = False) -> None:
        self._deny = deny
        self._hang = hang
        self._ask = ask

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        return (ToolDefinition(name="echo", description="Echo.", parameters={"type": "object"}),)

    async def run(self, calls: Sequence[ToolCallRequest], stream: Recorder, tell: Callable[[ToolEvent], None]) -> None:
        for number, call in enumerate(calls):
            if self._ask and number == 1:
                await anyio.sleep_forever()
            if not self._deny:
                tell(CallStarted(call=call))
            if self._hang and number == 1:
                await anyio.sleep_forever()
            text = "denied" if self._deny else str(call.arguments)
            output = ToolOutput(content=(TextBlock(text=text),), is_error=self._deny)
            tell(CallOutcome(call=call, output=output, duration_ms=None if self._deny else 1, denied=self._deny))


def answer(text: str, *, reason: str = "stop") -> list[Step]:
    """The parts of a whole message."""
    finished = msgspec.convert({"reason": reason}, Finished)
    return [TextDelta(0, text), BlockEnd(0), finished]


def call(*arguments: str) -> list[Step]:
    """The parts of calls of `echo`, one for each JSON text."""
    steps: list[Step] = []
    for index, text in enumerate(arguments):
        steps += [ToolCallStart(index, f"call-{index}", "echo"), ToolArgumentsDelta(index, text), BlockEnd(index)]
    return [*steps, Finished("tools")]


def messages(entries: Sequence[AnyEntry]) -> list[str]:
    """The message texts in a log."""
    return [entry.message for entry in entries if isinstance(entry, ChatResponse) and entry.message is not None]


def kinds(entries: Sequence[AnyEntry]) -> list[str]:
    """The types of the entries of a log, its header aside."""
    found = [entry.type if isinstance(entry, Unknown) else str(entry.__struct_config__.tag) for entry in entries]
    return [kind for kind in found if kind != "header"]


class InlineStream:
    """A log with everything inline, as tools see it."""

    def __init__(self, *entries: AnyEntry) -> None:
        self.entries = entries

    def load(self, carrier: C, /) -> C:
        return carrier
