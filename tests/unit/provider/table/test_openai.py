"""What is known of OpenAI's models, and what is expected of others."""

from __future__ import annotations

import pytest

from jp.conversation.entries import Usage
from jp.provider.models import cost, find_model, known_names, model_table, small_model
from jp.provider.openai.request import prompt_cache


@pytest.mark.parametrize("name", known_names("openai"))
def test_every_row_of_the_table_is_complete(name: str) -> None:
    details, abilities = find_model("openai", name).details, find_model("openai", name).abilities

    assert details.context_window is not None
    assert details.max_output is not None
    assert details.max_output <= details.context_window
    assert (details.input_price is None) is not model_table("openai").is_own(name)
    assert (abilities.thinking == "levels") is bool(abilities.levels)
    assert (abilities.thinking_off == "never") is not ("none" in abilities.levels or abilities.thinking == "none")


@pytest.mark.parametrize("name", ["gpt-6.2-astra", "gpt-6.2-sol", "gpt-6.1-sol", "gpt-6-astra"])
def test_models_that_refuse_the_effort_none_are_never_sent_it(name: str) -> None:
    found = find_model("openai", name)

    assert found.known
    assert "none" not in found.abilities.levels
    assert found.abilities.thinking_off == "never"


def test_long_prompts_cost_more_and_their_answers_less_more() -> None:
    details = find_model("openai", "gpt-6.1-sol").details
    short = Usage(input=100_000, output=10_000, cache_read=100_000, cache_write=72_000)
    long = Usage(input=100_001, output=10_000, cache_read=100_000, cache_write=72_000)

    assert cost(short, details) == pytest.approx(0.2 + 0.1 + 0.01 + 0.18)
    assert cost(long, details) == pytest.approx(2 * (0.200002 + 0.01 + 0.18) + 1.5 * 0.1)
    assert cost(short, details, long_cache=True) == cost(short, details)


def test_what_is_read_from_the_cache_of_a_model_without_a_price_for_it_is_unknown() -> None:
    details = find_model("openai", "gpt-5.5-pro").details

    assert cost(Usage(input=1, output=1), details) is not None
    assert cost(Usage(input=1, output=1, cache_read=1), details) is None


@pytest.mark.parametrize(
    ("name", "own", "cache"),
    [
        ("gpt-6.1-sol", True, "explicit"),
        ("gpt-5.6-luna", True, "explicit"),
        ("gpt-10", True, "explicit"),
        ("gpt-5.5", True, "extended"),
        ("gpt-5-mini", True, "automatic"),
        ("o3", True, "automatic"),
        ("chatgpt-x", True, "automatic"),
        ("gpt-oss-120b", False, "automatic"),
        ("qwen3", False, "automatic"),
    ],
)
def test_names_tell_whose_a_model_is_and_how_its_cache_is_asked_for(name: str, *, own: bool, cache: str) -> None:
    assert (model_table("openai").is_own(name), prompt_cache(name)) == (own, cache)


def test_the_small_model_is_there_for_who_uses_openai_itself() -> None:
    assert small_model("openai", "gpt-6-astra") == "gpt-6-luna"
    assert small_model("openai", "qwen3") is None
