from __future__ import annotations

import pytest

from jp.provider.models import cache_facts


@pytest.mark.parametrize(
    ("kind", "name", "minimum", "is_certain"),
    [
        ("anthropic", "claude-sonnet-5-5", 1024, True),
        ("anthropic", "claude-haiku-4-5-20251001", 4096, True),
        ("openai", "gpt-5.6", 1024, True),
        ("ollama", "qwen", 1024, False),
        ("openai-compatible", "m", 1024, False),
    ],
)
def test_a_prompt_has_to_be_long_enough(kind: str, name: str, minimum: int, *, is_certain: bool) -> None:
    facts = cache_facts(kind, name)

    assert (facts.minimum, facts.is_certain) == (minimum, is_certain)


def test_a_prompt_is_kept_as_long_as_the_policy_asks_for() -> None:
    facts = cache_facts("anthropic", "m")

    assert (facts.lifetime("short"), facts.lifetime("long")) == (300, 3600)


@pytest.mark.parametrize(
    ("kind", "name"), [("openai", "gpt-6.1-terra"), ("openai", "gpt-5.6"), ("openrouter", "openai/gpt-6.2-sol")]
)
def test_openai_keeps_a_prompt_for_half_an_hour_whatever_is_asked_for(kind: str, name: str) -> None:
    facts = cache_facts(kind, name)

    assert (facts.lifetime("short"), facts.lifetime("long")) == (1800, 1800)
