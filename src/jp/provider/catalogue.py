"""Facts about a model and their sources: the configuration first, then the provider's list, then jp's table.

Lists are cached in small files. A request is a function of the log, so a fact that may be in a list today and not
tomorrow affects the request only if it was recorded in the log (`listed_abilities`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from jp.config.model import LlmConfig
from jp.conversation.entries import JsonObject
from jp.file_access import read_beginning, replace_cached
from jp.provider.base import Abilities, ModelDetails
from jp.provider.listing import ListedModel
from jp.provider.models import canonical_name, find_model, model_table
from jp.provider.registry import KINDS, PROVIDERS, ModelId, account_of, built_in, kind_of, vendor_of


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """The models that a provider listed, the time of it (`at`, RFC 3339 UTC), and the base URL."""

    provider: str
    base_url: str
    at: str
    models: tuple[ListedModel, ...]
    skipped: int = 0

    def find(self, name: str) -> ListedModel | None:
        """Return the listed model with a name or another name of it."""
        return next((model for model in self.models if name == model.id or name in model.aliases), None)


_VERSION = 1
_LARGEST = 32 * 1024 * 1024


class CachedCatalogue(msgspec.Struct, frozen=True, kw_only=True):
    """The cached catalogue of a provider, if any; `problem` says why a file that exists is not used."""

    catalogue: Catalogue | None = None
    problem: str = ""


class _File(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    catalogue: msgspec.Raw


class CatalogueStore:
    """The catalogues in a directory, which need not exist."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, provider: str) -> Path:
        """Return the path of a provider's catalogue; the name of a server may have any characters."""
        from urllib.parse import quote

        return self._directory / f"{quote(provider, safe='')}.json"

    def read(self, provider: str, base_url: str) -> CachedCatalogue:
        """Return the catalogue cached for a provider at a URL; the list of another URL is not used."""
        path = self.path(provider)
        try:
            data = read_beginning(path, _LARGEST)
        except FileNotFoundError:
            return CachedCatalogue()
        except OSError as error:
            return CachedCatalogue(problem=f"{str(path)!r} cannot be read: {error.strerror or error}")
        try:
            stored = msgspec.json.decode(data, type=_File)
            if stored.version != _VERSION:
                return CachedCatalogue(problem=f"{str(path)!r} was written by another version of jp")
            catalogue = msgspec.json.decode(stored.catalogue, type=Catalogue)
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            return CachedCatalogue(problem=f"{str(path)!r} is malformed")
        is_meant = (catalogue.provider, catalogue.base_url) == (provider, base_url)
        return CachedCatalogue(catalogue=catalogue) if is_meant else CachedCatalogue()

    def write(self, catalogue: Catalogue) -> None:
        """Store a catalogue, replacing the earlier one.

        Raises:
            StorageError: it could not be written; the earlier one is unchanged.
        """
        path = self.path(catalogue.provider)
        stored = _File(version=_VERSION, catalogue=msgspec.Raw(msgspec.json.encode(catalogue)))
        replace_cached(path, msgspec.json.encode(stored))


Source = Literal["config", "catalogue", "table", "local", "inferred"]

LIMITS = ("context_window", "max_output")
PRICES = ("input_price", "output_price", "cache_read_price", "cache_write_price")
CAPABILITIES = ("tools", "images", "documents", "structured")

