from __future__ import annotations

import msgspec
import pytest

from jp.context.types import (
    Call,
    Content,
    Digested,
    Facts,
    Message,
    Meta,
    ReasoningBlock,
    StoredBlock,
    TextBlock,
    Transcript,
    has_content,
    texts_of,
)

PICTURE = StoredBlock(sha256="ab" * 32, size=9, mime_type="image/png")


@pytest.mark.parametrize(
    ("content", "texts", "says_something"),
    [
        ("hello", ("hello",), True),
        (" \n", (" \n",), False),
        ((TextBlock(text="a"), PICTURE, TextBlock(text="")), ("a", ""), True),
        ((PICTURE,), (), True),
        ((ReasoningBlock(text="hm"), TextBlock(text=" ")), (" ",), False),
        ((), (), False),
    ],
    ids=["text", "blank", "blocks", "a picture", "reasoning", "no blocks"],
)
def test_what_a_message_says(content: Content, texts: tuple[str, ...], *, says_something: bool) -> None:
    message = Message(role="user", content=content)

    assert texts_of(message) == texts
    assert has_content(message) is says_something


def test_a_transcript_survives_json() -> None:
    transcript: Transcript = (
        Message(role="user", content=(TextBlock(text="look", uri="file:a.py"), PICTURE), origin="e1"),
        Message(role="assistant", content="", calls=(Call(id="c", name="run", arguments="{", origin="e2"),)),
        Message(
            role="tool",
            call_id="c",
            is_error=True,
            meta=Meta(digested=Digested(sha256="ab"), facts=Facts(exit_code=2)),
        ),
    )

    assert msgspec.json.decode(msgspec.json.encode(transcript), type=Transcript) == transcript
