from __future__ import annotations

import pytest

from jp.config.assignment import read_partial
from jp.config.layers import Layer, Origin, resolve
from jp.config.model import (
    AppConfig,
    LlmConfig,
    all_aliases,
    resolve_alias,
    shipped_aliases,
    with_model_resolved,
)
from jp.errors import ConfigurationError

ALIASES = {"fast": "haiku", "haiku": "anthropic/claude-haiku", "a": "b", "b": "a", "self": "self"}


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("fast", "anthropic/claude-haiku"),
        ("haiku", "anthropic/claude-haiku"),
        ("openai/gpt", "openai/gpt"),
        ("unknown", "unknown"),
    ],
)
def test_an_alias_stands_for_what_it_leads_to(name: str, model: str) -> None:
    assert resolve_alias(name, ALIASES) == model


def test_an_alias_that_comes_with_jp_counts_where_there_is_none_of_that_name() -> None:
    settings = LlmConfig(aliases={"opus": "a/b", "best": "sonnet"})

    assert resolve_alias("sonnet", {}) == shipped_aliases()["sonnet"]
    assert resolve_alias("best", settings.aliases) == shipped_aliases()["sonnet"]
    assert resolve_alias("opus", settings.aliases) == "a/b"
    assert all_aliases(settings) == {**shipped_aliases(), "opus": "a/b", "best": "sonnet"}


@pytest.mark.parametrize(("name", "circle"), [("a", "a → b → a"), ("self", "self → self")])
def test_aliases_may_not_lead_in_a_circle(name: str, circle: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_alias(name, ALIASES)

    assert caught.value.message == f"the alias {name!r} leads in a circle: {circle}"


def test_a_configuration_has_its_model_resolved() -> None:
    raw = {"assistant": {"model": {"id": "fast"}}, "providers": {"llm": {"aliases": ALIASES}}}
    config = resolve([Layer(origin=Origin(kind="user"), change=read_partial(raw))]).config

    assert with_model_resolved(config).assistant.model.id == "anthropic/claude-haiku"
    assert with_model_resolved(AppConfig()) == AppConfig()
