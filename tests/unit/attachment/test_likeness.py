from __future__ import annotations

from jp.attachment.files.handler import alikeness
from jp.likeness import ALIKE


def test_an_extension_makes_no_likeness() -> None:
    assert alikeness("b.txt", "a.txt") == 0
    assert alikeness("a.TXT", "A.md") == 1


def test_what_is_mistyped_is_alike() -> None:
    assert alikeness("mian.rs", "main.rs") >= ALIKE
    assert alikeness("nosuch.txt", "sp ace.txt") < ALIKE
    assert alikeness(".env", ".envrc") >= ALIKE
