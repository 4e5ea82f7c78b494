from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from artifacts import MemoryArtifacts
from jp.context.budget import estimate_messages
from jp.context.compress import compressing, run
from jp.context.groups import index_groups
from jp.context.markers import Cutter
from jp.context.types import Message, Transcript
from summaries import AT, FRESH, NONCE, TERMS, Played, setup
from transcript_validator import complaints
from transcripts import transcripts


def systems(messages: Transcript) -> list[Message]:
    return [row for row in messages if row.role == "system"]


@given(transcripts(), st.integers(0, 120))
def test_the_chain_of_passes_holds_to_what_each_of_them_does(messages: Transcript, percent: int) -> None:
    store = MemoryArtifacts()
    host = setup(replace(TERMS, has_provider=False), Cutter(NONCE, store))
    target = estimate_messages(messages) * percent // 100

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
