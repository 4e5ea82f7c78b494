from __future__ import annotations

from msgspec.structs import replace

from artifacts import MemoryArtifacts
from jp.context.budget import estimate_messages
from jp.context.groups import index_groups
from jp.context.markers import Cutter, checksum_of, marked_handles
from jp.context.tail import Relief, bounding, relieve_pressure
from jp.context.types import Call, Digested, Message, Meta, StoredBlock, TextBlock, Transcript, texts_of

NONCE = "5eed5eed"
BODY = "0123456789" * 1_000


def round_of(*bodies: str, pending: bool = False) -> Transcript:
    calls = tuple(Call(id=f"c{at}", name="run", arguments="{}") for at in range(len(bodies)))
    results = (Message(role="tool", call_id=f"c{at}", content=body) for at, body in enumerate(bodies))
    return (Message(role="assistant", calls=calls, meta=Meta(pending=pending)), *results)


MESSAGES = (*round_of(BODY), *round_of(BODY, BODY), Message(role="user", content=BODY), *round_of(BODY))


def relieve(messages: Transcript, *, ceiling: int, tail_start: int = 0) -> Relief:
    demote = bounding(Cutter(NONCE, MemoryArtifacts()))
    return relieve_pressure(messages, index_groups(messages), demote, tail_start=tail_start, ceiling=ceiling)


def test_the_oldest_results_give_way_first_and_those_of_the_newest_round_last() -> None:
    whole = estimate_messages(MESSAGES)

    assert relieve(MESSAGES, ceiling=whole).messages is MESSAGES
    assert relieve(MESSAGES, ceiling=whole - 1).demoted == (1,)
    assert relieve(MESSAGES, ceiling=whole - 3_000).demoted == (1, 3)
    assert relieve(MESSAGES, ceiling=0).demoted == (1, 3, 4, 7)
    assert relieve(MESSAGES, ceiling=0, tail_start=2).demoted == (3, 4, 7)


def test_it_says_what_the_tail_costs_afterwards_and_whether_that_is_enough() -> None:
    enough = relieve(MESSAGES, ceiling=9_000)
    never = relieve(MESSAGES, ceiling=2_000)

    assert enough.tokens == estimate_messages(enough.messages) <= 9_000
    assert enough.relieved
    assert never.tokens == estimate_messages(never.messages) > 2_000
    assert not never.relieved
    assert never.messages[5] is MESSAGES[5]


def test_results_of_pending_calls_and_what_is_verbatim_or_digested_stay() -> None:
    digested = Meta(digested=Digested(sha256="ab", original_bytes=9, rule="read"))
    messages = (
        *(replace(row, meta=Meta(verbatim=True)) for row in round_of(BODY)),
        *(replace(row, meta=digested) for row in round_of(BODY)),
        *round_of(BODY, pending=True),
    )

    assert relieve(messages, ceiling=0).messages is messages


def test_a_body_that_gives_way_keeps_both_ends_and_a_handle_and_is_marked() -> None:
    cutter = Cutter(NONCE, MemoryArtifacts())
    message = Message(role="tool", call_id="c", content=BODY)

    shorter = bounding(cutter, 500)(message)

    [text] = texts_of(shorter)
    assert len(text) == 500
    assert [cutter.artifacts.recall(handle) for handle in marked_handles(text, NONCE)] == [BODY]
    assert shorter.meta.digested == Digested(sha256=checksum_of(BODY), original_bytes=10_000, rule="bounded")


def test_the_blocks_of_a_body_are_bounded_one_by_one() -> None:
    picture = StoredBlock(sha256="ab", size=9, mime_type="image/png")
    message = Message(role="tool", call_id="c", content=(TextBlock(text="short"), picture, TextBlock(text=BODY)))

    shorter = bounding(Cutter(NONCE, MemoryArtifacts()), 500)(message)

    assert shorter.content[:2] == message.content[:2]
    assert [len(text) for text in texts_of(shorter)] == [5, 500]
    assert bounding(Cutter(NONCE, MemoryArtifacts()), 500)(shorter) is shorter
