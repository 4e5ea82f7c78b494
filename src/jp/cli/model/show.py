"""`jp model show`, and the models of a provider from all that is known of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import typer

from jp.cli.options import GlobalOptions
from jp.config.model import AppConfig, LlmConfig, all_aliases, resolve_alias
from jp.errors import ConfigurationError
from jp.provider.catalogue import CAPABILITIES, LIMITS, PRICES, CachedCatalogue, ModelFacts, find_listed, model_facts
from jp.provider.models import canonical_name, known_names
from jp.provider.registry import ModelId, account_of

if TYPE_CHECKING:
    from jp.provider.base import ModelDetails
    from jp.provider.catalogue import Catalogue
    from jp.render.tables import Facts


def age_secs(catalogue: Catalogue) -> int | None:
    """Return the age of a catalogue in seconds; None if it has no date."""
    from time import time

    from jp.cli.conversation.ls import seconds_of

    written = seconds_of(catalogue.at)
    return None if written is None else max(0, int(time() - written))


def catalogue_date(catalogue: Catalogue) -> str:
    """Return the day of a catalogue, and its age."""
    from jp.app.values import ago

    age = age_secs(catalogue)
    return "an unknown date" if age is None else f"{catalogue.at[:10]} ({ago(age)} ago)"


class ModelNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names of models: `aliases` by the model that they resolve to, and the model in use."""

    aliases: dict[str, tuple[str, ...]]
    in_use: str


