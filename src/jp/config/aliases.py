"""Aliases of models: `fast` → `haiku` → `anthropic/claude-haiku-4-5`."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from jp.config.model import AppConfig
from jp.errors import ConfigurationError


def resolve_alias(name: str, aliases: Mapping[str, str]) -> str:
    """What `name` stands for in the end; a name that is no alias stands for itself.

    An alias is a short name: what is `provider/name` is never one.

    Raises:
        ConfigurationError: the aliases lead in a circle.
    """
    chain = [name]
    while "/" not in name and (name := aliases.get(name, "")) != "":
        if name in chain:
            msg = f"the alias {chain[0]!r} leads in a circle: {' → '.join([*chain, name])}"
            raise ConfigurationError(msg, hint="Point one of them at a model, as `provider/name`.")
        chain.append(name)
    return chain[-1]


def with_model_resolved(config: AppConfig) -> AppConfig:
    """The configuration with the model's id in place of an alias for it.

    Raises:
        ConfigurationError: the aliases lead in a circle.
    """
    model = config.assistant.model
    if model.id is None:
        return config
    found = resolve_alias(model.id, config.providers.llm.aliases)
    return replace(config, assistant=replace(config.assistant, model=replace(model, id=found)))
