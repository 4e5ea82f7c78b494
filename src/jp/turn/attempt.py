"""One attempt: send a request, show and record what comes, close it with a `cycle_end`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import assert_never

import msgspec

from jp.conversation.entries import ChatResponse, CycleEnd, Finish, ToolCallRequest, Usage
from jp.provider.errors import ProviderError
from jp.provider.parts import (
    BlockEnd,
    DataDelta,
    Finished,
    KeepAlive,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
)
from jp.turn.builder import EntryBuilder
from jp.turn.joining import Joiner
from jp.turn.ports import CallMade, TurnPorts
from jp.turn.preparation import Prepared
from jp.turn.rejection import rejected_reasoning


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt brought. `calls` are recorded; `error` is there where it failed.

    `text` is what it added to the message, `answered` also counts structured data. `dropped_calls` names the tools
    whose calls were cut off half-way. `is_final` says of an answer that reached its length that the model need not be
    asked to go on with it. `rejected` are the answers whose reasoning the provider did not take, and which the next
    request is therefore without.
    """

    finish: Finish
    text: str
    answered: bool
    calls: tuple[ToolCallRequest, ...]
    usage: Usage
    detail: str = ""
    error: ProviderError | None = None
    dropped_calls: tuple[str, ...] = ()
    is_final: bool = False
    rejected: tuple[str, ...] = ()


class AttemptRun:
    """Runs once.

    `continued` is the text that this attempt goes on from, None where it starts afresh: what it repeats of that
    text is dropped, and so is reasoning about how to go on. `mended` says that the attempt before it was rejected for
    its reasoning.
    """

    def __init__(self, ports: TurnPorts, *, number: int, continued: str | None = None, mended: bool = False) -> None:
        self._provider = ports.provider
        self._recorder = ports.recorder
        self._renderer = ports.renderer
        self._number = number
        self._mended = mended
        self._continuing = continued is not None
        self._is_structured = False
        self._joiner = Joiner(continued or "")
        self._builder = EntryBuilder()
        self._calls: list[ToolCallRequest] = []
        self._texts: list[str] = []
        self._text_index: int | None = None

    async def run(self, request: Prepared) -> AttemptResult:
        """Send `request`.

        Where this is cancelled, what came is recorded all the same, with a `cycle_end` that says so.
        """
        self._is_structured = request.thread.schema is not None  # all text is data: not shown, never continued
        finish: Finish = "cancelled"
        error: ProviderError | None = None
        rejected: tuple[str, ...] = ()
        try:
            await self._consume(self._provider.stream(request.wire))
            finish = "error" if self._builder.finished is None else self._builder.finished.reason
        except ProviderError as failure:
            finish, error = "error", failure
            rejected = rejected_reasoning(self._provider, request.thread, failure, again=self._mended)
        finally:
            self._close(
                CycleEnd(
                    attempt=self._number,
                    finish=finish,
                    usage=self._builder.usage,
                    digests=request.digests,
                    error=None if error is None else error.kind,
                    rejected=rejected,
                )
            )
        finished = self._builder.finished
        return AttemptResult(
            finish=finish,
            text="".join(self._texts),
            answered=self._builder.answered,
            calls=tuple(self._calls),
            usage=self._builder.usage,
            detail="" if finished is None else finished.detail,
            error=error,
            dropped_calls=tuple(self._builder.dropped_calls),
            is_final=finish == "length"
            and (bool(self._builder.dropped_calls) or (finished is not None and finished.is_final)),
            rejected=rejected,
        )

    async def _consume(self, stream: AsyncGenerator[Part, None]) -> None:
        async with aclosing(stream) as parts:
            async for part in parts:
                self._take(part)

    def _take(self, part: Part) -> None:
        match part:
            case TextDelta(index=index, text=text) if self._is_structured:
                self._builder.feed(DataDelta(index, text))
            case TextDelta(index=index, text=text):
                self._text_index = index
                self._take_text(index, self._joiner.feed(text))
            case ReasoningDelta(text=text):
                if not self._continuing:
                    self._builder.feed(part)
                    self._renderer.reasoning(text)
            case BlockEnd(index=index):
                if index == self._text_index:
                    self._release()
                self._record(self._builder.feed(part))
            case ToolCallStart() | ToolArgumentsDelta() | DataDelta() | UsageReport() | Finished() | KeepAlive():
                self._builder.feed(part)
            case _:
                assert_never(part)

    def _take_text(self, index: int, text: str) -> None:
        if text:
            self._texts.append(text)
            self._builder.feed(TextDelta(index, text))
            self._renderer.text(text)

    def _release(self) -> None:
        """Show what the joiner still holds: its message is complete, or cut."""
        if self._text_index is not None:
            self._take_text(self._text_index, self._joiner.flush())
            self._text_index = None

    def _record(self, entry: ChatResponse | ToolCallRequest | None) -> None:
        if entry is None:
            return
        recorded = self._recorder.append(entry)
        self._renderer.entry(recorded)
        if isinstance(recorded, ToolCallRequest):
            self._calls.append(recorded)
            self._renderer.tool(CallMade(call=recorded))
        else:
            self._renderer.block_end()

    def _close(self, end: CycleEnd) -> None:
        try:
            self._release()
        finally:
            # The log comes first: a reader that went away must not cost what was received.
            recorded = [self._recorder.append(entry) for entry in (*self._builder.cut(), end)]
        for entry in recorded:
            self._renderer.entry(entry)
        if len(recorded) > 1:
            self._renderer.block_end()
