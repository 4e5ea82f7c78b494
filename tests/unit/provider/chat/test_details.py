from __future__ import annotations

import pytest

from jp.conversation.entries import JsonObject
from jp.provider.chat.response import Details, text_of


def text(piece: str | None = None, index: int | None = 0, **more: object) -> JsonObject:
    said = {} if piece is None else {"text": piece}
    return {"type": "reasoning.text", **said, **({} if index is None else {"index": index}), **more}


SEALED: JsonObject = {"type": "reasoning.encrypted", "data": "x", "index": 0}


@pytest.mark.parametrize(
    ("pieces", "items"),
    [
        ([text("a"), text("b")], [text("ab")]),
        ([text("a", 0), text("b", 1), text("c", 0)], [text("ac", 0), text("b", 1)]),
        ([text("a", None), text("b", None)], [text("ab", None)]),
        ([text("a", None), SEALED, text("b", None)], [text("a", None), SEALED, text("b", None)]),
        ([text("", signature=""), text("a"), text(signature="s")], [text("a", signature="s")]),
        ([text("a", signature="s"), text("b", signature="")], [text("ab", signature="s")]),
        ([text("a", format=None), text("b", format="f")], [text("ab", format="f")]),
        ([text("a", format="f"), text("b", format="g")], [text("ab", format="f")]),
        ([text("a", id="1"), text("b", id="2")], [text("a", id="1"), text("b", id="2")]),
        ([text("a", id="1"), text("b")], [text("ab", id="1")]),
        ([text("a"), text(None)], [text("a")]),
        ([text(None), text("a")], [text("a")]),
        ([SEALED, SEALED], [SEALED, SEALED]),
        ([{"type": "reasoning.summary", "summary": "a"}] * 2, [{"type": "reasoning.summary", "summary": "aa"}]),
        ([{"type": "new", "x": 1}, {}], [{"type": "new", "x": 1}, {}]),
    ],
)
def test_pieces_of_an_item_are_joined_and_others_stay_apart(pieces: list[JsonObject], items: list[JsonObject]) -> None:
    details = Details()
    for piece in pieces:
        details.add([piece])

    assert [sorted(item.items()) for item in details.items] == [sorted(item.items()) for item in items]


def test_what_came_is_not_changed() -> None:
    first, details = text("a"), Details()
    details.add([first, text("b")])

    assert first == text("a")


def test_the_words_are_those_of_texts_and_summaries() -> None:
    pieces: list[JsonObject] = [
        text("a"),
        SEALED,
        {"type": "reasoning.summary", "summary": "b"},
        {"type": 3},
        text(None),
    ]

    assert text_of(pieces) == "ab"
