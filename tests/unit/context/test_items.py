from __future__ import annotations

from jp.context.budget import Item, estimate_messages, items_of, largest_items
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

PICTURE = StoredBlock(sha256="ab" * 32, size=900, mime_type="image/png")
DIGESTED = Meta(digested=Digested(sha256="cd" * 32))
MESSAGES: Transcript = (
    Message(role="system", content="Be brief."),
    Message(role="user", content="What happened before.", meta=Meta(kind="summary")),
    Message(
        role="user",
        content=(StoredBlock(sha256="ab" * 32, size=900, chars=900, uri="file:///a"), PICTURE, TextBlock(text="Why?")),
    ),
    Message(
        role="assistant",
        content=(ReasoningBlock(text="hm"), TextBlock(text="I look.")),
        calls=(Call(id="1", name="run", arguments="{}"), Call(id="2", name="read", arguments='{"path":"a"}')),
    ),
    Message(role="tool", call_id="2", content="content " * 90),
    Message(role="tool", call_id="1", content=(TextBlock(text="ok"), PICTURE)),
    Message(role="tool", call_id="1", content="[stripped]", meta=DIGESTED),
    Message(role="user", content="Go on.", meta=Meta(kind="synthetic")),
    Message(role="assistant"),
    Message(role="tool", call_id="9", content="stray"),
)


def test_every_piece_has_its_kind_and_the_tool_that_it_is_of() -> None:
    assert [(item.kind, item.tool, item.message, item.block, item.call) for item in items_of(MESSAGES)] == [
        ("system", "", 0, 0, None),
        ("summaries", "", 1, 0, None),
        ("attachments", "", 2, 0, None),
        ("images", "", 2, 1, None),
        ("user", "", 2, 2, None),
        ("reasoning", "", 3, 0, None),
        ("assistant", "", 3, 1, None),
        ("arguments", "run", 3, None, 0),
        ("arguments", "read", 3, None, 1),
        ("results", "read", 4, 0, None),
        ("results", "run", 5, 0, None),
        ("images", "run", 5, 1, None),
        ("digests", "run", 6, 0, None),
        ("synthetic", "", 7, 0, None),
        ("assistant", "", 8, None, None),
        ("results", "", 9, 0, None),
    ]


def test_the_items_have_all_tokens_of_the_messages() -> None:
    assert sum(item.tokens for item in items_of(MESSAGES)) == estimate_messages(MESSAGES)


def test_the_largest_come_first_and_earlier_ones_among_equals() -> None:
    items = [Item(kind="user", tokens=tokens, size=0, message=at) for at, tokens in enumerate((1, 3, 2, 3))]

    assert [item.message for item in largest_items(items, 3)] == [1, 3, 2]
    assert [item.kind for item in largest_items(items_of(MESSAGES), 2)] == ["images", "images"]
