from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from jp.compaction.projection import Kept, ProjectedTurn, Projection
from jp.compaction.restored import RestoreError, events_of
from jp.compaction.transcript import transcript_of
from jp.context.types import Call, Message, Meta, ReasoningBlock, StoredBlock, TextBlock
from jp.conversation import resource
from jp.conversation.thread import (
    AssistantReasoning,
    AssistantText,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)

SNAPSHOT = resource.Resource(uri="file:///a", text="all of it", formatted_against="x")
PICTURE = resource.ImageBlock(mime_type="image/png", blob=b"\x89PNG")
NOTE = {"signature": "s"}
EVENTS: tuple[ViewEvent, ...] = (
    UserResource(resource=SNAPSHOT, turn=3, origin="q"),
    UserText(text="Why?", turn=3, origin="q"),
    AssistantReasoning(text="hm", turn=3, origin="h", metadata=NOTE),
    ToolCall(call_id="c", name="run", arguments={"path": "a"}, turn=3, origin="c", metadata=NOTE),
    AssistantText(text="I look.", turn=3, origin="t", metadata=NOTE),
    ToolCall(call_id="d", name="run", arguments="not json", turn=3, origin="d"),
    ToolResult(call="c", call_id="c", name="run", content=(resource.TextBlock(text="ok"), PICTURE), turn=3, origin="r"),
    ToolResult(call="d", call_id="d", name="run", content=(), turn=3, origin="s"),
)
TRANSCRIPT = transcript_of(Projection(turns=(ProjectedTurn(origin=Kept(3), events=EVENTS),)))
ASKED, ANSWER, RESULT, EMPTY = TRANSCRIPT.messages


def restored(*messages: Message) -> tuple[ViewEvent, ...]:
    return events_of(messages, TRANSCRIPT.records)


def with_block(message: Message, number: int, change: Callable[[TextBlock], TextBlock]) -> Message:
    blocks = list(message.content)
    block = blocks[number]
    assert isinstance(block, TextBlock)
    blocks[number] = change(block)
    return replace(message, content=tuple(blocks))


def shorter(block: TextBlock) -> TextBlock:
    return replace(block, text="short")


def test_what_a_model_said_between_its_calls_stays_there() -> None:
    assert restored(*TRANSCRIPT.messages) == EVENTS


def test_a_text_that_was_changed_loses_what_its_provider_signed() -> None:
    said = restored(with_block(ANSWER, 1, shorter))[2]
    asked = restored(with_block(ASKED, 1, shorter))
    thought = restored(replace(ANSWER, content=(ReasoningBlock(text="short", origin="h.0"),)))[0]

    assert said == AssistantText(text="short", turn=3, origin="t")
    assert asked == (EVENTS[0], UserText(text="short", turn=3, origin="q"))
    assert thought == AssistantReasoning(text="short", turn=3, origin="h")


def test_a_snapshot_that_was_shortened_stays_the_snapshot() -> None:
    (event, _) = restored(with_block(ASKED, 0, shorter))

    assert event == UserResource(
        resource=replace(SNAPSHOT, formatted="short", formatted_against=None), turn=3, origin="q"
    )


@pytest.mark.parametrize(
    ("number", "text", "arguments"),
    [
        (0, '{"path":"b"}', {"path": "b"}),
        (0, "[1]", "[1]"),
        (0, "{broken", "{broken"),
        (1, '{"a":1}', '{"a":1}'),
    ],
)
def test_arguments_are_an_object_where_they_were_one_and_are_one(
    number: int, text: str, arguments: dict[str, str] | str
) -> None:
    calls = list(ANSWER.calls)
    calls[number] = replace(calls[number], arguments=text)

    changed = [event for event in restored(replace(ANSWER, calls=tuple(calls))) if isinstance(event, ToolCall)]

    assert (changed[number].arguments, changed[number].metadata) == (arguments, None)
    assert changed[1 - number] is EVENTS[5 - 2 * number]


def test_another_id_alone_changes_no_call() -> None:
    calls = (replace(ANSWER.calls[0], id="other"), ANSWER.calls[1])

    assert all(one is other for one, other in zip(restored(replace(ANSWER, calls=calls)), EVENTS[2:6], strict=True))


def test_a_result_is_changed_block_by_block_or_as_a_whole() -> None:
    one = restored(with_block(RESULT, 0, shorter))[0]
    whole = restored(replace(RESULT, content="[ok]", is_error=True))[0]
    cut = restored(replace(RESULT, content=RESULT.content[:1]))[0]
    failed = restored(replace(RESULT, is_error=True))[0]
    same = restored(RESULT)[0]

    assert one == replace(EVENTS[6], content=(resource.TextBlock(text="short"), PICTURE))
    assert whole == replace(EVENTS[6], content=(resource.TextBlock(text="[ok]"),), is_error=True)
    assert cut == replace(EVENTS[6], content=(resource.TextBlock(text="ok"),))
    assert failed == replace(EVENTS[6], is_error=True)
    assert same is EVENTS[6]


def test_what_a_pass_says_stands_on_the_speakers_behalf() -> None:
    summary = Message(role="user", content="What happened before.", meta=Meta(kind="summary"))
    said = Message(role="assistant", content=(TextBlock(text="Much."), ReasoningBlock(text="hm")))

    assert restored(ASKED, summary, said, replace(ANSWER, content="")) == (
        *EVENTS[:2],
        UserText(text="What happened before.", turn=3, synthetic=True),
        AssistantText(text="Much.", turn=3, synthetic=True),
        AssistantReasoning(text="hm", turn=3),
        EVENTS[3],
        EVENTS[5],
    )


def test_a_content_that_became_one_text_stands_where_the_message_began() -> None:
    only_calls = replace(ANSWER, content="Instead.", origin=ANSWER.calls[0].origin)

    assert restored(replace(ASKED, content="All in one."))[0] == UserResource(
        resource=replace(SNAPSHOT, formatted="All in one.", formatted_against=None), turn=3, origin="q"
    )
    assert restored(only_calls)[0] == AssistantText(text="Instead.", turn=0, synthetic=True)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Message(role="system", content="Be brief."), "no system message"),
        (Message(role="tool", call_id="c", content="ok"), "the result of 'c' was not there"),
        (replace(EMPTY, origin="q.1"), "the result of 'd' was not there"),
        (Message(role="assistant", calls=(Call(id="n", name="run", arguments="{}"),)), "the call 'n' was not there"),
        (replace(ANSWER, calls=(replace(ANSWER.calls[0], origin="q.1"),)), "the call 'c' was not there"),
        (Message(role="user", content=(StoredBlock(sha256="ab" * 32, size=1),)), "'abababab' was not there"),
        (replace(RESULT, content=(StoredBlock(sha256="ab" * 32, size=1),)), "nothing but text"),
        (replace(RESULT, content=(ReasoningBlock(text="hm", origin="q.1"),)), "nothing but text"),
    ],
)
def test_what_a_view_cannot_show_is_an_error(message: Message, reason: str) -> None:
    with pytest.raises(RestoreError, match=reason):
        restored(message)
