"""The requests that a log records, each with the part of the log that it was made from. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from jp.compaction.status_lines import StatusFormatter
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    ConfigDelta,
    CycleEnd,
    Digests,
    Header,
    InquiryRequest,
    InquiryResponse,
    RequestContext,
    Revert,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Unknown,
)
from jp.conversation.resource import Payload
from jp.conversation.thread import Parameters, Thread
from jp.conversation.turns import turns_of
from jp.turn.request import Loader, RequestSettings, build_thread, read_tools


class SentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was sent: the `attempt` (from 1) in a cycle of a turn (both from 0).

    It was made from the first `entries` entries of the stream and `context`. `going_on` is true if the model was asked
    again without new input. `digests` are those that its `cycle_end` records, with the hashes of all messages; None
    if the writer died first.
    """

    turn: int
    cycle: int
    attempt: int
    entries: int
    going_on: bool
    context: RequestContext
    digests: Digests | None


class _Reader:
    """Reads a stream in its order; a request is complete with its `cycle_end`, or with the turn."""

    def __init__(self, turns: dict[str, int]) -> None:
        self.sent: list[SentRequest] = []
        self._turns = turns
        self._turn = -1
        self._context: RequestContext | None = None
        self._hashes: tuple[str, ...] = ()
        self._start: int | None = None  # the first answer of the attempt that is being read
        self._begin_turn(-1)

    def _begin_turn(self, turn: int) -> None:
        self._turn = turn
        self._cycle, self._attempt = 0, 1
        self._going_on = False
        self._message = ""

    def read(self, position: int, entry: AnyEntry) -> None:
        """Take the entry at `position`."""
        match entry:
            case TurnStart(id=identity):
                self._leave_open()
                self._begin_turn(self._turns.get(identity, self._turn))
            case RequestContext():
                self._context = entry
            case ChatResponse() | ToolCallRequest():
                self._start = position if self._start is None else self._start
                self._message += (isinstance(entry, ChatResponse) and entry.message) or ""
            case CycleEnd():
                self._end(position, entry)
            case ToolCallResponse():
                self._leave_open()
                self._going_on, self._message = False, ""
            case ChatRequest() | InquiryRequest() | InquiryResponse():
                pass
            case Header() | ConfigDelta() | Compaction() | Revert() | Unknown():
                pass
            case _:
                assert_never(entry)

    def finish(self) -> list[SentRequest]:
        """Return all requests; nothing more is read."""
        self._leave_open()
        return self.sent

    def _end(self, position: int, end: CycleEnd) -> None:
        self._hashes = self._hashes[: end.digests.kept] + end.digests.messages
        digests = msgspec.structs.replace(end.digests, kept=0, messages=self._hashes)
        self._add(position if self._start is None else self._start, digests)
        self._start = None
        match end.finish:
            case "error" | "cancelled":
                self._attempt += 1
                self._going_on = bool(self._message)
            case "stop" | "tools" | "length" | "refused":
                self._cycle, self._attempt = self._cycle + 1, 1
                self._going_on = True
                self._message = self._message if end.finish == "length" else ""
            case _:
                assert_never(end.finish)

    def _leave_open(self) -> None:
        """Record the last answered request without an end: its writer died."""
        if self._start is not None:
            self._add(self._start, None)
            self._start = None

    def _add(self, entries: int, digests: Digests | None) -> None:
        if self._context is not None:
            self.sent.append(
                SentRequest(
                    turn=self._turn,
                    cycle=self._cycle,
                    attempt=self._attempt,
                    entries=entries,
                    going_on=self._going_on,
                    context=self._context,
                    digests=digests,
                )
            )


def sent_requests(entries: Sequence[AnyEntry]) -> list[SentRequest]:
    """Return the requests that a stream records, in order.

    One without an answer or a `cycle_end` left no trace. Logs that record no `request_context` (the original's) do not
    say what was sent.
    """
    reader = _Reader({turn.id: turn.number for turn in turns_of(entries)})
    for position, entry in enumerate(entries):
        reader.read(position, entry)
    return reader.finish()


def settings_of(context: RequestContext, loader: Loader) -> RequestSettings:
    """Return the settings that `context` records.

    Raises:
        StorageError: its content cannot be read.
    """
    tools = () if context.tools is None else read_tools(_text(context.tools, loader))
    return RequestSettings(
        provider=context.provider,
        model=context.model,
        renderer=context.renderer,
        system=tuple(_text(part, loader) for part in context.system),
        tools=tools,
        parameters=msgspec.convert(context.parameters, Parameters),
    )


def _text(payload: Payload, loader: Loader) -> str:
    return loader.load(payload).text or ""


def thread_of(
    sent: SentRequest, entries: Sequence[AnyEntry], *, loader: Loader, status_formatter: StatusFormatter
) -> Thread:
    """Return the thread that the model was shown with `sent`, from the stream in which `sent` was found.

    Raises:
        StorageError: content that it shows cannot be read.
    """
    settings = settings_of(sent.context, loader)
    return build_thread(
        entries[: sent.entries], settings, loader=loader, status_formatter=status_formatter, continuing=sent.going_on
    )
