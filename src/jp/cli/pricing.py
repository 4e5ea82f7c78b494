"""What models cost, for whoever shows or limits it."""

from __future__ import annotations

from functools import cache

from jp.cli.model_details import details_of
from jp.config.model import AppConfig
from jp.provider.base import ModelDetails
from jp.provider.registry import ModelId
from jp.turn.spending import DetailsOf


def pricing(config: AppConfig) -> DetailsOf:
    """What is known of each model, looked up once. It never fails."""

    @cache
    def look_up(provider: str, name: str) -> ModelDetails:
        return details_of(config, ModelId(provider, name))

    return look_up