class Models(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's models. `omitted` are those of its catalogue that nobody who wants to ask looks for."""

    provider: str
    table_date: str | None
    kept: CachedCatalogue
    known: tuple[ModelFacts, ...]
    omitted: int


def names_of(config: AppConfig) -> ModelNames:
    """Return the names of models in a configuration."""
    aliases: dict[str, tuple[str, ...]] = {}
    settings = config.providers.llm
    for alias in all_aliases(settings):
        model = _resolved(alias, settings)
        aliases[model] = (*aliases.get(model, ()), alias)
    return ModelNames(aliases=aliases, in_use=_resolved(config.assistant.model.id or "", settings))


def _resolved(name: str, settings: LlmConfig) -> str:
    try:
        return resolve_alias(name, settings.aliases)
    except ConfigurationError:  # an alias in a circle resolves to nothing
        return ""


def models_of(
    settings: LlmConfig, provider: str, kept: CachedCatalogue, naming: ModelNames, *, everything: bool
) -> Models:
    """Return a provider's models: those of the table first, then those named in the configuration, then the rest.

    Without `everything`, dated snapshots of models that are also listed without a date are omitted, and so are models
    that do not chat.
    """
    catalogue = kept.catalogue
    shipped = known_names(provider)
    names = dict.fromkeys((*shipped, *_named(settings, provider, naming)))
    listed = () if catalogue is None else catalogue.models
    ids = {model.id for model in listed}
    omitted = 0
    for model in listed:
        plain = canonical_name(model.id)
        is_snapshot = plain != model.id and (plain in names or plain in ids)
        is_known = model.id in names or any(alias in names for alias in model.aliases)
        if is_known or ((is_snapshot or model.answers is False) and not everything):
            omitted += not is_known
            continue
        names[model.id] = None
    known = tuple(model_facts(settings, ModelId(provider, name), catalogue) for name in names)
    return Models(
        provider=provider,
        table_date=next((model.table_date for model in known if model.in_table), None),
        kept=kept,
        known=known,
        omitted=omitted,
    )


def _named(settings: LlmConfig, provider: str, naming: ModelNames) -> Iterator[str]:
    """Yield the names that the configuration has for a provider's models."""
    for model in (naming.in_use, *naming.aliases):
        start, slash, name = model.partition("/")
        if start == provider and slash and name:
            yield name
    account = account_of(settings, provider)
    yield from () if account is None else account.models


def is_listed(known: ModelFacts, kept: CachedCatalogue) -> bool | None:
    """Return whether the provider lists a model; None if it was not asked."""
    return None if kept.catalogue is None else find_listed(kept.catalogue, known.model.name) is not None


def retirement(known: ModelFacts) -> str:
    """Say that the provider gives a model up, and what it names instead; nothing where it does not."""
    details = known.details
    instead = "" if details.successor is None else f"{known.model.provider}/{details.successor}"
    if details.shutdown is not None:
        return f"{known.model} shuts down on {details.shutdown}{f'; use {instead}' if instead else ''}"
    return f"{known.model} is deprecated: {instead} answers for it" if instead else ""


def retired_models(models: Iterable[ModelFacts]) -> str:
    """List the models that their providers shut down, by the day; nothing where there are none."""
    days: dict[str, list[str]] = {}
    for known in models:
        if known.details.shutdown is not None:
            days.setdefault(known.details.shutdown, []).append(str(known.model))
    return "; ".join(f"shut down on {day}: {', '.join(names)}" for day, names in sorted(days.items()))


def as_value(known: ModelFacts, kept: CachedCatalogue, naming: ModelNames) -> dict[str, object]:
    """Return the fields of a model for `--format json`; null is unknown."""
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


_LIMITS = (("context window", "context_window"), ("longest output", "max_output"))
_PRICES = (
    ("input", "input_price"),
    ("output", "output_price"),
    ("cache read", "cache_read_price"),
    ("cache write", "cache_write_price"),
)
_CAPABILITIES = (("tools", "tools"), ("images", "images"), ("PDF", "documents"), ("structured", "structured"))
_LABEL_WIDTH = 16


class _Fact(NamedTuple):
    """A line: what it is about, what is known, and which of the model's fields says it."""

    label: str
    value: str
    field: str = ""


def show(
    options: GlobalOptions,
    *,
    model: Annotated[str, typer.Argument(help="As provider/name, or an alias of yours", metavar="ID")],
) -> None:
    """Show the facts about a model and their sources: the configuration, the provider's list, jp's table.

    Your settings under `providers.llm.PROVIDER.models` win over the provider's list, and that wins over the table. An
    unknown model can be used, too: its abilities are inferred from its name.

    Examples:
        jp model show anthropic/claude-sonnet-5-5
        jp model show smart --format json
        jp config set 'providers.llm.openai.models."gpt-5.6".input_price=1.5'
    """
    from jp.app.models import kept_of
    from jp.app.settings import trusted_config
    from jp.cli.output import print_result
    from jp.provider.catalogue import model_facts
    from jp.provider.registry import parse_model_id

    config = trusted_config(options, say=True)
    settings = config.providers.llm
    found = parse_model_id(model, settings)
    kept = kept_of(settings, found.provider)
    if kept.problem:
        options.notice(f"{kept.problem}, so it is ignored")
    known, naming = model_facts(settings, found, kept.catalogue), names_of(config)
    for sentence in (*_warnings(known, kept), *filter(None, (retirement(known),))):
        options.notice(sentence)
    details = known.details
    value = {
        **as_value(known, kept, naming),
        "cache_write_long_price": details.cache_write_long_price,
        "long_prompt": details.long_prompt,
        "long_prompt_factor": details.long_prompt_factor,
        "table_date": known.table_date,
        "catalogue_at": None if kept.catalogue is None else kept.catalogue.at,
    }
    print_result(options, text=[_panel(known, kept, naming)], value={"model": value})


def _warnings(known: ModelFacts, kept: CachedCatalogue) -> Iterator[str]:
    """Yield warnings about a model that is not in the table, or that its provider does not list."""
    from jp.provider.models import known_names
    from jp.suggestions import closest_names

    provider, name = known.model.provider, known.model.name
    if provider == "script":
        return
    catalogue = kept.catalogue
    is_missing = catalogue is not None and known.listed is None
    ids = () if catalogue is None else tuple(model.id for model in catalogue.models)
    near = closest_names(name, dict.fromkeys((*ids, *known_names(provider))), most=3)
    meant = f"; near: {', '.join(repr(f'{provider}/{other}') for other in near)}" if near else ""
    if catalogue is not None and is_missing:
        yield f"{provider} does not list {name!r} (catalogue of {catalogue_date(catalogue)}){meant}"
    elif known.listed is None and not known.in_table:
        ask = f"`jp model ls {provider} --refresh` asks {provider}"
        yield f"{str(known.model)!r} is not in jp's table, so what it can do is inferred from its name; {ask}{meant}"


def _panel(known: ModelFacts, kept: CachedCatalogue, naming: ModelNames) -> Facts:
    from jp.render.sanitize import one_line
    from jp.render.tables import Facts, cell_width

    facts = [_Fact(fact.label, one_line(fact.value), fact.field) for fact in _facts(known, naming)]
    width = max(cell_width(fact.value) for fact in facts if fact.field)
    rows = [(fact.label, fact.value, _origin(fact, known, kept)) for fact in facts]
    return Facts(title=str(known.model), rows=rows, widths=(_LABEL_WIDTH, width + 2))


def _facts(known: ModelFacts, naming: ModelNames) -> Iterator[_Fact]:
    yield from _names(known, naming)
    for label, field in _LIMITS:
        yield _Fact(label, _count(getattr(known.details, field)), field)
        if field == "context_window" and known.trained_window is not None:
            yield _Fact("", f"its server holds no more; the model alone {known.trained_window:,}")
    yield from _prices(known.details)
    for label, field in _CAPABILITIES:
        yield _Fact(label, "yes" if known.capabilities[field] else "no", field)
    yield _Fact("reasoning", ", ".join(known.reasoning) or "no", "reasoning")


def _names(known: ModelFacts, naming: ModelNames) -> Iterator[_Fact]:
    text, listed = str(known.model), known.listed
    yield _Fact("model", text)
    if listed is not None and listed.id != known.model.name:
        yield _Fact("listed as", listed.id)
    if listed is not None and listed.title:
        yield _Fact("title", listed.title)
    if aliases := naming.aliases.get(text):
        yield _Fact("aliases", ", ".join(aliases))
    yield _Fact("in use", "yes" if text == naming.in_use else "no")


def _prices(details: ModelDetails) -> Iterator[_Fact]:
    for label, field in _PRICES:
        yield _Fact(label, _money(getattr(details, field)), field)
    if details.cache_write_long_price is not None:
        yield _Fact("kept an hour", _money(details.cache_write_long_price))
    if details.long_prompt is not None:
        much = f"above {details.long_prompt:,} tokens, {details.long_prompt_factor:g} times as much"
        yield _Fact("long prompts", much)


def _count(tokens: int | None) -> str:
    return "unknown" if tokens is None else f"{tokens:,} tokens"


def _money(price: float | None) -> str:
    if price is None:
        return "unknown"
    return f"${price:.6g} a million tokens" if price else "free"


def _origin(fact: _Fact, known: ModelFacts, kept: CachedCatalogue) -> str:
    match known.sources.get(fact.field):
        case "catalogue" if kept.catalogue is not None:
            return f"catalogue of {kept.catalogue.at[:10]}"
        case "table":
            return f"table of {known.table_date}"
        case "local":
            return "your own machine"
        case source:
            return source or ""
