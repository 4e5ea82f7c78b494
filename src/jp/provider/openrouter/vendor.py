"""OpenRouter: many vendors' models behind one Chat Completions API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jp.config.entries import OpenrouterConfig
from jp.config.model import LlmConfig
from jp.provider.vendor import ModelList, Vendor

if TYPE_CHECKING:
    from jp.provider.listing import Fields, ListedModel, Page
    from jp.provider.openrouter.request import OpenrouterAdapter


def create(own: OpenrouterConfig) -> OpenrouterAdapter:
    """Return the adapter of an account."""
    from jp.provider.openrouter.request import OpenrouterAdapter

    named = {"x-title": own.app_name, "http-referer": own.app_referrer}
    return OpenrouterAdapter(tuple((name, value) for name, value in named.items() if value), store=own.store)


def _adapter(settings: LlmConfig, _provider: str) -> OpenrouterAdapter:
    return create(settings.openrouter)


def _read(body: object) -> Page | None:
    from jp.provider.listing import read_page

    return read_page(body, "data", _listed)


def _name(value: object) -> str:
    """Return a model's name; `~` begins an alias for the latest model of a family."""
    from jp.provider.listing import name, text

    said = text(value)
    found = name(said.removeprefix("~"))
    return f"~{found}" if found and said.startswith("~") else found


def _listed(entry: Fields) -> ListedModel:
    from jp.provider.listing import LEVELS, ListedModel, day, fields, flag, price, text, texts, tokens

    best = fields(entry.get("top_provider"))
    prices = fields(entry.get("pricing"))
    made = fields(entry.get("architecture"))
    taken = texts(made.get("input_modalities"))
    given = texts(made.get("output_modalities"))
    parameters = texts(entry.get("supported_parameters"))
    reasoning = fields(entry.get("reasoning"))
    efforts = texts(reasoning.get("supported_efforts"))
    return ListedModel(
        id=_name(entry.get("id")),
        title=text(entry.get("name")),
        context_window=tokens(best.get("context_length"), entry.get("context_length")),
        max_output=tokens(best.get("max_completion_tokens")),
        input_price=price(prices.get("prompt")),
        output_price=price(prices.get("completion")),
        cache_read_price=price(prices.get("input_cache_read")),
        cache_write_price=price(prices.get("input_cache_write")),
        tools="tools" in parameters if parameters else None,
        images="image" in taken if taken else None,
        documents="file" in taken if taken else None,
        structured="structured_outputs" in parameters if parameters else None,
        thinks="reasoning" in parameters if parameters else None,
        levels=tuple(level for level in LEVELS if level in efforts),
        mandatory=flag(reasoning.get("mandatory")),
        thinks_by_default=flag(reasoning.get("default_enabled")),
        # The list omits it if it is false.
        budgets=reasoning.get("supports_max_tokens") is True if reasoning else None,
        shutdown=day(entry.get("expiration_date")),
        answers="text" in given if given else None,
    )


VENDOR = Vendor(
    id="openrouter",
    create_adapter=_adapter,
    key_variables=("OPENROUTER_API_KEY",),
    proposed="openrouter/anthropic/claude-sonnet-5.5",
    models=ModelList(is_public=True, overrides=True, read=_read),
    settings_hints=((b"matching your data policy", "store=true", "requests may then go to vendors that store them"),),
)
