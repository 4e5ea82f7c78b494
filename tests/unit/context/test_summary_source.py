from __future__ import annotations

import pytest

import transcripts
from artifacts import MemoryArtifacts
from jp.context.estimate import estimate_tokens
from jp.context.markers import checksum_of
from jp.context.summary_source import original_text, parts_of, read_source
from jp.context.types import (
    Call,
    Digested,
    Message,
    Meta,
    ReasoningBlock,
    StoredBlock,
    TextBlock,
    Transcript,
)
from summaries import SYSTEM, answer, ran, user, work

NUDGE = Message(role="user", content="go on", meta=Meta(kind="synthetic"))


def shown(messages: Transcript) -> str:
    return parts_of(read_source(messages, MemoryArtifacts()), 10**6, 1)[0]


def test_everything_is_shown_but_reasoning() -> None:
    thought = Message(role="assistant", content=(ReasoningBlock(text="hm"), TextBlock(text="I look.")))
    failed = Message(role="tool", call_id="?", content="no", is_error=True)
    text = shown((SYSTEM, user("mend it"), thought, *ran("make", "ok", exit_code=2), failed, NUDGE))

    assert (
        text
        == """\
[0] host:
You help.

[1] person:
mend it

[2] model:
I look.

[3] call of run:
{"command": "make"}

[4] result of run (exit 2):
ok

[5] result of a tool (error):
no

[6] host:
go on
"""
    )


def test_secrets_are_not_shown_in_what_is_said_called_or_got() -> None:
    call = Message(role="assistant", calls=(Call(id="a", name="run", arguments=f'{{"env": "{transcripts.SECRET}"}}'),))
    text = shown((user(f"use {transcripts.SECRET}"), call, Message(role="tool", content=transcripts.SECRET)))

    assert transcripts.SECRET not in text
    assert text.count("[redacted:") == 3


def test_the_summarizer_reads_originals_and_not_digests() -> None:
    store = MemoryArtifacts()
    store.keep("all of it")
    digested = Digested(sha256=checksum_of("all of it"))
    lost = Digested(sha256=checksum_of("gone"))

    assert original_text(Message(role="tool", content="a part", meta=Meta(digested=digested)), store) == "all of it"
    assert original_text(Message(role="tool", content="a part", meta=Meta(digested=lost)), store) == "a part"


def test_stored_content_is_read_where_it_is_text_and_at_hand() -> None:
    store = MemoryArtifacts()
    store.keep("stored")
    text = StoredBlock(sha256=checksum_of("stored"), size=6, chars=6)
    gone = StoredBlock(sha256="ab" * 32, size=9, chars=9)
    picture = StoredBlock(sha256="cd" * 32, size=5_000, mime_type="image/png")

    found = original_text(Message(role="user", content=(text, gone, picture)), store)

    assert found == "stored\n\n[content, 9 bytes, handle abababab]\n\n[image/png, 5000 bytes, handle cdcdcdcd]"


def test_long_pieces_keep_their_beginning_and_end() -> None:
    text = shown((user("a" * 5_000 + "b" * 5_000), *ran("x" * 3_000, "c" * 9_000)))

    assert "a" * 4_500 + " [4000 characters omitted] " + "b" * 1_500 in text
    assert "characters omitted" in text.split("call of run")[1]
    assert "[3000 characters omitted]" in text.split("result of run")[1]


@pytest.mark.parametrize(("room", "most", "count"), [(10**6, 2, 1), (12_000, 2, 2), (3_000, 2, 2), (1_500, 2, 2)])
def test_a_record_is_as_few_parts_as_fit_and_no_more_than_wanted(room: int, most: int, count: int) -> None:
    source = read_source(tuple(work(40)), MemoryArtifacts())

    parts = parts_of(source, room, most)

    assert len(parts) == count
    assert all(estimate_tokens(part) <= room for part in parts)
    assert "step 0" in parts[0]
    assert "step 39 is done" in parts[-1]


def test_what_is_too_much_even_in_short_loses_its_middle_with_a_note() -> None:
    source = read_source(
        tuple(row for number in range(900) for row in (user(f"ask {number}"), answer("yes"))), MemoryArtifacts()
    )

    first, last = parts_of(source, 1_000, 2)

    assert "messages omitted here]" in first + last
    assert "ask 0\n" in first
    assert "ask 899\n" in last
    assert max(estimate_tokens(first), estimate_tokens(last)) <= 1_000


def test_nothing_makes_no_part() -> None:
    assert parts_of(read_source((), MemoryArtifacts()), 100, 2) == ()
    assert not read_source((NUDGE,), MemoryArtifacts()).spoke
    assert read_source((user("hi"),), MemoryArtifacts()).spoke
