from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.context.estimate import estimate_tokens, estimate_tokens_of_bytes


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("four", 1), ("a" * 4000, 1000), ("漢字" * 100, 240), ("привет" * 10, 48), ("a\ud800b", 1)],
    ids=["nothing", "a word", "ASCII", "CJK", "Cyrillic", "a lone surrogate"],
)
def test_what_texts_are_taken_for(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(max_size=50), st.text(max_size=50))
def test_more_text_is_never_fewer_tokens(one: str, other: str) -> None:
    assert estimate_tokens(one + other) >= estimate_tokens(one)


def test_bytes_count_as_ascii() -> None:
    assert estimate_tokens_of_bytes(400) == 100
