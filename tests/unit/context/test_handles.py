from __future__ import annotations

import pytest

from artifacts import MemoryArtifacts
from jp.context.markers import assign_handles, checksum_of, look_up

A = "12345678" + "a" * 56
B = "12345678" + "b" * 56
C = "12345678" + "bb" + "c" * 54


def test_a_handle_is_eight_digits_unless_an_earlier_content_begins_alike() -> None:
    assert assign_handles([A, "f" * 64]) == {"12345678": A, "ffffffff": "f" * 64}
    assert assign_handles([A, B, C, B]) == {"12345678": A, "12345678b": B, "12345678bbc": C}


def test_what_comes_later_changes_no_handle() -> None:
    before = assign_handles([A, B])

    assert before.items() <= assign_handles([A, B, C]).items()
    assert look_up("12345678", assign_handles([A, B, C])) == A


@pytest.mark.parametrize(
    ("handle", "found"),
    [
        ("12345678", A),
        ("12345678B", B),
        ("12345678bb", None),
        ("12345678bbb", B),
        ("12345678aaaa", A),
        (A, A),
        ("ffffffff", None),
        ("1234567", None),
        ("", None),
    ],
    ids=["assigned", "capitals", "of several", "of one", "longer", "all of it", "unknown", "too short", "empty"],
)
def test_what_a_handle_names(handle: str, found: str | None) -> None:
    assert look_up(handle, assign_handles([A, B, C])) == found


def test_text_is_known_by_its_utf8_and_half_a_surrogate_pair_has_a_checksum_too() -> None:
    assert checksum_of("ü") == checksum_of(b"\xc3\xbc")
    assert checksum_of("\ud800") == checksum_of(b"\xed\xa0\x80")


def test_what_a_store_keeps_comes_back_exactly() -> None:
    store = MemoryArtifacts()
    texts = ["", "a\r\n\ud800", "漢字"]

    handles = [store.keep(text) for text in texts]

    assert [store.recall(handle) for handle in handles] == texts
    assert [store.handle(checksum_of(text)) for text in texts] == handles
    assert store.recall("ffffffff") is None
