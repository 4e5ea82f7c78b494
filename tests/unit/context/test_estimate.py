from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.context.estimate import estimate_tokens, estimate_tokens_of_bytes


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("four", 1),
        ("a" * 4000, 1000),
        ("漢字" * 100, 200),
        ("привет" * 10, 27),
        ("γλώσσα" * 10, 44),
        ("नमस्ते" * 10, 51),
        ("é" * 10, 5),
        ("\U0001f469" * 10, 24),
        ("code and 漢字" * 100, 425),
        ("a\ud800b", 2),
    ],
    ids=[
        "nothing",
        "a word",
        "ASCII",
        "CJK",
        "Cyrillic",
        "Greek",
        "Hindi",
        "accents",
        "emoji",
        "mixed",
        "a lone surrogate",
    ],
)
def test_what_texts_are_taken_for(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(max_size=50), st.text(max_size=50))
def test_more_text_is_never_fewer_tokens(one: str, other: str) -> None:
    assert estimate_tokens(one + other) >= estimate_tokens(one)


@given(st.text(max_size=200))
def test_a_text_is_never_far_cheaper_than_its_bytes(text: str) -> None:
    assert estimate_tokens(text) >= round(len(text.encode("utf-8", "surrogatepass")) / 5) - 1


def test_bytes_count_as_ascii() -> None:
    assert estimate_tokens_of_bytes(400) == 100
    assert estimate_tokens_of_bytes(400, 400) == 100


def test_bytes_of_fewer_characters_count_as_other_scripts() -> None:
    assert estimate_tokens_of_bytes(300, 100) == estimate_tokens("漢" * 100)
    assert estimate_tokens_of_bytes(50, 100) == 25
