from __future__ import annotations

import msgspec

from jp.context.cache_hints import Carrier, Limits, cache_hints
from jp.context.types import Call, Message, Meta, ReasoningBlock, StoredBlock, TextBlock, Transcript

SYSTEM = Message(role="system", content="Be brief. " * 100)
ASKED = Message(role="user", content="What is it?")
CALLS = Message(
    role="assistant",
    content=(ReasoningBlock(text="hm", signature="s"), TextBlock(text="I look.")),
    calls=(Call(id="c", name="run", arguments="{}"),),
)
RESULT = Message(role="tool", call_id="c", content="found")


def placed(messages: Transcript, **more: object) -> list[tuple[str, int | None, int, str]]:
    found = cache_hints(messages, **more)  # pyright: ignore[reportArgumentType] - options as they are
    return [(hint.carrier.section, hint.carrier.message, hint.carrier.block, hint.reason) for hint in found]


def test_the_blocks_of_a_transcript_are_marked() -> None:
    assert placed((SYSTEM, ASKED, CALLS, RESULT), tool_tokens=(50, 60)) == [
        ("tools", None, 1, "tools"),
        ("system", 0, 0, "static_prefix"),
        ("messages", 1, 0, "previous_request"),
        ("messages", 3, 0, "newest"),
    ]


def test_system_messages_are_read_first_wherever_they_stand() -> None:
    assert placed((ASKED, SYSTEM)) == [("system", 1, 0, "static_prefix"), ("messages", 0, 0, "newest")]


def test_the_first_message_is_no_system_prompt_because_it_is_the_first() -> None:
    assert placed((ASKED,)) == [("messages", 0, 0, "newest")]


def test_thinking_what_is_empty_and_what_is_pending_carry_nothing() -> None:
    blank = Message(role="user", content=(TextBlock(text=" \n"), StoredBlock(sha256="ab", size=0)))
    pending = msgspec.structs.replace(CALLS, meta=Meta(pending=True))

    assert placed((ASKED, blank, msgspec.structs.replace(CALLS, calls=(), content=CALLS.content[:1]))) == [
        ("messages", 0, 0, "newest")
    ]
    assert placed((ASKED, pending, RESULT)) == [("messages", 0, 0, "newest")]


def test_a_call_and_an_attachment_can_carry() -> None:
    attached = Message(
        role="user", content=(StoredBlock(sha256="ab", size=9, chars=9, uri="file:///a"), TextBlock(text="?"))
    )

    assert placed((attached,)) == [("messages", 0, 0, "attachment"), ("messages", 0, 1, "newest")]
    assert placed((ASKED, CALLS)) == [("messages", 0, 0, "previous_request"), ("messages", 1, 2, "newest")]


def test_what_the_next_request_will_not_have_is_not_marked() -> None:
    nudge = Message(role="user", content="Call a tool.", meta=Meta(kind="synthetic"))

    assert placed((ASKED, nudge), volatile_from=1) == [("messages", 0, 0, "newest")]


def test_a_prefix_below_the_minimum_is_not_marked() -> None:
    assert placed((SYSTEM, ASKED), limits=Limits(minimum=1024)) == []


def test_cache_hints_are_reported_separately_from_compression_steps() -> None:
    messages = (SYSTEM, ASKED, CALLS, RESULT)
    before = msgspec.json.encode(messages)

    hints = cache_hints(messages)

    assert msgspec.json.encode(messages) == before
    assert hints[0].carrier == Carrier(section="system", block=0, message=0)
