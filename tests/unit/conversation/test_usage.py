from __future__ import annotations

import pytest

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Finish,
    InquiryResponse,
    RequestContext,
    Revert,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Usage,
)
from jp.conversation.turns import RequestUsage, prompt_tokens, usage_by_turn

SOME = Usage(input=10, output=2)
CONTEXT = RequestContext(provider="anthropic", model="m", renderer=1, parameters={"cache": "long"})
CALL = ToolCallRequest(id="c", call_id="1", name="run", arguments={})


def start(number: int) -> TurnStart:
    return TurnStart(id=f"t{number}")


def ask(at: str = "") -> ChatRequest:
    return ChatRequest(content="?", at=at)


def say() -> ChatResponse:
    return ChatResponse(message="!")


def end(finish: Finish = "stop", *, attempt: int = 1, usage: Usage = SOME, at: str = "") -> CycleEnd:
    return CycleEnd(attempt=attempt, finish=finish, usage=usage, at=at)


def requests_in(*entries: AnyEntry) -> list[RequestUsage]:
    return [request for turn in usage_by_turn(entries) for request in turn.requests]


def test_a_cycle_goes_on_over_its_attempts() -> None:
    found = requests_in(
        start(0),
        ask(),
        CALL,
        end("tools"),
        ToolCallResponse(request="c", content=()),
        end("error", usage=Usage()),
        say(),
        end(attempt=2),
        start(1),
        ask(),
        say(),
        end(),
    )

    assert [(request.turn, request.cycle) for request in found] == [(0, 0), (0, 1), (0, 1), (1, 0)]


def test_what_holds_besides_the_stream_outlives_a_turn() -> None:
    before, after = requests_in(start(0), ask(), end(), start(1), ask(), CONTEXT, say(), end())
    (given,) = usage_by_turn((start(0), ask(), end()), CONTEXT)[0].requests

    assert (before.model, before.cache) == (("", ""), "short")
    assert (after.model, after.cache) == (("anthropic", "m"), "long")
    assert given.model == after.model


def test_a_request_was_sent_after_what_it_asks_and_not_before_what_it_answers() -> None:
    first, second = requests_in(
        start(0), ask("1"), say(), end("error", at="2"), say(), end(attempt=2, at="3"), ChatResponse(message="", at="4")
    )[:2]

    assert (first.asked_at, second.asked_at) == ("1", "2")


@pytest.mark.parametrize(
    ("entries", "usage"),
    [
        ((say(), end()), SOME),
        ((say(), end(usage=Usage())), None),
        ((end(usage=Usage()),), None),
        ((end("cancelled", usage=Usage()),), None),
        ((end("error", usage=Usage()),), Usage()),
        ((end("error"),), SOME),
        ((say(), end("error", usage=Usage())), None),
        ((say(),), None),
    ],
    ids=["told", "untold", "empty", "cancelled", "failed before", "failed after", "broke off", "died"],
)
def test_what_nobody_reported_is_not_nothing(entries: tuple[AnyEntry, ...], usage: Usage | None) -> None:
    (request,) = requests_in(start(0), ask(), *entries)

    assert request.usage == usage


def test_answers_without_an_end_are_cycles_as_the_original_has_them() -> None:
    response = ToolCallResponse(request="c", content=())
    found = requests_in(start(0), ask(), CALL, response, say(), start(1), ask(), say())

    assert [(request.turn, request.cycle, request.end) for request in found] == [
        (0, 0, None),
        (0, 1, None),
        (1, 0, None),
    ]


def test_a_turn_that_was_undone_is_marked() -> None:
    turns = usage_by_turn((start(0), ask(), end(), start(1), ask(), end(), Revert(id="r", entries=("t0",))))

    assert [(turn.number, turn.is_undone, len(turn.requests)) for turn in turns] == [(0, True, 1), (1, False, 1)]


def test_nothing_was_spent_where_nothing_was_asked() -> None:
    assert usage_by_turn(()) == []
    assert [turn.requests for turn in usage_by_turn((start(0), ask()))] == [()]


def test_all_that_goes_in_is_the_prompt() -> None:
    assert prompt_tokens(Usage(input=1, cache_read=20, cache_write=300, output=4000, reasoning=50000)) == 321


def test_what_a_model_answered_to_tools_is_told_by_turns() -> None:
    asked = InquiryResponse(request="q", answer=True, answered_by="assistant", model="anthropic/m", usage=SOME)
    typed = InquiryResponse(request="q", answer=True, answered_by="user")

    first, second = usage_by_turn((start(0), ask(), CALL, end("tools"), asked, typed, start(1), ask()))

    assert first.inquiries == (asked,)
    assert len(first.requests) == 1
    assert second.inquiries == ()
