from __future__ import annotations

import pytest

from jp.attachment.base import Delivery, ResourceCopy, assumed_declarations, attributed_uris, history_of
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Header,
    Original,
    Revert,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import Resource, ResourceBlock, TextBlock


def resource(uri: str, text: str = "") -> Resource:
    return Resource(uri=uri, text=text)


def test_the_newest_delivery_and_the_newest_copy_count() -> None:
    entries: list[AnyEntry] = [
        TurnStart(id="t0"),
        ChatRequest(content="", attachments=("file:a", "file:b", "!file:c"), resources=(resource("a", "1"),)),
        ChatResponse(message="seen"),
        TurnStart(id="t1"),
        ChatRequest(content="", attachments=("file:a",), resources=(resource("a", "2"),)),
        ToolCallResponse(
            request="r", content=(TextBlock(text="x"), ResourceBlock(resource=resource("b", "3"))), is_error=False
        ),
        TurnStart(id="t2"),
        ChatRequest(content="", attachments=("file:d",), resources=(resource("a", "4"),)),
        Revert(id="r2", entries=("t2",)),
    ]

    history = history_of(entries)

    first = Delivery(turn=0, declarations=("file:a", "file:b", "!file:c"), uris=("a",))
    assert history.deliveries == {
        "file:a": Delivery(turn=1, declarations=("file:a",), uris=("a",)),
        "file:b": first,
    }
    assert first.excludes == ("file:c",)
    assert history.copies == {
        "a": ResourceCopy(turn=1, resource=resource("a", "2")),
        "b": ResourceCopy(turn=1, resource=resource("b", "3")),
    }


def test_what_came_with_an_original_counts_as_delivered_in_no_turn_until_it_is_read() -> None:
    original = Original(sha256="", size=0, attachments=("file:a", "cmd:date"))
    header = Header(format=1, created_at="", nonce="", original=original)

    history = history_of([header, TurnStart(id="t0"), ChatRequest(content="", attachments=("file:a",))])

    assert history.deliveries == {
        "file:a": Delivery(turn=0, declarations=("file:a",), uris=()),
        "cmd:date": Delivery(turn=None, declarations=("file:a", "cmd:date"), uris=()),
    }
    assert assumed_declarations([header]) == ("file:a", "cmd:date")
    assert assumed_declarations([Header(format=1, created_at="", nonce="")]) == assumed_declarations([]) == ()


PULL = "gh:o/n/pull/1"


@pytest.mark.parametrize(
    ("declaration", "declarations", "uris", "expected"),
    [
        ("jp:1", "jp:1 jp:2", "jp:1 jp:2", "jp:1"),
        ("jp:1", "jp:1 !jp:2", "", ""),
        (
            PULL,
            f"{PULL} gh:o/n/pull/12",
            f"{PULL}/diff {PULL}/reviews gh:o/n/pull/12/diff",
            f"{PULL}/diff {PULL}/reviews",
        ),
        (f"{PULL}?x=1", f"{PULL}?x=1 {PULL}", f"{PULL}/diff?x=1 {PULL}/diff", f"{PULL}/diff?x=1"),
        (PULL, f"{PULL} {PULL}/diff", f"{PULL}/diff {PULL}/reviews", f"{PULL}/reviews"),
        ("cmd://a?arg=b&description=c", "cmd://a?arg=b&description=c", "cmd://a?arg=b", "cmd://a?arg=b"),
        ("cmd://a?description=c", "cmd://a?description=c cmd://a?arg=b", "cmd://a cmd://a?arg=b", "cmd://a"),
        ("cmd://a?arg=b", "cmd://a?description=c cmd://a?arg=b", "cmd://a cmd://a?arg=b", "cmd://a?arg=b"),
        ("wiki:Page", "wiki:Page jp:1", "wiki:1 wiki:2 jp:1", "wiki:1 wiki:2"),
        ("wiki:Page", "wiki:Page wiki:Other", "wiki:Other#1 wiki:5", "wiki:5"),
        ("book:x#1", "book:x#1", "book:x#1", "book:x#1"),
    ],
)
def test_what_came_of_a_declaration_is_told_by_its_uris(
    declaration: str, declarations: str, uris: str, expected: str
) -> None:
    delivery = Delivery(turn=0, declarations=tuple(declarations.split()), uris=tuple(uris.split()))

    assert attributed_uris(declaration, delivery) == tuple(expected.split())
