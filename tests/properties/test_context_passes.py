"""What holds for every pass over a transcript, whatever it does."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import transcripts
from artifacts import MemoryArtifacts
from jp.context.budget import estimate_messages, size_of
from jp.context.groups import index_groups, leading_systems, pending_group
from jp.context.leaves import shrink_old_arguments
from jp.context.markers import Cutter, marked_handles
from jp.context.sanitize import sanitize_pairs
from jp.context.tail import bounding, relieve_pressure
from jp.context.types import ReasoningBlock, TextBlock, Transcript
from transcript_validator import complaints

NONCE = "5eed5eed"
LIMIT = 120

Pass = Callable[[Transcript, MemoryArtifacts], Transcript]


def _arguments(messages: Transcript, store: MemoryArtifacts) -> Transcript:
    """All arguments, as far back as the head."""
    between = (leading_systems(messages), len(messages))
    index = index_groups(messages)
    return shrink_old_arguments(messages, index, Cutter(NONCE, store), between=between, max_leaf=LIMIT).messages


def _pressure(messages: Transcript, store: MemoryArtifacts) -> Transcript:
    """All results give way."""
    demote = bounding(Cutter(NONCE, store), LIMIT)
    return relieve_pressure(messages, index_groups(messages), demote, tail_start=0, ceiling=0).messages


def _pairs(messages: Transcript, store: MemoryArtifacts) -> Transcript:
    return sanitize_pairs(messages, store).messages


PASSES: tuple[Pass, ...] = (_arguments, _pressure, _pairs)
every_pass = pytest.mark.parametrize("run", PASSES, ids=[run.__name__.strip("_") for run in PASSES])
either = transcripts.any_transcripts()


def contents_of(messages: Transcript) -> list[str]:
    """Every text that a message or a call brought along."""
    found: list[str] = []
    for message in messages:
        found += [call.arguments for call in message.calls]
        if isinstance(message.content, str):
            found.append(message.content)
        else:
            found += [block.text for block in message.content if isinstance(block, (TextBlock, ReasoningBlock))]
    return found


def without_ids(messages: Transcript) -> Transcript:
    """An id that was missing has to come to be."""
    return tuple(replace(row, call_id="", calls=tuple(replace(call, id="") for call in row.calls)) for row in messages)


@every_pass
@given(either)
def test_it_never_inflates_and_what_it_does_not_change_is_the_same_object(run: Pass, messages: Transcript) -> None:
    after = run(messages, MemoryArtifacts())

    assert sum(map(size_of, without_ids(after))) <= sum(map(size_of, without_ids(messages)))
    assert estimate_messages(without_ids(after)) <= estimate_messages(without_ids(messages))
    assert after is messages or after != messages


@every_pass
@given(either)
def test_doing_it_again_changes_nothing(run: Pass, messages: Transcript) -> None:
    once = run(messages, MemoryArtifacts())

    assert run(once, MemoryArtifacts()) is once


@every_pass
@given(transcripts.transcripts())
def test_what_providers_take_they_take_afterwards(run: Pass, messages: Transcript) -> None:
    assert complaints(run(messages, MemoryArtifacts())) == []


@every_pass
@given(transcripts.transcripts())
def test_the_system_messages_and_what_is_pending_stay_byte_for_byte(run: Pass, messages: Transcript) -> None:
    after = run(messages, MemoryArtifacts())

    assert [row for row in after if row.role == "system"] == [row for row in messages if row.role == "system"]
    pending = pending_group(index_groups(messages))
    if pending is not None:
        start = index_groups(messages).groups[pending].start
        assert after[start - len(messages) :] == messages[start:]


@given(either, st.data())
def test_the_head_and_the_exact_tail_are_the_same_objects(messages: Transcript, data: st.DataObject) -> None:
    index = index_groups(messages)
    places = st.sampled_from([0, *(group.end for group in index.groups)])
    start, end = sorted((data.draw(places), data.draw(places)))
    cutter = Cutter(NONCE, MemoryArtifacts())

    after = shrink_old_arguments(messages, index, cutter, between=(start, end), max_leaf=LIMIT).messages
    relieved = relieve_pressure(messages, index, bounding(cutter, LIMIT), tail_start=end, ceiling=0).messages

    assert all(one is other for one, other in zip(after[:start], messages[:start], strict=True))
    assert all(one is other for one, other in zip(after[end:], messages[end:], strict=True))
    assert all(one is other for one, other in zip(relieved[:end], messages[:end], strict=True))


@every_pass
@given(either)
def test_what_comes_in_is_not_changed(run: Pass, messages: Transcript) -> None:
    before = msgspec.json.encode(messages)

    run(messages, MemoryArtifacts())

    assert msgspec.json.encode(messages) == before


@every_pass
@given(either)
def test_nothing_new_is_written_but_markers(run: Pass, messages: Transcript) -> None:
    """So nothing that is secret can stand in it."""
    after = run(messages, MemoryArtifacts())
    known = contents_of(messages)

    for text in set(contents_of(after)).difference(known):
        first, *rest = re.split(r"\[\[cut:5eed5eed:[0-9a-f]{8}:\+[0-9]+\]\]", text)
        assert any(whole.startswith(first) and all(part in whole for part in rest) for whole in known)
        assert len(rest) > 0
    for action in sanitize_pairs(messages, MemoryArtifacts()).actions:
        assert transcripts.SECRET not in repr(action)


@every_pass
@given(either)
def test_what_is_gone_can_be_recalled_byte_for_byte(run: Pass, messages: Transcript) -> None:
    store = MemoryArtifacts()

    after = contents_of(run(messages, store))

    for text in after:
        assert None not in [store.recall(handle) for handle in marked_handles(text, NONCE)]
    if run is not _arguments:
        gone = set(contents_of(messages)).difference(after, {""})
        assert gone <= set(store.kept.values())


@every_pass
@given(transcripts.transcripts(), st.data())
def test_a_longer_transcript_begins_with_what_a_shorter_one_became(
    run: Pass, messages: Transcript, data: st.DataObject
) -> None:
    end = data.draw(st.sampled_from([0, *(group.end for group in index_groups(messages).groups)]))

    shorter = run(messages[:end], MemoryArtifacts())

    assert run(messages, MemoryArtifacts())[: len(shorter)] == shorter
