"""What commands say of a model's window and prices.

Never what a request is made of: that is a function of the log and the settings alone.
"""

from __future__ import annotations

from jp.config.model import AppConfig
from jp.provider.base import ModelDetails
from jp.provider.registry import ModelId


def details_of(config: AppConfig, model: ModelId) -> ModelDetails:
    """What is known of a model, for people: windows, limits and prices; None where a value is unknown.

    It never fails, whatever `model.provider` is: a log may name one that nobody knows any more.
    """
    from jp.provider.models import find_model
    from jp.provider.registry import kind_of

    settings = config.providers.llm
    kind = kind_of(settings, model.provider)
    details = find_model(kind, model.name).details
    if kind == model.provider:
        return details
    return ModelDetails(
        provider=model.provider,
        id=details.id,
        context_window=details.context_window,
        max_output=details.max_output,
    )
