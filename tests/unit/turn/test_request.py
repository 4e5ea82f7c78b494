from __future__ import annotations

from typing import TypeVar

import pytest

from jp.conversation.resource import Carrier, Payload, Resource, checksum
from jp.turn.request import ContentCache, InlineLoader

C = TypeVar("C", bound=Carrier)

TEXT = "kept elsewhere"
STORED = Payload(sha256=checksum(Payload(text=TEXT)), size=len(TEXT), chars=len(TEXT), lines=1)


class BlobStore:
    """Has one text, and counts how often it is read."""

    def __init__(self) -> None:
        self.count = 0

    def load(self, carrier: C, /) -> C:
        self.count += 1
        loaded = Payload(text=TEXT)
        assert isinstance(loaded, type(carrier))
        return loaded


def test_stored_content_is_read_once() -> None:
    store = BlobStore()
    cache = ContentCache(store)

    assert [cache.load(STORED).text for _ in range(3)] == [TEXT] * 3
    assert store.count == 1


@pytest.mark.parametrize("carrier", [Payload(text="here"), Resource(uri="x", text="here"), STORED])
def test_where_nothing_is_stored_elsewhere_content_is_taken_as_it_is(carrier: Carrier) -> None:
    assert InlineLoader().load(carrier) is carrier


def test_content_that_is_inline_is_not_looked_for_in_the_store() -> None:
    store = BlobStore()

    assert ContentCache(store).load(Payload(text="here")) == Payload(text="here")
    assert store.count == 0
