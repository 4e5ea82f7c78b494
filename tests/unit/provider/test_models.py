from __future__ import annotations

import pytest

from jp.conversation.entries import Usage
from jp.provider.base import ModelDetails
from jp.provider.models import canonical_name, cost, find_model, known_names, small_model


def test_a_snapshot_is_its_model() -> None:
    assert canonical_name("claude-haiku-4-5-20251001") == "claude-haiku-4-5"
    assert canonical_name("claude-haiku-4-5") == "claude-haiku-4-5"
    assert canonical_name("claude-2025100x") == "claude-2025100x"
    assert find_model("anthropic", "claude-haiku-4-5-20251001") == find_model("anthropic", "claude-haiku-4-5")


@pytest.mark.parametrize("name", known_names("anthropic"))
def test_every_row_of_the_table_is_complete(name: str) -> None:
    model = find_model("anthropic", name)
    details = model.details

    assert model.known
    assert details.context_window is not None
    assert details.max_output is not None
    assert details.max_output < details.context_window
    assert details.input_price is not None
    assert details.output_price is not None
    assert details.cache_read_price is not None
    assert details.cache_read_price < details.input_price < details.output_price


def test_a_newer_claude_is_expected_to_think_by_default() -> None:
    model = find_model("anthropic", "claude-opus-9")

    assert not model.known
    assert model.details == ModelDetails(provider="anthropic", id="claude-opus-9")
    assert model.abilities.thinking == "adaptive"
    assert model.abilities.thinks_by_default


def test_a_model_of_another_server_is_not() -> None:
    model = find_model("anthropic", "qwen3")

    assert not model.abilities.thinks_by_default
    assert model.abilities.sampling


def test_a_model_of_another_provider_is_not_in_the_table() -> None:
    assert not find_model("script", "claude-haiku-4-5").known


def test_each_class_of_tokens_has_its_price() -> None:
    details = find_model("anthropic", "claude-opus-4-5").details
    million = 1_000_000

    assert cost(Usage(input=million), details) == pytest.approx(5.0)
    assert cost(Usage(output=million, reasoning=million), details) == pytest.approx(25.0)
    assert cost(Usage(cache_read=million), details) == pytest.approx(0.5)
    assert cost(Usage(cache_write=million), details) == pytest.approx(6.25)
    assert cost(Usage(cache_write=million), details, long_cache=True) == pytest.approx(10.0)
    assert cost(Usage(), details) == 0.0


def test_a_long_prompt_costs_more_in_every_class() -> None:
    details = find_model("anthropic", "claude-haiku-5-5").details

    assert cost(Usage(input=100_000, output=1000), details) == pytest.approx(0.0105)
    assert cost(Usage(input=1, cache_read=100_000, output=1000), details) == pytest.approx(0.0075005)


def test_without_a_price_there_is_no_cost() -> None:
    details = ModelDetails(provider="p", id="m", input_price=1.0)

    assert cost(Usage(input=1_000_000), details) == 1.0
    assert cost(Usage(input=1, output=1), details) is None


@pytest.mark.parametrize(
    ("provider", "beside", "small"),
    [
        ("anthropic", "claude-opus-5-5", "claude-haiku-5-5"),
        ("anthropic", "claude-opus-9", "claude-haiku-5-5"),
        ("anthropic", "llama-on-another-server", None),
        ("script", "demo", None),
    ],
)
def test_a_provider_has_a_cheap_model_where_its_own_are_used(provider: str, beside: str, small: str | None) -> None:
    assert small_model(provider, beside) == small
    assert small is None or find_model(provider, small).known


def test_a_long_prompt_may_cost_another_factor_of_output() -> None:
    details = find_model("google", "gemini-3.1-pro-preview").details

    assert cost(Usage(input=200_000, output=1000), details) == pytest.approx(0.412)
    assert cost(Usage(input=200_001, output=1000), details) == pytest.approx(0.800004 + 0.018)


@pytest.mark.parametrize("name", known_names("google"))
def test_every_row_of_google_s_table_is_complete(name: str) -> None:
    model = find_model("google", name)
    details = model.details

    assert model.known
    assert details.context_window is not None
    assert details.max_output is not None
    assert details.max_output < details.context_window
    assert details.input_price is not None
    assert details.output_price is not None
    assert details.input_price < details.output_price or name.startswith("gemma-")


def test_what_nobody_has_confirmed_costs_an_unknown_amount() -> None:
    details = find_model("google", "gemini-4-neon").details

    assert cost(Usage(input=1_000_000), details) == pytest.approx(3.0)
    assert cost(Usage(input=1, cache_read=1), details) is None


@pytest.mark.parametrize(
    ("name", "thinking", "off"),
    [
        ("gemini-9-flash", "levels", "never"),
        ("gemini-3.9-flash", "levels", "never"),
        ("gemini-flash-latest", "levels", "never"),
        ("gemini-2.5-flash-preview", "budget", "disabled"),
        ("gemini-2.5-pro-preview", "budget", "never"),
        ("gemini-2.0-flash", "none", "disabled"),
        ("qwen3", "none", "disabled"),
    ],
)
def test_a_gemini_that_is_not_in_the_table_thinks_as_its_name_says(name: str, thinking: str, off: str) -> None:
    model = find_model("google", name)

    assert not model.known
    assert (model.abilities.thinking, model.abilities.thinking_off) == (thinking, off)


def test_a_server_that_speaks_as_google_has_no_small_gemini() -> None:
    assert small_model("google", "gemini-next") == "gemini-3.5-flash-lite"
    assert small_model("google", "qwen3") is None


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("us-gov.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("global.anthropic.claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
    ],
)
def test_a_model_is_known_by_what_a_cloud_calls_it(name: str, model: str) -> None:
    assert find_model("anthropic", name) == find_model("anthropic", model)


def test_a_new_model_is_as_able_in_a_cloud_as_at_home() -> None:
    there, here = find_model("anthropic", "us.anthropic.claude-next-9-v1:0"), find_model("anthropic", "claude-next-9")

    assert there.abilities == here.abilities
    assert there.details.id == "us.anthropic.claude-next-9-v1:0"
