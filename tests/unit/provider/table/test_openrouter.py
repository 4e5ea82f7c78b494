from __future__ import annotations

import pytest

from jp.provider.base import Model
from jp.provider.models import find_model, known_names, small_model


def found(name: str) -> Model:
    return find_model("openrouter", name)


@pytest.mark.parametrize(
    ("name", "vendor", "own"),
    [
        ("anthropic/claude-haiku-4.5", "anthropic", "claude-haiku-4-5"),
        ("anthropic/claude-opus-5", "anthropic", "claude-opus-5"),
        ("openai/gpt-5-mini", "openai", "gpt-5-mini"),
        ("openai/gpt-5-mini-2025-08-07", "openai", "gpt-5-mini"),
        ("google/gemini-2.5-pro", "google", "gemini-2.5-pro"),
    ],
)
def test_a_model_costs_and_can_what_it_does_at_its_vendor(name: str, vendor: str, own: str) -> None:
    here, there = found(name), find_model(vendor, own)

    assert here.known
    assert here.details.provider == "openrouter"
    assert (here.details.input_price, here.details.output_price) == (
        there.details.input_price,
        there.details.output_price,
    )
    assert here.details.context_window == there.details.context_window
    assert here.abilities.levels == there.abilities.levels


@pytest.mark.parametrize("name", ["openai/gpt-oss-120b", "google/gemma-4-31b-it", "z-ai/glm-5"])
def test_what_open_models_cost_is_unknown(name: str) -> None:
    assert not found(name).known
    assert found(name).details.input_price is None


def test_every_model_reads_documents_and_streams() -> None:
    for name in (*known_names("openrouter"), "acme/one", "openai/gpt-99"):
        assert found(name).abilities.documents
        assert found(name).abilities.streams


def test_a_variant_can_what_its_model_can() -> None:
    assert found("anthropic/claude-haiku-4.5:nitro").abilities == found("anthropic/claude-haiku-4.5").abilities


def test_a_newer_model_can_what_its_vendors_models_can() -> None:
    newer = found("anthropic/claude-opus-9.1")

    assert (newer.known, newer.abilities.thinks_by_default) == (False, True)
    assert found("acme/one").abilities.sampling_while_thinking


@pytest.mark.parametrize(("beside", "small"), [("acme/one", True), ("anthropic/claude-opus-5", True), ("local", False)])
def test_the_cheap_model_is_one_of_the_table(beside: str, *, small: bool) -> None:
    name = small_model("openrouter", beside)

    assert (name in known_names("openrouter")) if small else (name is None)
