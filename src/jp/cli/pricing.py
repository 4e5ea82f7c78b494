"""What models cost, for whoever shows or limits it."""

from __future__ import annotations

from functools import cache

from msgspec.structs import replace

from jp.cli.model_details import details_of
from jp.config.model import AppConfig
from jp.provider.base import ModelDetails
from jp.provider.registry import ModelId
from jp.turn.spending import DetailsOf

_FREE = frozenset({"llamacpp", "ollama", "script"})
"""Providers that run on the user's own machine, and cost nothing unless the configuration says otherwise."""


def pricing(config: AppConfig) -> DetailsOf:
    """What is known of each model, looked up once. It never fails."""

    @cache
    def look_up(provider: str, name: str) -> ModelDetails:
        details = details_of(config, ModelId(provider, name))
        if provider not in _FREE or details.input_price is not None or details.output_price is not None:
            return details
        return replace(
            details,
            input_price=0.0,
            output_price=0.0,
            cache_read_price=0.0,
            cache_write_price=0.0,
            cache_write_long_price=0.0,
        )

    return look_up
