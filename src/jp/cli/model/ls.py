"""`jp model ls`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions
from jp.errors import ExitCode
from jp.remedies import phrase

if TYPE_CHECKING:
    from jp.cli.model.catalogues import RefreshResult
    from jp.cli.model.show import ModelNames, Models
    from jp.config.model import AppConfig
    from jp.provider.catalogue import CachedCatalogue, ModelFacts
    from jp.render.tables import Table

_HEAD = ("", "model", "window", "output", "in", "out", "cached", "alias", "reasoning", "can")
_RIGHT = frozenset({2, 3, 4, 5, 6})
_ALIAS = _HEAD.index("alias")
_Cells = tuple[str, ...]
_ABLE = (("tools", "tools"), ("images", "images"), ("documents", "pdf"), ("structured", "schema"))


def ls(
    options: GlobalOptions,
    *,
    provider: Annotated[
        str | None, typer.Argument(help="Only models of this provider, or server of yours", metavar="PROVIDER")
    ] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Fetch the lists of the providers first, and cache them")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Include dated snapshots and models that do not chat")
    ] = False,
) -> ExitCode | None:
    """List models: context window, price of a million tokens in USD, abilities and aliases.

    The facts are from jp's own table and from cached lists of the providers; the line above each list says their
    dates. Only --refresh sends requests: to each provider with a key and each server that answers, or to the named
    one. `*` marks the model in use, `?` a model that its provider does not list, `-` an unknown value; a word with a
    `?` is inferred from the model's name. Prices are for input, output, and input read from the provider's cache.

    Examples:
        jp model ls
        jp model ls anthropic
        jp model ls --refresh
        jp model ls openrouter --refresh --format json
    """
    from jp.app.settings import trusted_config
    from jp.cli.model.show import as_value, models_of, names_of, retired_models
    from jp.cli.output import print_result

    config = trusted_config(options, say=True)
    settings = config.providers.llm
    providers = _providers(config, provider)
    fresh: Mapping[str, CachedCatalogue] = {}
    if refresh:
        asked = _refreshed(options, config, providers, named=provider is not None)
        if isinstance(asked, ExitCode):
            return asked
        fresh = asked.kept
    naming = names_of(config)
    found = [
        models_of(settings, name, fresh.get(name) or _kept(options, config, name), naming, everything=everything)
        for name in providers
    ]
    value = {
        "providers": [
            {**_heading_value(models), "models": [as_value(known, models.kept, naming) for known in models.known]}
            for models in found
        ]
    }
    print_result(options, text=[_table(found, naming)], value=value)
    if retired := retired_models(known for models in found for known in models.known):
        options.notice(retired)
    return None


def _providers(config: AppConfig, provider: str | None) -> list[str]:
    """Return the providers whose models are listed.

    Raises:
        ConfigurationError: the named provider is unknown.
        UsageError: it has no models.
    """
    from jp.errors import UsageError
    from jp.provider.registry import vendor_in, vendors

    settings = config.providers.llm
    if provider is None:
        own = [name for name in settings.servers if all(name != vendor.id for vendor in vendors())]
        return [*(vendor.id for vendor in vendors() if vendor.create_adapter is not None), *own]
    if vendor_in(settings, provider).create_adapter is None:
        raise UsageError(f"{provider!r} has no models: it plays scenario files", hint="`jp model ls` lists all others")
    return [provider]


def _kept(options: GlobalOptions, config: AppConfig, provider: str) -> CachedCatalogue:
    from jp.app.models import kept_of

    kept = kept_of(config.providers.llm, provider)
    if kept.problem:
        options.notice(f"{kept.problem}, so it is ignored; `jp model ls {provider} --refresh` replaces it")
    return kept


def _refreshed(
    options: GlobalOptions, config: AppConfig, providers: Sequence[str], *, named: bool
) -> RefreshResult | ExitCode:
    """Return the answers of the providers.

    Raises:
        JpError: none of them has answered.
    """
    from jp.cli.model.catalogues import refresh

    asked = refresh(options, config, providers, named=named)
    if isinstance(asked, ExitCode):
        return asked
    if named and asked.failed:
        raise asked.failed[providers[0]]
    _note_missing(options, asked)
    return asked


def _note_missing(options: GlobalOptions, asked: RefreshResult) -> None:
    """Report the providers whose lists are missing, and why.

    Raises:
        ProviderError: all are missing.
    """
    from jp.provider.errors import ProviderError

    for name, error in asked.failed.items():
        options.notice(phrase(f"the models of {name} did not come: ", error.message))
    without = [f"{', '.join(asked.keyless)} (no key)"] if asked.keyless else []
    without += [f"{', '.join(asked.absent)} (no server answers)"] if asked.absent else []
    if not asked.kept:
        provider = asked.keyless[0] if len(asked.keyless) == 1 else "PROVIDER"
        hint = f"`jp keys set {provider}` stores a key; `jp model ls` lists what is known without asking"
        raise ProviderError("no provider has listed its models", kind="other", hint=hint)
    if without:
        options.notice(f"not asked: {'; '.join(without)}")


def _table(found: Sequence[Models], naming: ModelNames) -> Table:
    """Return the models; where there is little room, with short numbers and names and letters for abilities."""
    from msgspec.structs import replace

    from jp.render.tables import Table, short_count

    def rows(count: Callable[[int], str], able: Callable[[ModelFacts], str]) -> list[_Cells]:
        cells = [_row(known, models, naming, count) for models in found for known in models.known]
        known = [known for models in found for known in models.known]
        return [(*row, able(each)) for row, each in zip(cells, known, strict=True)]

    head, exact = _without_empty_aliases(rows("{:,}".format, _able))
    sections = [(_heading(models), len(models.known)) for models in found]
    table = Table(head=head, rows=exact, right=_RIGHT, keys=frozenset({1}), sections=sections)
    names = [known.model.name for models in found for known in models.known]
    letters_only = [(row[0], name, *row[2:]) for row, name in zip(rows(short_count, _able_letters), names, strict=True)]
    head, short = _without_empty_aliases(letters_only)
    if "alias" in head:  # the last column gives way, and a request depends on what a model can do
        head, *short = ((*row[:_ALIAS], *row[_ALIAS + 1 :], row[_ALIAS]) for row in (head, *short))
    letters = ", ".join(f"{word[0]} {word}" for _, word in _ABLE)
    return replace(
        table, narrow=replace(table, head=head, rows=short, note=f"(a model is PROVIDER/NAME; {_HEAD[-1]}: {letters})")
    )


def _able(known: ModelFacts) -> str:
    return " ".join(_marked_if_inferred(word, field, known) for field, word in _ABLE if known.capabilities[field])


def _able_letters(known: ModelFacts) -> str:
    return "".join(word[0] for field, word in _ABLE if known.capabilities[field])


def _without_empty_aliases(rows: Sequence[_Cells]) -> tuple[_Cells, Sequence[_Cells]]:
    """Return the head and the rows, without the column of aliases if there are none."""
    if any(row[_ALIAS] for row in rows):
        return _HEAD, rows
    head, *others = ((*row[:_ALIAS], *row[_ALIAS + 1 :]) for row in (_HEAD, *rows))
    return head, others


def _row(known: ModelFacts, models: Models, naming: ModelNames, count: Callable[[int], str]) -> _Cells:
    from jp.cli.model.show import is_listed

    details, text = known.details, str(known.model)
    mark = "*" if text == naming.in_use else "?" if is_listed(known, models.kept) is False else ""
    prices = (details.input_price, details.output_price, details.cache_read_price)
    return (
        mark,
        text,
        *("-" if size is None else count(size) for size in (details.context_window, details.max_output)),
        *(_price(price) for price in prices),
        ", ".join(naming.aliases.get(text, ())),
        _marked_if_inferred(_levels(known.reasoning), "reasoning", known),
    )


def _marked_if_inferred(text: str, field: str, known: ModelFacts) -> str:
    """Return a capability, marked if it is only inferred from the model's name."""
    return f"{text}?" if known.sources[field] == "inferred" and text != "-" else text


