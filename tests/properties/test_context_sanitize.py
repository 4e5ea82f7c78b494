from __future__ import annotations

from collections import Counter

from hypothesis import example, given
from msgspec.structs import replace

import transcripts
from artifacts import MemoryArtifacts
from jp.context.sanitize import sanitize_pairs
from jp.context.types import Call, Message, Transcript, has_content
from transcript_validator import complaints

CALLS = Message(role="assistant", calls=(Call(id="a", name="run", arguments="{}"),))
A = Message(role="tool", call_id="a", content="1")


def said(messages: Transcript) -> list[tuple[str, object]]:
    """What people and models said and showed, in order."""
    return [(row.role, row.content) for row in messages if row.role != "tool" and has_content(row)]


@given(transcripts.damaged_transcripts())
@example((A, replace(A, calls=CALLS.calls), CALLS))
def test_providers_take_what_comes_out_whatever_goes_in(messages: Transcript) -> None:
    assert complaints(sanitize_pairs(messages, MemoryArtifacts()).messages) == []


@given(transcripts.any_transcripts())
def test_what_providers_take_is_the_same_object_and_anything_else_is_reported(messages: Transcript) -> None:
    found = sanitize_pairs(messages, MemoryArtifacts())

    assert (found.messages is messages) == (found.actions == ()) == (complaints(messages) == [])


@given(transcripts.damaged_transcripts())
def test_what_people_and_models_said_stays_in_order(messages: Transcript) -> None:
    assert said(sanitize_pairs(messages, MemoryArtifacts()).messages) == said(messages)


@given(transcripts.damaged_transcripts())
def test_every_result_is_kept_or_reported_once(messages: Transcript) -> None:
    found = sanitize_pairs(messages, MemoryArtifacts())

    results = sum(row.role == "tool" for row in messages)
    kept = sum(row.role == "tool" for row in found.messages)
    kinds = Counter(action.kind for action in found.actions)
    assert results - kept == kinds["orphan_dropped"] + kinds["duplicate_dropped"]
    calls = sum(len(row.calls) for row in messages)
    assert calls - sum(len(row.calls) for row in found.messages) == kinds["call_removed"]
