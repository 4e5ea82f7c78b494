from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jp.config.model import LlmConfig
from jp.provider.catalogue import Catalogue, ModelFacts, find_listed, listed_abilities, model_facts
from jp.provider.listing import ListedModel
from jp.provider.registry import ModelId

HAIKU = ModelId("anthropic", "claude-haiku-4-5")
PRICES = ("input_price", "output_price", "cache_read_price", "cache_write_price")


def settings_of(**accounts: dict[str, Any]) -> LlmConfig:
    servers = {name: value for name, value in accounts.items() if name not in LlmConfig.__struct_fields__}
    known = {name: value for name, value in accounts.items() if name not in servers}
    return msgspec.convert({**known, "servers": servers}, LlmConfig)


def catalogue_of(*models: ListedModel, provider: str = "anthropic") -> Catalogue:
    return Catalogue(provider=provider, base_url="http://x", at="2026-11-21T00:00:00.000Z", models=models)


def prices_of(known: ModelFacts) -> list[float | None]:
    return [getattr(known.details, price) for price in PRICES]


def test_the_configuration_goes_before_the_catalogue_and_that_before_the_table() -> None:
    settings = settings_of(anthropic={"models": {HAIKU.name: {"input_price": 7.0, "cache_write_price": 8.0}}})
    listed = ListedModel(id=HAIKU.name, context_window=123, input_price=9.0, images=False, thinks=True, levels=("low",))

    known = model_facts(settings, HAIKU, catalogue_of(listed))

    assert (known.details.provider, known.details.id) == ("anthropic", HAIKU.name)
    assert prices_of(known) == [7.0, 5.0, 0.1, 8.0]
    assert known.details.cache_write_long_price == 8.0
    assert (known.details.context_window, known.details.max_output) == (123, 64_000)
    assert known.capabilities == {"tools": True, "images": False, "documents": True, "structured": True}
    assert known.reasoning == ("low",)
    assert known.sources == {
        "context_window": "catalogue",
        "max_output": "table",
        "input_price": "config",
        "output_price": "table",
        "cache_read_price": "table",
        "cache_write_price": "config",
        "tools": "table",
        "images": "catalogue",
        "documents": "table",
        "structured": "table",
        "reasoning": "catalogue",
    }
    assert known.in_table
    assert known.listed == listed


@pytest.mark.parametrize("provider", ["ollama", "llamacpp", "script"])
def test_a_model_on_ones_own_machine_is_free(provider: str) -> None:
    known = model_facts(LlmConfig(), ModelId(provider, "m"))

    assert [*prices_of(known), known.details.cache_write_long_price] == [0.0] * 5
    assert {known.sources[price] for price in PRICES} == {"local"}


@pytest.mark.parametrize("price", ["input_price", "output_price"])
def test_who_says_what_a_model_on_their_machine_costs_says_all_of_it(price: str) -> None:
    known = model_facts(settings_of(ollama={"models": {"m": {price: 2.0}}}), ModelId("ollama", "m"))

    assert [found for found in prices_of(known) if found is not None] == [2.0]


def test_of_an_unknown_model_only_what_it_can_do_is_inferred() -> None:
    known = model_facts(LlmConfig(), ModelId("anthropic", "claude-next-9"))

    assert not known.in_table
    assert prices_of(known) == [None] * 4
    assert set(known.sources.values()) == {"inferred"}
    assert "context_window" not in known.sources


def test_a_provider_that_nobody_knows_any_more_has_models_of_which_nothing_is_known() -> None:
    known = model_facts(LlmConfig(), ModelId("gone", "m"))

    assert (known.details.provider, known.details.id, known.details.context_window) == ("gone", "m", None)


@pytest.mark.parametrize("kind", ["anthropic", "openai-compatible"])
def test_a_server_of_the_users_own_costs_what_its_owner_says(kind: str) -> None:
    settings = settings_of(
        mine={"kind": kind, "base_url": "http://x", "models": {"b": {"output_price": 2.0, "max_output": 5}}}
    )

    silent = model_facts(settings, ModelId("mine", HAIKU.name))
    priced = model_facts(settings, ModelId("mine", "b"))

    assert prices_of(silent) == [None] * 4
    assert (silent.details.cache_write_long_price, silent.details.provider) == (None, "mine")
    assert silent.details.context_window == (200_000 if kind == "anthropic" else None)
    assert prices_of(priced) == [None, 2.0, None, None]
    assert priced.details.max_output == 5


@pytest.mark.parametrize(
    ("own", "listed", "expected"),
    [
        ({}, 262_144, (16_384, 262_144, "config")),
        ({"context_window": 300_000}, 262_144, (262_144, None, "catalogue")),
        ({}, None, (16_384, None, "config")),
        ({"models": {"m": {"context_window": 4_096}}}, 262_144, (4_096, None, "config")),
    ],
)
def test_ollama_holds_no_more_than_it_is_told(
    own: dict[str, Any], listed: int | None, expected: tuple[int, int | None, str]
) -> None:
    catalogue = catalogue_of(ListedModel(id="m", context_window=listed), provider="ollama")

    known = model_facts(settings_of(ollama=own), ModelId("ollama", "m"), catalogue)

    assert (known.details.context_window, known.trained_window, known.sources["context_window"]) == expected


