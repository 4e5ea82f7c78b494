"""The ports of a turn, and its clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from jp.compaction.status_lines import StatusFormatter
from jp.conversation.entries import AnyEntry, Compaction, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import Carrier
from jp.conversation.thread import ToolDefinition
from jp.provider.base import Provider, WireRequest
from jp.tool.base import CallProgress, QuestionAnswered, ToolEvent

C = TypeVar("C", bound=Carrier)


class Recorder(Protocol):
    """The open log of one conversation, with its lock held."""

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """The stream so far, content in the form in which it is stored."""
        ...

    def append(self, entry: AnyEntry) -> AnyEntry:
        """Stamp `entry`, store its large content, append it and flush. The result has its content as it came.

        Raises:
            StorageError: it could not be written; the log holds nothing of it.
        """
        ...

    def load(self, carrier: C, /) -> C:
        """Return the carrier with its content inline, read from the blob store if it is there.

        Raises:
            StorageError: the blob is missing or damaged.
        """
        ...


class ToolRunner(Protocol):
    """Permission, execution and errors of tools. The turn only hands over calls and records what comes."""

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools that the model may call, sorted by name."""
        ...

    async def run(self, calls: Sequence[ToolCallRequest], stream: Recorder, tell: Callable[[ToolEvent], None]) -> None:
        """Run the calls of one cycle, which `stream` contains; pass each outcome to `tell` at once.

        A call that may have effects is announced before it starts; a call that was not announced had no effects.
        """
        ...


class CallMade(msgspec.Struct, frozen=True, kw_only=True):
    """A call is complete and about to run, or to be asked about."""

    call: ToolCallRequest


class CallAnswered(msgspec.Struct, frozen=True, kw_only=True):
    """A call was answered."""

    call: ToolCallRequest
    response: ToolCallResponse


ToolNews = CallMade | CallProgress | QuestionAnswered | CallAnswered
"""The events of a call that are shown to a person."""


class Renderer(Protocol):
    """Shows a turn as it happens. Texts come raw: who writes to a terminal strips control sequences."""

    def text(self, text: str) -> None:
        """Show more of the message."""
        ...

    def reasoning(self, text: str) -> None:
        """Show more of the reasoning."""
        ...

    def block_end(self) -> None:
        """End the message or the reasoning that was shown last."""
        ...

    def tool(self, event: ToolNews) -> None:
        """Show what happens to a call."""
        ...

    def notice(self, text: str) -> None:
        """Say something about getting there: a retry, a cut, a cap."""
        ...

    def entry(self, entry: AnyEntry) -> None:
        """Show an entry that was recorded; its content is inline."""
        ...

    def close(self) -> None:
        """End the turn: write what is held back."""
        ...


class Clock(Protocol):
    """Time and chance, so that tests have neither."""

    def monotonic(self) -> float:
        """Seconds from any start."""
        ...

    def jitter(self) -> float:
        """Return a number from 0 to 1."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Cap(Protocol):
    """A limit that may end a turn early, in addition to the limits that the turn counts itself."""

    def permits(self, request: WireRequest) -> bool:
        """Return True if `request`, which is ready, may be sent. If not, the turn ends and its output is kept."""
        ...


class NoCap:
    """A cap that is never reached."""

    def permits(self, request: WireRequest) -> bool:
        """See the port."""
        return True


class Room(Protocol):
    """Frees space when a request nearly fills the context window, by overlays that the turn records."""

    async def before(self, request: WireRequest) -> Sequence[Compaction]:
        """Return the compactions to record before `request` is sent; the request is then rebuilt and checked again.

        The result is empty if the request may be sent unchanged.

        Raises:
            ProviderError: the request does not fit, and nothing more can be compacted.
        """
        ...

    async def after_overflow(self) -> Sequence[Compaction]:
        """Return the compactions to record after the provider rejected a request as too long; empty if it must fail."""
        ...


class NoRoom:
    """A `Room` that never frees space."""

    async def before(self, request: WireRequest) -> Sequence[Compaction]:
        """See the port."""
        return ()

    async def after_overflow(self) -> Sequence[Compaction]:
        """See the port."""
        return ()


class TurnPorts(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies of a turn."""

    provider: Provider
    recorder: Recorder
    renderer: Renderer
    tools: ToolRunner
    clock: Clock
    status_formatter: StatusFormatter
    cap: Cap = NoCap()
    room: Room = NoRoom()

    def record(self, entry: AnyEntry) -> None:
        """Append `entry` to the log, and say that it is there, with what the recorder has written along with it."""
        count = len(self.recorder.entries)
        self.renderer.entry(self.recorder.append(entry))
        for other in self.recorder.entries[count + 1 :]:
            self.renderer.entry(other)


class SystemClock:
    """The machine's clock."""

    def monotonic(self) -> float:
        """Seconds from any start."""
        return time.monotonic()

    def jitter(self) -> float:
        """Return a number from 0 to 1."""
        from random import random

        return random()  # noqa: S311  spreads retries, protects nothing

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        from anyio import sleep

        await sleep(seconds)
