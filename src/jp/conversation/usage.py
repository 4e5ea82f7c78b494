"""What each request of a stream took, as the stream tells it: tokens, by turns and cycles. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from jp.conversation.entries import (
    AnyEntry,
    ChatResponse,
    CycleEnd,
    InquiryResponse,
    RequestContext,
    ToolCallRequest,
    Usage,
)
from jp.conversation.turns import Turn, turns_of, undone

_NOTHING = Usage()


class RequestUsage(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt, in a cycle of a turn (both from 0).

    `end` is None where nothing says how it ended: its writer died, or it is the original's. `asked_at` is the `at` of
    the entry before the answer, so about when it was sent. `answered` says that any of an answer came.
    """

    turn: int
    cycle: int
    end: CycleEnd | None
    context: RequestContext | None
    asked_at: str = ""
    answered: bool = False

    @property
    def usage(self) -> Usage | None:
        """Its tokens, None where nobody reported any though there were some.

        An attempt that failed before anything came took none.
        """
        if self.end is None:
            return None
        is_known = self.end.usage != _NOTHING or (self.end.finish == "error" and not self.answered)
        return self.end.usage if is_known else None

    @property
    def model(self) -> tuple[str, str]:
        """Its provider and model, empty where nothing says which."""
        return ("", "") if self.context is None else (self.context.provider, self.context.model)

    @property
    def cache(self) -> str:
        """How long the provider was asked to keep the prompt: `off`, `short` or `long`."""
        return "short" if self.context is None else self.context.parameters.get("cache", "short")


class TurnUsage(msgspec.Struct, frozen=True, kw_only=True):
    """A turn and its requests, in their order. `inquiries` are a model's answers to what tools asked."""

    number: int
    is_undone: bool
    requests: tuple[RequestUsage, ...]
    inquiries: tuple[InquiryResponse, ...] = ()


def prompt_tokens(usage: Usage) -> int:
    """All that went in, wherever it was read from."""
    return usage.input + usage.cache_read + usage.cache_write


def usage_by_turn(entries: Sequence[AnyEntry], context: RequestContext | None = None) -> list[TurnUsage]:
    """The turns of a stream, those that were undone too. `context` is the one in force before `entries`."""
    gone = undone(entries)
    reader = _Reader(context)
    return [
        TurnUsage(
            number=turn.number,
            is_undone=turn.id in gone,
            requests=tuple(reader.read(turn)),
            inquiries=tuple(
                entry for entry in turn.entries if isinstance(entry, InquiryResponse) and entry.model is not None
            ),
        )
        for turn in turns_of(entries)
    ]


def reported_usage(entries: Sequence[AnyEntry]) -> dict[tuple[int, int, int], Usage]:
    """What was reported of each request, by its turn, cycle (both from 0) and attempt (from 1)."""
    return {
        (request.turn, request.cycle, request.end.attempt): request.usage
        for turn in usage_by_turn(entries)
        for request in turn.requests
        if request.end is not None and request.usage is not None
    }


class _Reader:
    """Reads turns in their order. What holds besides the stream outlives a turn."""

    def __init__(self, context: RequestContext | None) -> None:
        self._context = context
        self._at = ""  # of the newest entry that is no answer
        self._cycle = -1
        self._answered = False

    def read(self, turn: Turn) -> Iterator[RequestUsage]:
        """The requests of the next turn."""
        self._cycle, self._answered = -1, False
        for entry in turn.entries:
            match entry:
                case ChatResponse() | ToolCallRequest():
                    self._answered = True
                case CycleEnd():
                    yield self._request(turn, entry)
                    self._at = entry.at
                case _:
                    if self._answered:
                        yield self._request(turn, None)
                    self._context = entry if isinstance(entry, RequestContext) else self._context
                    self._at = entry.at
        if self._answered:
            yield self._request(turn, None)

    def _request(self, turn: Turn, end: CycleEnd | None) -> RequestUsage:
        if end is None or end.attempt == 1 or self._cycle < 0:
            self._cycle += 1
        answered, self._answered = self._answered, False
        return RequestUsage(
            turn=turn.number,
            cycle=self._cycle,
            end=end,
            context=self._context,
            asked_at=self._at,
            answered=answered,
        )
