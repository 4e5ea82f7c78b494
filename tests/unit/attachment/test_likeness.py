from __future__ import annotations

from jp.attachment.files import similarity
from jp.suggestions import MIN_SIMILARITY


def test_an_extension_makes_no_likeness() -> None:
    assert similarity("b.txt", "a.txt") == 0
    assert similarity("a.TXT", "A.md") == 1


def test_what_is_mistyped_is_alike() -> None:
    assert similarity("mian.rs", "main.rs") >= MIN_SIMILARITY
    assert similarity("nosuch.txt", "sp ace.txt") < MIN_SIMILARITY
    assert similarity(".env", ".envrc") >= MIN_SIMILARITY
