"""Anchors, and a transcript split and put together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import transcripts
from artifacts import MemoryArtifacts
from jp.context.anchors import (
    is_real_user,
    latest_real_user,
    latest_visible_assistant,
    preserve,
    rejoin,
    split,
    split_at,
)
from jp.context.groups import index_groups, leading_systems
from jp.context.markers import Cutter, marked_handles
from jp.context.types import Message, Meta, Transcript, texts_of
from transcript_validator import complaints

NONCE = "5eed5eed"
either = transcripts.any_transcripts()
unreal = st.sampled_from((
    Message(role="user", content="go on", meta=transcripts.SYNTHETIC),
    Message(role="assistant", content="understood", meta=transcripts.SYNTHETIC),
    Message(role="user", content="/help", meta=Meta(hidden=True)),
    Message(role="assistant", content="hm", meta=Meta(hidden=True)),
    transcripts.SUMMARY_ROW,
))


@pytest.mark.parametrize("latest", [latest_real_user, latest_visible_assistant])
@given(either, st.lists(st.tuples(st.integers(0, 40), unreal), max_size=4))
def test_what_is_not_real_does_not_change_which_message_is_the_anchor(
    latest: Callable[[Sequence[Message]], int | None], messages: Transcript, inserted: list[tuple[int, Message]]
) -> None:
    rows = list(messages)
    for position, row in inserted:
        rows.insert(position, row)

    before, after = latest(messages), latest(rows)

    assert (before is None) == (after is None)
    assert before is None or after is None or rows[after] is messages[before]


@given(either, st.data())
def test_the_newest_request_stands_in_the_output_once(messages: Transcript, data: st.DataObject) -> None:
    """In the head, in the tail, or preserved in bounds."""
    places = st.integers(0, len(messages))
    head_end, start = sorted((data.draw(places), data.draw(places)))
    cutter = Cutter(NONCE, MemoryArtifacts())
    latest = latest_real_user(messages)

    kept = preserve(messages, latest, cutter, between=(head_end, start), limit=100)

    stays = latest is not None and not head_end <= latest < start
    assert (kept is not None) + stays == (latest is not None)
    if kept is not None:
        whole = "\n\n".join(filter(None, texts_of(messages[kept.position])))
        assert len(kept.text) <= 100
        assert kept.exact == (kept.text == whole) == (len(whole) <= 100)
        assert kept.exact or [cutter.artifacts.recall(handle) for handle in marked_handles(kept.text, NONCE)] == [whole]


@given(either, st.integers(-1, 6))
def test_a_split_transcript_rejoins_exactly(messages: Transcript, keep: int) -> None:
    parts = split(messages, keep_last_exchanges=keep)

    assert rejoin(parts, parts.middle) == messages
    assert parts.status == ("split" if parts.middle else "nothing_to_compact")


@given(transcripts.transcripts(), st.integers(0, 6))
def test_the_tail_has_as_many_requests_as_wanted_and_there_are(messages: Transcript, keep: int) -> None:
    parts = split(messages, keep_last_exchanges=keep)

    assert sum(map(is_real_user, parts.tail)) == min(keep, sum(map(is_real_user, messages)))
    assert parts.head == messages[: leading_systems(messages)]


@given(transcripts.transcripts(), st.integers(-1, 30), st.integers(-1, 10))
def test_a_summary_fits_wherever_a_person_says_and_no_group_is_cut(
    messages: Transcript, position: int, head_end: int
) -> None:
    parts = split_at(messages, position, head_end=head_end)

    joined = rejoin(parts, (transcripts.SUMMARY_ROW,))

    ends = {0, *(group.end for group in index_groups(messages).groups)}
    assert {len(parts.head), len(parts.head) + len(parts.middle)} <= ends
    assert complaints(joined) == []
    assert not any(row.meta.pending for row in parts.middle)
    assert joined[len(parts.head) + 1 :] == parts.tail
