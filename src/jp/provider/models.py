"""Models: the table of each vendor, abilities inferred from a name, prices, and facts about prompt caches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from jp.conversation.entries import JsonObject, Usage
from jp.conversation.thread import Thread
from jp.provider.base import Abilities, Model, ModelDetails

_MILLION = 1_000_000
_CLOUD = re.compile(r"\A(?:[a-z-]+\.)?anthropic\.(claude-.+?)(?:-v\d+(?::\d+)?)?\Z")
"""Additions of Bedrock to a name: region, vendor and version. Vertex AI has `@` before the date."""

_DATES = ("-20260102", "-2026-01-02")
"""Formats of the date of a snapshot at the end of a name."""


class CacheFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a provider's prompt cache.

    A prompt is cached from `minimum` tokens on, and kept for `short_secs` or `long_secs` after its last use.
    `is_certain` is false for a cache that is not documented: it is assumed only after a response has shown a cache
    read.
    """

    minimum: int = 1024
    short_secs: float = 300.0
    long_secs: float = 3600.0
    is_certain: bool = True

    def lifetime(self, policy: str) -> float:
        """Return the seconds that a prompt is kept under a policy, `short` or `long`."""
        return self.long_secs if policy == "long" else self.short_secs


class _Row(ModelDetails, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model in a `models.json`; `abilities` names an entry of the file, `sources` are the sources of single facts."""

    provider: str = ""
    abilities: str
    cache: CacheFacts = CacheFacts()
    sources: Mapping[str, str] = {}


class _Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The abilities of names that begin with `match`: all of them, and those that are `also` different."""

    match: str
    abilities: str = ""
    also: JsonObject = {}


class ModelTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The models of a vendor: `models.json` in its folder.

    Attributes:
        checked: the day (YYYY-MM-DD) on which it was last compared with `source`.
        small: the cheap model for jp's own requests.
        caches_prompts: whether the vendor is known to cache prompts.
        own: pattern of the names of the vendor's own models; other names belong to servers that only speak its
            protocol.
        models: newest first.
        inferred: rules for abilities; the last that matches is used.
    """

    checked: str = ""
    source: str = ""
    small: str = ""
    caches_prompts: bool = False
    own: str = "."
    abilities: dict[str, Abilities] = {}
    models: tuple[_Row, ...] = ()
    inferred: tuple[_Rule, ...] = ()

    def is_own(self, name: str) -> bool:
        """Return whether the vendor itself has a model of that name."""
        return re.match(self.own, name) is not None

    def infer(self, name: str) -> Abilities:
        """Return the abilities that a model which is not in the table probably has."""
        # A variant (`:free`, `:nitro`) can do what the model itself can.
        variant, colon, _ = name.partition(":")
        known = next((row for row in self.models if row.id == variant), None) if colon else None
        if known is not None:
            return self.abilities[known.abilities]
        abilities = _ANY
        for rule in self.inferred:
            if re.match(rule.match, name):
                abilities = self.abilities[rule.abilities] if rule.abilities else abilities
                if rule.also:
                    abilities = msgspec.convert({**msgspec.to_builtins(abilities), **rule.also}, Abilities)
        return abilities


_ANY = Abilities(thinking="none", levels=(), sampling=True, documents=False)
"""Abilities assumed for an unknown model."""


@cache
def model_table(kind: str) -> ModelTable:
    """Return the table of a kind of provider, an empty one if it has none."""
    path = Path(__file__).parent / kind / "models.json"
    # A log may name a provider that nobody knows.
    return (
        msgspec.json.decode(path.read_bytes(), type=ModelTable)
        if kind.isidentifier() and path.is_file()
        else ModelTable()
    )


def canonical_name(name: str) -> str:
    """Return a model's name without the date of its snapshot and the additions of a cloud."""
    if "claude-" in name:
        name = _CLOUD.sub(r"\1", name).replace("@", "-")
    for date in _DATES:
        stem, end = name[: -len(date)], name[-len(date) :]
        if stem and all(a == b or (a.isdigit() and b.isdigit()) for a, b in zip(end, date, strict=False)):
            return stem
    return name


def _row(table: ModelTable, name: str) -> _Row | None:
    by_name = {row.id: row for row in table.models}
    return by_name.get(name) or by_name.get(canonical_name(name))


@cache
def find_model(kind: str, name: str) -> Model:
    """Return the facts about a model; for one that is not in the table, those that its name implies.

    `kind` is a provider of this version. A server with a name of the user's own has the kind of one of these, but its
    prices differ.
    """
    table = model_table(kind)
    row = _row(table, name)
    if row is None:
        return Model(
            details=ModelDetails(provider=kind, id=name), abilities=table.infer(canonical_name(name)), known=False
        )
    values: dict[str, Any] = {field: getattr(row, field) for field in ModelDetails.__struct_fields__}
    values["provider"] = kind
    return Model(details=ModelDetails(**values), abilities=table.abilities[row.abilities])


def model_for(kind: str, thread: Thread) -> Model:
    """Return the facts about a thread's model, with the abilities that the thread records."""
    model, said = find_model(kind, thread.model), thread.parameters.abilities
    if not said:
        return model
    try:
        abilities = msgspec.convert({**msgspec.to_builtins(model.abilities), **said}, Abilities)
    except msgspec.ValidationError:  # of a newer version
        return model
    return msgspec.structs.replace(model, abilities=abilities)


def small_model(provider: str, beside: str) -> str | None:
    """Return the cheap model available to every user of the model `beside`; None if none is known.

    A server that only speaks the provider's protocol has models of other names.
    """
    table = model_table(provider)
    is_there = bool(table.small) and (_row(table, beside) is not None or table.is_own(beside))
    return table.small if is_there else None


def cache_facts(kind: str, name: str) -> CacheFacts:
    """Return the facts about the prompt cache of a model; `kind` is a provider of this version, as in `find_model`."""
    table = model_table(kind)
    row = _row(table, name)
    facts = CacheFacts() if row is None else row.cache
    return msgspec.structs.replace(facts, is_certain=table.caches_prompts)


def known_names(provider: str) -> tuple[str, ...]:
    """Return the models of a provider in the table, newest first."""
    return tuple(row.id for row in model_table(provider).models)


def cost(usage: Usage, details: ModelDetails, *, long_cache: bool = False) -> float | None:
    """Return the cost of one request in USD, None if a price that is needed is unknown.

    Reasoning is part of the output. `long_cache` means that cache entries were written to be kept for an hour.
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
    """Return whether `model` accepts reasoning with this metadata: its own, or that of a model in its `reads`."""
    return any(is_made_by(metadata, provider, maker) for maker in (model, *reads))


def is_made_by(metadata: JsonObject | None, provider: str, model: str) -> bool:
    """Return whether `metadata` is from this model of this provider; snapshots of a model share theirs."""
    given = metadata or {}
    maker = given.get("model")
    if given.get("provider") != provider or not isinstance(maker, str):
        return False
    return canonical_name(maker) == canonical_name(model)
