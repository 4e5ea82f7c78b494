"""The models of a provider: from the table, its catalogue, and the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from jp.config.aliases import resolve_alias
from jp.config.model import AppConfig, LlmConfig
from jp.errors import ConfigurationError
from jp.provider.catalogue.known import CAPABILITIES, LIMITS, PRICES, Known, known_model, listed_as
from jp.provider.catalogue.store import Kept
from jp.provider.models import TABLE_DATE, canonical_name, known_names
from jp.provider.registry import ModelId, account_of


class Naming(msgspec.Struct, frozen=True, kw_only=True):
    """What models are called here: `aliases` by the model that they stand for in the end, and the one in use."""

    aliases: dict[str, tuple[str, ...]]
    in_use: str


class Models(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's models. `left_out` are those of its catalogue that nobody who wants to ask looks for."""

    provider: str
    table_date: str | None
    kept: Kept
    known: tuple[Known, ...]
    left_out: int


def naming_of(config: AppConfig) -> Naming:
    """What models are called in a configuration."""
    aliases: dict[str, tuple[str, ...]] = {}
    settings = config.providers.llm
    for alias in settings.aliases:
        model = _resolved(alias, settings)
        aliases[model] = (*aliases.get(model, ()), alias)
    return Naming(aliases=aliases, in_use=_resolved(config.assistant.model.id or "", settings))


def _resolved(name: str, settings: LlmConfig) -> str:
    try:
        return resolve_alias(name, settings.aliases)
    except ConfigurationError:  # a circle stands for nothing
        return ""


def models_of(settings: LlmConfig, provider: str, kept: Kept, naming: Naming, *, everything: bool) -> Models:
    """What is known of a provider's models: those of the table first, then those that are named here, then the rest.

    Without `everything`, the catalogue's snapshots of models that are there without a date are left out, and what
    answers nobody.
    """
    catalogue = kept.catalogue
    shipped = known_names(provider)
    names = dict.fromkeys((*shipped, *_named(settings, provider, naming)))
    listed = () if catalogue is None else catalogue.models
    ids = {model.id for model in listed}
    left_out = 0
    for model in listed:
        plain = canonical_name(model.id)
        is_snapshot = plain != model.id and (plain in names or plain in ids)
        is_known = model.id in names or any(alias in names for alias in model.aliases)
        if is_known or ((is_snapshot or model.answers is False) and not everything):
            left_out += not is_known
            continue
        names[model.id] = None
    known = tuple(known_model(settings, ModelId(provider, name), catalogue) for name in names)
    return Models(
        provider=provider,
        table_date=TABLE_DATE if any(model.in_table for model in known) else None,
        kept=kept,
        known=known,
        left_out=left_out,
    )


def _named(settings: LlmConfig, provider: str, naming: Naming) -> Iterator[str]:
    """The names that the configuration has for a provider's models."""
    for model in (naming.in_use, *naming.aliases):
        start, slash, name = model.partition("/")
        if start == provider and slash and name:
            yield name
    account = account_of(settings, provider)
    yield from () if account is None else account.models


def is_listed(known: Known, kept: Kept) -> bool | None:
    """Whether the provider lists a model; None where it was not asked."""
    return None if kept.catalogue is None else listed_as(kept.catalogue, known.model.name) is not None


def retirement(known: Known) -> str:
    """Say that the provider gives a model up, and what it names instead; nothing where it does not."""
    details = known.details
    instead = "" if details.successor is None else f"{known.model.provider}/{details.successor}"
    if details.shutdown is not None:
        return f"{known.model} shuts down on {details.shutdown}{f'; use {instead}' if instead else ''}"
    return f"{known.model} is deprecated: {instead} answers for it" if instead else ""


def retired_models(models: Iterable[Known]) -> str:
    """List the models that their providers shut down, by the day; nothing where there are none."""
    days: dict[str, list[str]] = {}
    for known in models:
        if known.details.shutdown is not None:
            days.setdefault(known.details.shutdown, []).append(str(known.model))
    return "; ".join(f"shut down on {day}: {', '.join(names)}" for day, names in sorted(days.items()))


def as_value(known: Known, kept: Kept, naming: Naming) -> dict[str, object]:
    """The fields that `--format json` has of a model; null is what is not known."""
    text = str(known.model)
    return {
        "id": text,
        "provider": known.model.provider,
        "name": known.model.name,
        "title": known.listed.title or None if known.listed else None,
        "listed": is_listed(known, kept),
        "in_use": text == naming.in_use,
        "aliases": list(naming.aliases.get(text, ())),
        **{field: getattr(known.details, field) for field in (*LIMITS, *PRICES)},
        **{field: known.capabilities[field] for field in CAPABILITIES},
        "reasoning": list(known.reasoning),
        "shutdown": known.details.shutdown,
        "successor": known.details.successor,
        "sources": dict(known.sources),
    }
