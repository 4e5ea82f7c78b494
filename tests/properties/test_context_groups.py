from __future__ import annotations

import pytest
from hypothesis import given
from msgspec.structs import replace

import transcripts
from jp.context.budget import estimate_message
from jp.context.groups import index_groups, opens_round
from jp.context.types import Call, Message, Meta, ReasoningBlock, Transcript, texts_of
from transcript_validator import complaints

USER = Message(role="user", content="go")
CALLS = Message(
    role="assistant",
    calls=(Call(id="a", name="run", arguments="{}"), Call(id="b", name="run", arguments="{}")),
)
A = Message(role="tool", call_id="a", content="1")
B = Message(role="tool", call_id="b", content="2")
OPEN = replace(CALLS, meta=Meta(pending=True))


@given(transcripts.transcripts())
def test_generated_transcripts_are_what_providers_take(transcript: Transcript) -> None:
    assert complaints(transcript) == []


@pytest.mark.parametrize(
    "rows",
    [(), (USER,), (USER, CALLS, B, A, CALLS, A, B), (OPEN,), (OPEN, B, USER), (CALLS, A, B, OPEN)],
)
def test_the_oracle_takes_what_providers_take(rows: Transcript) -> None:
    assert complaints(rows) == []


@pytest.mark.parametrize(
    "rows",
    [
        (A,),
        (A, CALLS, B),
        (CALLS, A),
        (CALLS, A, USER, B),
        (CALLS, A, B, A),
        (CALLS, USER, A, B),
        (OPEN, CALLS, A, B),
        (OPEN, USER, A),
        (OPEN, A, A),
        (OPEN, replace(A, call_id="c")),
        (replace(CALLS, calls=(*CALLS.calls, CALLS.calls[0])), A, B, A),
        (replace(CALLS, calls=(Call(id="", name="run", arguments="{}"),)), replace(A, call_id="")),
        (replace(CALLS, role="user"), A, B),
    ],
)
def test_the_oracle_rejects_what_providers_reject(rows: Transcript) -> None:
    assert complaints(rows) != []


def test_the_oracle_knows_providers_that_want_the_sides_to_alternate() -> None:
    summary = Message(role="assistant", content="ok")

    assert complaints((USER, CALLS, A, B, summary, USER), alternate=True) == []
    assert complaints((USER, USER), alternate=True) != []
    assert complaints((USER, summary, CALLS, A, B), alternate=True) != []


@given(transcripts.any_transcripts())
def test_every_message_lies_in_one_group(transcript: Transcript) -> None:
    index = index_groups(transcript)

    covered = [position for group in index.groups for position in range(group.start, group.end)]
    assert covered == list(range(len(transcript)))
    assert [
        index.groups[number].start <= at < index.groups[number].end for at, number in enumerate(index.group_of)
    ] == [True] * len(transcript)


@given(transcripts.transcripts())
def test_a_cut_between_groups_leaves_two_transcripts_that_providers_take(transcript: Transcript) -> None:
    for group in index_groups(transcript).groups:
        assert complaints(transcript[: group.start]) == []
        assert complaints(transcript[group.start :]) == []


@given(transcripts.transcripts())
def test_a_round_of_a_well_formed_transcript_has_its_calls_and_results(transcript: Transcript) -> None:
    for group in index_groups(transcript).groups:
        first = transcript[group.start]
        answered = {row.call_id for row in transcript[group.start + 1 : group.end]}
        assert (group.kind == "round") == opens_round(first)
        assert group.pending or answered == {call.id for call in first.calls}


@given(transcripts.transcripts())
def test_no_message_is_far_cheaper_than_the_text_that_is_sent_of_it(messages: Transcript) -> None:
    """Names, ids and envelopes of calls count, and reasoning; signatures and pictures are not text."""
    for message in messages:
        texts = [*texts_of(message), message.call_id]
        texts += [part for call in message.calls for part in (call.id, call.name, call.arguments)]
        if isinstance(message.content, tuple):
            texts += [block.text for block in message.content if isinstance(block, ReasoningBlock)]
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)

        assert estimate_message(message) * 5 >= size