def _price(price: float | None) -> str:
    if price is None:
        return "-"
    return f"{price:.6g}" if price else "free"


def _levels(levels: Sequence[str]) -> str:
    return levels[0] if len(levels) == 1 else f"{levels[0]}…{levels[-1]}" if levels else "-"


def _heading(models: Models) -> str:
    if not models.known:
        return f"{models.provider}: {', '.join(_facts(models)) or _unknown(models)}"
    return f"{models.provider}: {', '.join((*_facts(models), 'prices in USD for a million tokens'))}"


def _unknown(models: Models) -> str:
    return f"nothing is known yet; `jp model ls {models.provider} --refresh` asks"


def _facts(models: Models) -> Iterator[str]:
    """Yield the sources of the list, and what it does not contain."""
    from jp.cli.model.show import catalogue_date

    if models.table_date is not None:
        yield f"table of {models.table_date}"
    catalogue = models.kept.catalogue
    if catalogue is None:
        return
    yield f"catalogue of {catalogue_date(catalogue)}"
    if not catalogue.models:
        yield "which is empty"
    if models.omitted:
        yield f"{models.omitted:,} not shown (--all)"
    if catalogue.skipped:
        yield f"{catalogue.skipped:,} skipped that cannot be used"


def _heading_value(models: Models) -> dict[str, object]:
    from jp.cli.model.show import age_secs

    catalogue = models.kept.catalogue
    kept = None
    if catalogue is not None:
        kept = {
            "at": catalogue.at,
            "age_secs": age_secs(catalogue),
            "base_url": catalogue.base_url,
            "models": len(catalogue.models),
            "skipped": catalogue.skipped,
        }
    return {
        "provider": models.provider,
        "table_date": models.table_date,
        "catalogue": kept,
        "omitted": models.omitted,
    }
