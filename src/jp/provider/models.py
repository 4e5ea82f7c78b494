"""What is known of models: the tables, what is inferred, prices, and facts about prompt caches. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol, cast

import msgspec

from jp.conversation.entries import JsonObject, Usage
from jp.provider.base import Abilities, Model, ModelDetails

TABLE_DATE = "2026-11-22"
"""When the table was last compared with what the providers publish."""

_MILLION = 1_000_000
_CLOUD = re.compile(r"\A(?:[a-z-]+\.)?anthropic\.(claude-.+?)(?:-v\d+(?::\d+)?)?\Z")
"""What Bedrock puts around a name: a region, the vendor, a version. Vertex puts `@` before the date."""

_DATES = ("-20260102", "-2026-01-02")
"""How the date of a snapshot stands at the end of a name."""


class _Table(Protocol):
    """What a module of `jp.provider.table` gives: newest models first."""

    MODELS: tuple[Model, ...]
    SMALL: str
    is_own: Callable[[str], bool]
    inferred: Callable[[str], Abilities]


def _table(kind: str) -> _Table | None:
    """The table of a provider's models; each is imported when it is asked for."""
    match kind:
        case "anthropic":
            from jp.provider.table import anthropic as table
        case "google":
            from jp.provider.table import google as table
        case "openai":
            from jp.provider.table import openai as table
        case "ollama":
            from jp.provider.table import ollama as table
        case "cerebras":
            from jp.provider.table import cerebras as table
        case "llamacpp":
            from jp.provider.table import llamacpp as table
        case "openrouter":
            from jp.provider.table import openrouter as table
        case _:
            return None
    return cast("_Table", table)


@cache
def _by_name(kind: str) -> dict[str, Model]:
    table = _table(kind)
    return {} if table is None else {model.details.id: model for model in table.MODELS}


_ANY = Abilities(thinking="none", levels=(), sampling=True, documents=False)
"""What is expected of a model of which nothing is known."""


def canonical_name(name: str) -> str:
    """A model's name without the date of its snapshot, and without what a cloud adds to it."""
    if "claude-" in name:
        name = _CLOUD.sub(r"\1", name).replace("@", "-")
    for date in _DATES:
        stem, end = name[: -len(date)], name[-len(date) :]
        if stem and all(a == b or (a.isdigit() and b.isdigit()) for a, b in zip(end, date, strict=False)):
            return stem
    return name


def find_model(kind: str, name: str) -> Model:
    """What is known of a model.

    `kind` is a provider of this version: a server under a name of the user's own is of one of these, and what its
    models cost is not what they cost there. One that is not in the table gets what its name lets expect.
    """
    models = _by_name(kind)
    found = models.get(name) or models.get(canonical_name(name))
    if found is not None:
        return found
    table = _table(kind)
    abilities = _ANY if table is None else table.inferred(canonical_name(name))
    return Model(details=ModelDetails(provider=kind, id=name), abilities=abilities, known=False)


def small_model(provider: str, beside: str) -> str | None:
    """The cheap model that whoever uses the model `beside` of a provider has, too; None where none is known.

    A server that only speaks the provider's protocol has models of other names.
    """
    table = _table(provider)
    if table is None or not table.SMALL or not (find_model(provider, beside).known or table.is_own(beside)):
        return None
    return table.SMALL


def known_names(provider: str) -> tuple[str, ...]:
    """The models of a provider that the table holds, newest first."""
    return tuple(_by_name(provider))


def cost(usage: Usage, details: ModelDetails, *, long_cache: bool = False) -> float | None:
    """What the tokens of one request cost in USD, None where a price that is needed is unknown.

    Reasoning is part of the output. `long_cache` says that cache entries were written to be kept for an hour.
    """
    write = details.cache_write_long_price if long_cache else details.cache_write_price
    prompt = usage.input + usage.cache_read + usage.cache_write
    is_long = details.long_prompt is not None and prompt > details.long_prompt
    factor = details.long_prompt_factor if is_long else 1.0
    output_factor = details.long_prompt_output_factor if is_long else None
    classes = (
        (usage.input, details.input_price, factor),
        (usage.output, details.output_price, factor if output_factor is None else output_factor),
        (usage.cache_read, details.cache_read_price, factor),
        (usage.cache_write, write, factor),
    )
    total = 0.0
    for tokens, price, times in classes:
        if tokens and price is None:
            return None
        total += tokens * (price or 0.0) * times
    return total / _MILLION


def is_readable(metadata: JsonObject | None, provider: str, model: str, *, reads: Sequence[str] = ()) -> bool:
    """Return whether `model` takes reasoning with this metadata: its own, or that of a model which it `reads`."""
    return any(is_made_by(metadata, provider, maker) for maker in (model, *reads))


def is_made_by(metadata: JsonObject | None, provider: str, model: str) -> bool:
    """Whether `metadata` comes from this model of this provider; snapshots of a model take each other's."""
    given = metadata or {}
    maker = given.get("model")
    if given.get("provider") != provider or not isinstance(maker, str):
        return False
    return canonical_name(maker) == canonical_name(model)


class CacheFacts(msgspec.Struct, frozen=True, kw_only=True):
    """When a prompt can be expected to be read from a provider's cache.

    It needs at least `minimum` tokens, and is kept for `short_secs` or `long_secs` after it was used last. `is_certain`
    is false where nobody says that there is a cache: then one is expected only once it has shown itself.
    """

    minimum: int = 1024
    short_secs: float = 300.0
    long_secs: float = 3600.0
    is_certain: bool = True

    def lifetime(self, policy: str) -> float:
        """For how many seconds a prompt is kept under a policy, `short` or `long`."""
        return self.long_secs if policy == "long" else self.short_secs


_CERTAIN = frozenset({"anthropic", "cerebras", "google", "openai", "openrouter", "script"})
_MINIMUM = {
    "claude-haiku-4-5": 4096,
    "claude-opus-4-5": 4096,
    "claude-opus-4-6": 4096,
    "claude-sonnet-4-6": 2048,
}
"""Models that take more than the usual minimum."""


def cache_facts(kind: str, name: str) -> CacheFacts:
    """What is known of the cache for a model. `kind` is a provider of this version, as for `find_model`."""
    return CacheFacts(minimum=_MINIMUM.get(canonical_name(name), 1024), is_certain=kind in _CERTAIN)