def test_another_server_of_ollamas_kind_holds_as_much_unless_it_says_otherwise() -> None:
    settings = settings_of(box={"kind": "ollama", "base_url": "http://x"}, ollama={"context_window": 99})

    assert model_facts(settings, ModelId("box", "m")).details.context_window == 99


@pytest.mark.parametrize(
    ("model", "listed", "reasoning"),
    [
        ("openrouter/x", ListedModel(id="x", thinks=False), ()),
        ("openrouter/x", ListedModel(id="x", thinks=True, levels=("low", "high")), ("low", "high")),
        ("llamacpp/x", ListedModel(id="x", thinks=True), ("auto",)),
        ("anthropic/claude-haiku-4-5", ListedModel(id="claude-haiku-4-5", thinks=True), ("budget",)),
        ("anthropic/claude-opus-5", ListedModel(id="x"), ("low", "medium", "high", "xhigh", "max")),
    ],
)
def test_reasoning_is_what_can_be_asked_for(model: str, listed: ListedModel, reasoning: tuple[str, ...]) -> None:
    provider, _, name = model.partition("/")

    assert model_facts(LlmConfig(), ModelId(provider, name), catalogue_of(listed)).reasoning == reasoning


def test_a_model_is_found_by_other_names_and_without_its_date() -> None:
    dated, latest = ListedModel(id="claude-x-20251001"), ListedModel(id="llama3:latest", aliases=("llama3",))
    catalogue = catalogue_of(dated, latest, ListedModel(id="gpt-5"))

    assert find_listed(catalogue, "claude-x-20251001") == dated
    assert find_listed(catalogue, "claude-x") == dated
    assert find_listed(catalogue, "llama3") == latest
    assert find_listed(catalogue, "gpt-5-2025-08-07") == ListedModel(id="gpt-5")
    assert find_listed(catalogue, "claude-x-20250101") is None
    assert find_listed(catalogue, "claude") is None
    assert find_listed(None, "gpt-5") is None


def test_the_day_on_which_a_provider_shuts_a_model_down_goes_before_the_table() -> None:
    catalogue = catalogue_of(ListedModel(id=HAIKU.name, shutdown="2027-02-03"))

    assert model_facts(LlmConfig(), HAIKU, catalogue).details.shutdown == "2027-02-03"


OPUS = ModelId("openrouter", "anthropic/claude-opus-5")
"""It reasons by itself, and can be kept from it."""


@pytest.mark.parametrize(
    ("said", "abilities"),
    [
        ({}, {}),
        ({"thinks": True, "mandatory": False, "levels": ("low", "max")}, {"levels": ["low", "max"]}),
        ({"mandatory": True}, {"thinking_off": "never"}),
        ({"thinks_by_default": False}, {"thinks_by_default": False}),
        ({"thinks_by_default": False, "mandatory": True}, {"thinking_off": "never"}),
        ({"levels": ("low",), "budgets": False}, {"levels": ["low"], "budgets": False}),
        ({"thinks": False, "mandatory": True}, {"thinking": "none", "thinks_by_default": False}),
        ({"images": False}, {"images": False}),
        ({"documents": False, "tools": False, "structured": False}, {}),
    ],
)
def test_a_list_decides_of_reasoning_and_images_only_where_it_differs(
    said: dict[str, Any], abilities: dict[str, Any]
) -> None:
    catalogue = catalogue_of(ListedModel(id=OPUS.name, **said), provider="openrouter")

    assert listed_abilities(LlmConfig(), OPUS, catalogue) == abilities


def test_a_list_can_say_that_a_model_reasons_after_all() -> None:
    never = catalogue_of(ListedModel(id="openai/gpt-4o", thinks=True, levels=("low",)), provider="openrouter")
    always = catalogue_of(ListedModel(id="openai/o3", mandatory=False), provider="openrouter")
    shown = catalogue_of(ListedModel(id="llama3:8b", thinks=True), provider="ollama")

    assert listed_abilities(LlmConfig(), ModelId("openrouter", "openai/gpt-4o"), never) == {
        "thinking": "levels",
        "levels": ["low"],
    }
    assert listed_abilities(LlmConfig(), ModelId("openrouter", "openai/o3"), always) == {"thinking_off": "disabled"}
    assert listed_abilities(LlmConfig(), ModelId("ollama", "llama3:8b"), shown) == {"thinking": "adaptive"}


def test_lists_of_vendors_whose_models_jp_knows_better_decide_nothing() -> None:
    listed = ListedModel(id=HAIKU.name, thinks=False, images=False)

    assert listed_abilities(LlmConfig(), HAIKU, catalogue_of(listed)) == {}
    assert listed_abilities(LlmConfig(), HAIKU, None) == {}
    assert listed_abilities(LlmConfig(), ModelId("nobody", "m"), catalogue_of(ListedModel(id="m", thinks=False))) == {}