_NOTHING = ListedModel(id="")


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a model.

    Attributes:
        capabilities: a value for each of `CAPABILITIES`.
        reasoning: the levels that can be requested, least first; `budget` for a number of tokens, `auto` if the model
            decides alone, empty if it never reasons.
        sources: the source of each known value.
        local: the price of a model on the user's own machine.
        trained_window: the model's own context window, if its server has a smaller one.
        in_table: whether jp's table has the model; a provider may list others.
        table_date: the day (YYYY-MM-DD) on which the table was last checked.
    """

    model: ModelId
    details: ModelDetails
    capabilities: Mapping[str, bool]
    reasoning: tuple[str, ...]
    sources: Mapping[str, Source]
    in_table: bool
    table_date: str | None = None
    listed: ListedModel | None = None
    trained_window: int | None = None


def find_listed(catalogue: Catalogue | None, name: str) -> ListedModel | None:
    """Return the model of a catalogue by its id or another name, with or without the date of a snapshot."""
    if catalogue is None:
        return None
    found = catalogue.find(name) or catalogue.find(canonical_name(name))
    if found is not None or canonical_name(name) != name:
        return found
    return next((model for model in catalogue.models if canonical_name(model.id) == name), None)


def model_facts(settings: LlmConfig, model: ModelId, catalogue: Catalogue | None = None) -> ModelFacts:
    """Return the facts about a model, given the catalogue of its provider; an unknown provider has any model."""
    kind = kind_of(settings, model.provider)
    expected = find_model(kind, model.name)
    account = account_of(settings, model.provider)
    is_vendors = kind == model.provider and getattr(account, "transport", "http") == "http"
    details = expected.details if is_vendors else _without_prices(expected.details)
    listed = find_listed(catalogue, model.name)
    holder = getattr(settings, model.provider) if model.provider in PROVIDERS else account
    configured = None if holder is None else holder.models.get(model.name)
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for field in (*LIMITS, *PRICES):
        given: tuple[tuple[Source, Any], ...] = (
            ("config", getattr(configured, field, None)),
            ("catalogue", getattr(listed, field, None)),
            ("table", getattr(details, field)),
        )
        for source, value in given:
            if value is not None:
                values[field], sources[field] = value, source
                break
    vendor = built_in(model.provider)
    # A model on the user's own machine costs nothing.
    if vendor is not None and vendor.is_local and not {"input_price", "output_price"} & sources.keys():
        values |= dict.fromkeys(PRICES, 0.0)
        sources |= dict.fromkeys(PRICES, "local")
    if sources.get("cache_write_price") in {"config", "local"}:
        values["cache_write_long_price"] = values["cache_write_price"]
    trained = values.get("context_window")
    held = _configured_window(settings, model.provider)
    is_held = held is not None and (trained is None or held < trained)
    if is_held:
        values["context_window"], sources["context_window"] = held, "config"
    if listed is not None and listed.shutdown:
        values["shutdown"] = listed.shutdown
    capabilities, reasoning = _abilities(expected.abilities, listed or _NOTHING, sources, in_table=expected.known)
    return ModelFacts(
        model=model,
        details=replace(details, provider=model.provider, id=model.name, **values),
        capabilities=capabilities,
        reasoning=reasoning,
        sources=sources,
        in_table=expected.known,
        table_date=model_table(kind).checked if expected.known else None,
        listed=listed,
        trained_window=trained if is_held else None,
    )


def listed_abilities(settings: LlmConfig, model: ModelId, catalogue: Catalogue | None) -> JsonObject:
    """Return the abilities and levels of a model if its provider's list differs from jp's table.

    A request may depend on them only if they are recorded in the log (`Parameters.abilities`).
    """
    kind = kind_of(settings, model.provider)
    listed = find_listed(catalogue, model.name)
    if listed is None or kind not in KINDS or not vendor_of(kind).models.overrides:
        return {}
    expected = find_model(kind, model.name).abilities
    said = _listed_differences(expected, listed)
    # The list's levels are used even if the table has the same: levels that servers map are not sent then.
    return {name: value for name, value in said.items() if name == "levels" or value != getattr(expected, name)}


def _listed_differences(expected: Abilities, listed: ListedModel) -> JsonObject:
    images: JsonObject = {} if listed.images is None else {"images": listed.images}
    if listed.thinks is False:
        return {**images, "thinking": "none", "thinks_by_default": False}
    said = images
    if listed.thinks and expected.thinking == "none":
        said["thinking"] = "levels" if listed.levels else "adaptive"
    if listed.levels:
        said["levels"] = [*listed.levels]
    if listed.mandatory:
        said |= {"thinking_off": "never", "thinks_by_default": True}
    elif listed.mandatory is False and expected.thinking_off == "never":
        said["thinking_off"] = "disabled"
    if listed.thinks_by_default is not None and not listed.mandatory:
        said["thinks_by_default"] = listed.thinks_by_default
    if listed.budgets is not None:
        said["budgets"] = listed.budgets
    return said


def _without_prices(details: ModelDetails) -> ModelDetails:
    """Return the details that hold on any server: another server or a cloud has its own prices."""
    return ModelDetails(
        provider=details.provider,
        id=details.id,
        context_window=details.context_window,
        max_output=details.max_output,
    )


def _configured_window(settings: LlmConfig, provider: str) -> int | None:
    """Return the context window that a server is configured with, however large that of its model is."""
    vendor = vendor_of(kind_of(settings, provider)) if provider in {*PROVIDERS, *settings.servers} else None
    return None if vendor is None or vendor.held_window is None else vendor.held_window(settings, provider)


def _abilities(
    abilities: Abilities, listed: ListedModel, sources: dict[str, Source], *, in_table: bool
) -> tuple[dict[str, bool], tuple[str, ...]]:
    """Return the abilities of the model and its levels of reasoning, and add their sources to `sources`."""
    otherwise: Source = "table" if in_table else "inferred"
    capabilities: dict[str, bool] = {}
    for field in CAPABILITIES:
        said: bool | None = getattr(listed, field)
        capabilities[field] = getattr(abilities, field) if said is None else said
        sources[field] = otherwise if said is None else "catalogue"
    sources["reasoning"] = otherwise if listed.thinks is None else "catalogue"
    return capabilities, _reasoning(abilities, listed)


def _reasoning(abilities: Abilities, listed: ListedModel) -> tuple[str, ...]:
    if listed.thinks is False:
        return ()
    if listed.levels:
        return tuple(level for level in listed.levels if level != "none" or not listed.mandatory)
    if abilities.thinking == "none":
        return ("auto",) if listed.thinks else ()
    return ("budget",) if abilities.thinking == "budget" else abilities.levels or ("auto",)
