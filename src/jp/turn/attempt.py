"""One attempt: send a request, show and record what comes, close it with a `cycle_end`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import assert_never

import msgspec

from jp.conversation.entries import ChatResponse, CycleEnd, Finish, ToolCallRequest, ToolCallResponse, Usage
from jp.conversation.resource import NOT_STARTED_CONTENT
from jp.conversation.thread import Thread, ToolResult, UserResource, UserText
from jp.provider.base import (
    BlockEnd,
    DataDelta,
    Finished,
    InputReport,
    KeepAlive,
    Part,
    Provider,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
)
from jp.provider.errors import ProviderError
from jp.provider.models import is_made_by
from jp.turn.builder import EntryBuilder, Follower, Joiner, StrayError
from jp.turn.ports import CallAnswered, CallMade, TurnPorts
from jp.turn.preparation import Prepared


def rejected_reasoning(provider: Provider, thread: Thread, error: ProviderError, *, again: bool) -> tuple[str, ...]:
    """Return the ids of the answers in `thread` whose reasoning cannot be sent as the model's own, by `error`.

    They are all that this model made if the error names none, or if the cycle fails by it `again`: so a request that
    was rejected twice is not rejected a third time. Messages and calls can carry a part of it, too.
    """
    if error.kind != "rejected_reasoning":
        return ()
    answers = (event for event in thread.events if not isinstance(event, (UserText, UserResource, ToolResult)))
    own = tuple(event.origin for event in answers if is_made_by(event.metadata, provider.id, thread.model))
    located = () if again else provider.locate_rejected(thread, error)
    return located or own


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an attempt. `calls` are recorded; `error` is set if the attempt failed.

    `text` is what the attempt added to the message. `message_complete` is true if the message is complete although the
    attempt failed. `answered` also counts structured data. `dropped_calls` names the tools whose calls were cut off.
    `is_final` is true if an answer reached its length limit and need not be continued. `rejected` lists the answers
    whose reasoning the provider rejected; the next request is sent without that reasoning.
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
    message_complete: bool = False


class AttemptRun:
    """Runs once.

    `continued` is the text that this attempt goes on from, None where it starts afresh, and `is_complete` says that
    the text had come to its end: what the attempt repeats of it is dropped, and so is reasoning about how to go on.
    `reasoning_removed` says that the attempt before it was rejected for its reasoning.
    """

    def __init__(
        self,
        ports: TurnPorts,
        *,
        number: int,
        continued: str | None = None,
        is_complete: bool = False,
        reasoning_removed: bool = False,
    ) -> None:
        self._provider = ports.provider
        self._recorder = ports.recorder
        self._renderer = ports.renderer
        self._number = number
        self._reasoning_removed = reasoning_removed
        self._continuing = continued is not None
        self._is_structured = False
        self._joiner = Follower(continued) if continued is not None and is_complete else Joiner(continued or "")
        self._builder = EntryBuilder()
        self._calls: list[ToolCallRequest] = []
        self._texts: list[str] = []
        self._text_index: int | None = None
        self._text_end: BlockEnd | None = None

    async def run(self, request: Prepared) -> AttemptResult:
        """Send `request`.

        If this is canceled, the output so far is still recorded, with a `cycle_end` that says so.
        """
        self._is_structured = request.thread.schema is not None  # all text is data: not shown, never continued
        finish: Finish = "cancelled"
        error: ProviderError | None = None
        rejected: tuple[str, ...] = ()
        try:
            await self._consume(self._provider.stream(request.wire))
            self._check_continuation()
            finish = "error" if self._builder.finished is None else self._builder.finished.reason
        except ProviderError as failure:
            finish, error = "error", failure
            rejected = rejected_reasoning(self._provider, request.thread, failure, again=self._reasoning_removed)
        finally:
            self._close(
                CycleEnd(
                    attempt=self._number,
                    finish=finish,
                    usage=self._builder.usage,
                    digests=request.digests,
                    error=None if error is None else error.kind,
                    message_complete=finish == "error" and self._has_complete_message,
                    rejected=rejected,
                    withheld=len(request.withheld),
                    input_changes=self._builder.input_changes,
                )
            )
        finished = self._builder.finished
        return AttemptResult(
            finish=finish,
            text="".join(self._texts),
            message_complete=finish == "error" and self._has_complete_message,
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
                self._take_text(index, text)
            case ReasoningDelta(text=text):
                if not self._continuing:
                    self._builder.feed(part)
                    self._renderer.reasoning(text)
            case BlockEnd():
                self._end_block(part)
            case ToolCallStart():
                self._say(self._joiner.call())
                self._builder.feed(part)
            case ToolArgumentsDelta() | DataDelta() | UsageReport() | InputReport() | Finished() | KeepAlive():
                self._builder.feed(part)
            case _:
                assert_never(part)

    @property
    def _has_complete_message(self) -> bool:
        return bool(self._texts) and self._text_end is not None

    def _take_text(self, index: int, text: str) -> None:
        self._text_index, self._text_end = index, None
        try:
            self._say(self._joiner.feed(text))
        except StrayError as error:
            raise _stray(self._provider.id) from error

    def _end_block(self, end: BlockEnd) -> None:
        """Record what has come as a whole."""
        if end.index == self._text_index:
            self._text_end = end
            try:
                self._joiner.end_block()
            except StrayError as error:
                raise _stray(self._provider.id) from error
        self._record(self._builder.feed(end))

    def _check_continuation(self) -> None:
        """Check that what has come is certain to follow what it continues, now that all of it is there.

        Raises:
            ProviderError: it is not, so that nothing of it was taken.
        """
        finished = self._builder.finished
        if finished is None or finished.reason == "refused" or self._is_structured:
            return
        if self._continuing and self._calls and isinstance(self._joiner, Joiner):
            return
        try:
            self._say(self._joiner.finish())
        except StrayError as error:
            raise _stray(self._provider.id) from error

    def _say(self, text: str) -> None:
        """Show and keep more of the message. Where its block has ended while it was held back, it is complete."""
        if not text or self._text_index is None:
            return
        self._texts.append(text)
        self._builder.feed(TextDelta(self._text_index, text))
        self._renderer.text(text)
        if self._text_end is not None:
            self._record(self._builder.feed(self._text_end))

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
        # The log comes first: a reader that went away must not cost what was received.
        recorded = [self._recorder.append(entry) for entry in (*self._builder.cut(), end)]
        for entry in recorded:
            self._renderer.entry(entry)
        if len(recorded) > 1:
            self._renderer.block_end()
        if end.finish == "cancelled":
            self._answer_calls()

    def _answer_calls(self) -> None:
        """Close the calls of an attempt that was stopped: none of them has run, and none will."""
        for call in self._calls:
            response = ToolCallResponse(request=call.id, content=NOT_STARTED_CONTENT, is_error=True)
            self._renderer.entry(self._recorder.append(response))
            self._renderer.tool(CallAnswered(call=call, response=response))


def _stray(provider: str) -> ProviderError:
    return ProviderError(f"{provider} did not continue the answer where it was cut", kind="cut")
