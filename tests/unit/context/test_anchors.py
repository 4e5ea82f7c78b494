from __future__ import annotations

import pytest

from artifacts import MemoryArtifacts
from jp.context.anchors import latest_real_user, latest_visible_assistant, preserve
from jp.context.markers import Cutter, marked_handles
from jp.context.types import Call, Message, Meta, ReasoningBlock, StoredBlock, TextBlock

NONCE = "5eed5eed"
CALLS = (Call(id="a", name="run", arguments="{}"),)
PICTURE = StoredBlock(sha256="ab", size=9, mime_type="image/png")
USER = Message(role="user", content="go")
ANSWER = Message(role="assistant", content="done")


@pytest.mark.parametrize(
    "message",
    [
        Message(role="user", content="what was before", meta=Meta(kind="summary")),
        Message(role="user", content="go on", meta=Meta(kind="synthetic")),
        Message(role="user", content="/help", meta=Meta(hidden=True)),
        Message(role="user", content=" \n"),
        Message(role="user"),
        Message(role="user", content=(TextBlock(text=""),)),
        Message(role="assistant", content="hello"),
        Message(role="system", content="hello"),
        Message(role="tool", content="hello"),
    ],
)
def test_what_the_person_did_not_say_is_no_request(message: Message) -> None:
    assert latest_real_user((message,)) is None
    assert latest_real_user((USER, message)) == 0


def test_the_latest_real_user_is_the_newest_thing_said_or_attached() -> None:
    assert latest_real_user((USER, USER, ANSWER)) == 1
    assert latest_real_user((USER, Message(role="user", content=(PICTURE,)))) == 1
    assert latest_real_user(()) is None


@pytest.mark.parametrize(
    "message",
    [
        Message(role="assistant", calls=CALLS),
        Message(role="assistant", content=(ReasoningBlock(text="hm"),)),
        Message(role="assistant", content="what was before", meta=Meta(kind="summary")),
        Message(role="assistant", content="understood", meta=Meta(kind="synthetic")),
        Message(role="assistant", content="done", meta=Meta(hidden=True)),
        Message(role="assistant", content=" ", calls=CALLS),
        USER,
    ],
)
def test_what_the_person_was_not_shown_is_no_answer(message: Message) -> None:
    assert latest_visible_assistant((message,)) is None
    assert latest_visible_assistant((ANSWER, message)) == 0


def test_the_latest_visible_assistant_may_call_tools_as_well() -> None:
    assert latest_visible_assistant((ANSWER, Message(role="assistant", content="I look.", calls=CALLS))) == 1


def test_an_anchor_before_the_tail_is_preserved_exactly_up_to_its_limit() -> None:
    messages = (Message(role="user", content="a" * 4_000), ANSWER)
    cutter = Cutter(NONCE, MemoryArtifacts())

    kept = preserve(messages, 0, cutter, between=(0, 1))

    assert kept is not None
    assert (kept.position, kept.text, kept.exact) == (0, "a" * 4_000, True)


def test_a_longer_anchor_keeps_its_beginning_its_end_and_a_handle() -> None:
    whole = "".join(map(str, range(5_000)))
    cutter = Cutter(NONCE, MemoryArtifacts())

    kept = preserve((Message(role="user", content=whole), ANSWER), 0, cutter, between=(0, 1))

    assert kept is not None
    assert len(kept.text) == 4_000
    assert not kept.exact
    assert [cutter.artifacts.recall(handle) for handle in marked_handles(kept.text, NONCE)] == [whole]


def test_the_texts_of_an_anchor_are_preserved_together_and_its_pictures_are_not() -> None:
    content = (TextBlock(text="look"), PICTURE, TextBlock(text=""), TextBlock(text="here"))

    kept = preserve((Message(role="user", content=content),), 0, Cutter(NONCE, MemoryArtifacts()), between=(0, 1))

    assert kept is not None
    assert kept.text == "look\n\nhere"


@pytest.mark.parametrize("position", [None, 0, 2], ids=["there is none", "in the head", "in the tail"])
def test_the_first_compaction_does_not_duplicate_a_request_that_stays(position: int | None) -> None:
    assert preserve((USER, ANSWER, USER), position, Cutter(NONCE, MemoryArtifacts()), between=(1, 2)) is None
