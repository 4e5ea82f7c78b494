from __future__ import annotations

import pytest

from jp.suggestions import closest_names

PROVIDERS = ("anthropic", "openai", "ollama", "script")


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("antropic", ("anthropic",)),
        ("OpenAI", ("openai",)),
        ("llama", ("ollama",)),
        ("nope", ()),
        ("azure", ()),
        ("", ()),
    ],
)
def test_a_name_is_proposed_only_where_one_is_near(word: str, near: tuple[str, ...]) -> None:
    assert closest_names(word, PROVIDERS) == near


def test_the_nearest_names_come_first() -> None:
    known = ("claude-haiku-4-5", "claude-opus-4-5", "claude-opus-5-5")

    assert closest_names("claude-opus-5.5", known, most=2) == ("claude-opus-5-5", "claude-opus-4-5")
    assert closest_names("claude-opus-5.5", known, most=3, alike=0.9) == ("claude-opus-5-5",)
