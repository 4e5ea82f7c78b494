from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from artifacts import MemoryArtifacts
from jp.context.budget import estimate_messages, size_of
from jp.context.compress import compressing, run
from jp.context.groups import index_groups
from jp.context.markers import Cutter
from jp.context.types import Message, Transcript, texts_of
from summaries import AT, FRESH, NONCE, TERMS, Played, setup
from transcript_validator import complaints
from transcripts import SECRET, transcripts


def systems(messages: Transcript) -> list[Message]:
    return [row for row in messages if row.role == "system"]


@given(transcripts(), st.integers(0, 120))
def test_the_chain_of_passes_holds_to_what_each_of_them_does(messages: Transcript, percent: int) -> None:
    store = MemoryArtifacts()
    host = setup(replace(TERMS, has_provider=False), Cutter(NONCE, store))
    target = share_of(messages, percent)

    found = run(compressing(messages, target, host, policy=FRESH, at=AT), Played())

    assert complaints(found.messages) == complaints(messages)
    assert found.after == estimate_messages(found.messages) <= found.before
    assert found.stage == "too_large" or found.after <= target
    assert systems(found.messages) == systems(messages)
    if messages and found.stage != "too_large":
        last = index_groups(messages).groups[-1]
        assert [row.role for row in found.messages[last.start - last.end :]] == [
            row.role for row in messages[last.start :]
        ]
        again = run(compressing(found.messages, target, host, policy=FRESH, at=AT), Played())
        assert again.messages is found.messages


@given(transcripts(), st.integers(0, 120))
def test_the_chain_of_passes_has_the_properties_of_each_pass(messages: Transcript, percent: int) -> None:
    store = MemoryArtifacts()
    host = setup(replace(TERMS, has_provider=False), Cutter(NONCE, store))
    before = msgspec.json.encode(messages)

    found = run(compressing(messages, share_of(messages, percent), host, policy=FRESH, at=AT), Played())

    after = found.messages
    assert msgspec.json.encode(messages) == before
    assert after is messages or sum(map(size_of, after)) < sum(map(size_of, messages))
    pending = len(messages) - len(settled(messages))
    assert after[len(after) - pending :] == messages[len(messages) - pending :]
    written = [
        row for row in after if row.meta.digested and row.meta.digested.rule != "bounded" and row not in messages
    ]
    assert SECRET not in "".join(text for row in written for text in texts_of(row))
    shown = {text for row in after for text in texts_of(row)}
    gone = {text for row in messages if row.meta.kind != "summary" for text in texts_of(row)} - shown - {""}
    assert gone <= set(store.kept.values())


@given(st.lists(transcripts(), min_size=1, max_size=3))
def test_what_fits_stays_the_beginning_of_what_comes_later(parts: list[Transcript]) -> None:
    """So the provider's cache is missed only where something had to go."""
    host = setup(replace(TERMS, has_provider=False), Cutter(NONCE, MemoryArtifacts()))
    longer = tuple(row for part in parts for row in settled(part))

    for end in (group.end for group in index_groups(longer).groups):
        found = run(compressing(longer[:end], estimate_messages(longer), host, policy=FRESH, at=AT), Played())

        assert found.messages == longer[:end]


SHORTEST_SUMMARY = 1_200
"""Tokens, at most, of a summary that says as little as it may: of people who write in other scripts than Latin."""


def share_of(messages: Transcript, percent: int) -> int:
    return estimate_messages(messages) * percent // 100


def settled(messages: Transcript) -> Transcript:
    """What stands before calls that still run."""
    return messages[: next((group.start for group in index_groups(messages).groups if group.pending), len(messages))]


def pinned(messages: Transcript) -> int:
    """Tokens of what no pass may touch: system messages, what is `verbatim`, what is pending, the last group."""
    groups = index_groups(messages).groups
    pending = len(settled(messages))
    stays = [
        group
        for group in groups
        if group is groups[-1]
        or group.start >= pending
        or any(row.meta.verbatim or row.role == "system" for row in messages[group.start : group.end])
    ]
    return sum(estimate_messages(messages[group.start : group.end]) for group in stays)


@given(st.lists(transcripts(), min_size=1, max_size=4), st.integers(0, 3_000))
def test_every_target_is_met_that_leaves_room_for_what_nothing_may_touch(parts: list[Transcript], more: int) -> None:
    context: Transcript = ()
    for part in parts:
        context = (*settled(context), *part)
        target = (pinned(context) + SHORTEST_SUMMARY) * 100 // 90 + more
        host = setup(replace(TERMS, has_provider=False), Cutter(NONCE, MemoryArtifacts()))

        found = run(compressing(context, target, host, policy=FRESH, at=AT), Played())

        assert (found.stage != "too_large", found.after <= target) == (True, True)
        context = found.messages
