from __future__ import annotations

from jp.compaction.status_lines import PlainStatusFormatter
from jp.conversation.entries import (
    ChatRequest,
    ChatResponse,
    Compaction,
    CycleEnd,
    Digests,
    Header,
    InquiryRequest,
    Question,
    RequestContext,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import Payload
from jp.conversation.thread import AssistantText, Parameters, ToolDefinition, UserText
from jp.turn.request import InlineLoader, RequestSettings, context_entry
from jp.turn.sent import sent_requests, settings_of, thread_of

CONTEXT = RequestContext(id="c", provider="p", model="m", renderer=1, system=(Payload(text="Be brief."),))
START = (Header(id="h", format=1, created_at="", nonce="n"), TurnStart(id="t"), ChatRequest(id="q", content="Hi"))


def test_a_log_without_contexts_does_not_say_what_was_sent() -> None:
    assert sent_requests((*START, ChatResponse(id="r", message="Hello"))) == []


def test_an_attempt_whose_writer_died_is_told_without_hashes() -> None:
    call = ToolCallRequest(id="call", call_id="1", name="echo", arguments={})
    response = ToolCallResponse(request="call", content=(), is_error=True)
    died = (*START, CONTEXT, ChatResponse(id="a", message="one"), call, response)
    later = (TurnStart(id="t2"), ChatRequest(id="q2", content="And?"), ChatResponse(id="b", message="two"))

    found = sent_requests((*died, *later))

    assert [(sent.turn, sent.cycle, sent.attempt, sent.entries, sent.digests) for sent in found] == [
        (0, 0, 1, 4, None),
        (1, 0, 1, 9, None),
    ]


def test_hashes_are_those_of_the_whole_request() -> None:
    first = CycleEnd(id="e1", attempt=1, finish="tools", digests=Digests(messages=("a", "b")))
    second = CycleEnd(id="e2", attempt=1, finish="stop", digests=Digests(kept=1, messages=("c",)))
    between = (
        Compaction(id="o", from_turn=0, to_turn=0),
        InquiryRequest(id="i", request="x", question=Question(id="q", text="?", kind="text")),
    )

    found = sent_requests((*START, CONTEXT, first, *between, second))

    assert [sent.digests and sent.digests.messages for sent in found] == [("a", "b"), ("a", "c")]
    assert [(sent.cycle, sent.going_on) for sent in found] == [(0, False), (1, True)]


def test_a_context_gives_the_settings_back_and_the_stream_up_to_the_answer_the_thread() -> None:
    tool = ToolDefinition(name="echo", description="Echo.", parameters={"a": 1, "type": "object"})
    settings = RequestSettings(
        provider="p", model="m", renderer=1, system=("Be brief.",), tools=(tool,), parameters=Parameters(top_k=3)
    )
    context = context_entry(settings)
    entries = (*START, context, ChatResponse(id="a", message="Hel"), CycleEnd(id="e", attempt=1, finish="length"))
    more = (ChatResponse(id="b", message="lo"), CycleEnd(id="f", attempt=1, finish="stop"))

    first, second = sent_requests((*entries, *more))

    assert settings_of(context, InlineLoader()) == settings
    shown = thread_of(first, entries, loader=InlineLoader(), status_formatter=PlainStatusFormatter())
    assert [event.text for event in shown.events if isinstance(event, UserText)] == ["Hi"]
    continued = thread_of(second, (*entries, *more), loader=InlineLoader(), status_formatter=PlainStatusFormatter())
    assert [event.text for event in continued.events if isinstance(event, AssistantText)] == ["Hel"]
    assert isinstance(continued.events[-1], UserText)
