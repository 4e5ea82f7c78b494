"""`--max-cost`: what a query may cost, and what is said where that is reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jp.app.models import pricing
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry, ChatRequest, CycleEnd, TurnStart
from jp.conversation.turns import prompt_tokens
from jp.errors import ConfigurationError, ExitCode, JpError
from jp.provider.base import ModelDetails, Provider, WireRequest
from jp.provider.registry import ModelId
from jp.remedies import Ask, Option, SetSettings, UseOption, phrase
from jp.turn.bound_reasoning import render_bound
from jp.turn.cost_cap import CappedProvider, Prices, Purse, prices_of
from jp.turn.request import Loader, RequestSettings, build_thread, context_in_force

_NEXT = "next"
"""The id of an entry that is not written yet."""


class OverBudgetError(JpError):
    """The error of a query that has used up what it may cost, or whose next request would cost more than is left."""

    exit_code = ExitCode.QUOTA


def capped(provider: Provider, model: ModelId, config: AppConfig, limit: float) -> CappedProvider:
    """Return the provider with a limit in USD on what everything that is sent costs.

    Raises:
        ConfigurationError: what the model costs is not known.
    """
    prices = _prices(model, config, limit, cache=config.assistant.request.cache)
    return CappedProvider(provider, Purse(limit), prices, ratio=_ratio(model))


def beside(main: CappedProvider, provider: Provider, model: ModelId, config: AppConfig) -> CappedProvider:
    """Another model that is paid from the same purse. Of `provider`, which may be `main`, the prices are the model's.

    Raises:
        ConfigurationError: what the model costs is not known.
    """
    inner = main.inner if provider is main else provider
    prices = _prices(model, config, main.purse.limit, cache="off")
    return CappedProvider(inner, main.purse, prices, ratio=_ratio(model))


def payment(cap: CappedProvider | None, config: AppConfig) -> Callable[[Provider, ModelId], CappedProvider] | None:
    """Return a function that has other models paid from the purse of `cap`; None where costs are not limited."""
    if cap is None:
        return None

    def pay(provider: Provider, model: ModelId) -> CappedProvider:
        return beside(cap, provider, model, config)

    return pay


def permits_turn(
    cap: CappedProvider,
    entries: Sequence[AnyEntry],
    request: ChatRequest,
    settings: RequestSettings,
    loader: Loader,
) -> bool:
    """Return whether the first request of a turn that asks `request` after `entries` may be sent.

    Raises:
        StorageError: content that it shows cannot be read.
    """
    return cap.permits(_first_request(cap, entries, request, settings, loader))


def over_budget(cap: CappedProvider) -> OverBudgetError:
    """Return the error for a limit that is reached."""
    spent = cap.purse.spent
    limit = _usd(cap.purse.limit)
    if not spent:
        least = _usd(cap.least_refused)
        return OverBudgetError(
            f"the request alone costs about {least}, and the limit on costs is {limit}; nothing was sent or written",
            hint=phrase(
                *("raise it with `", UseOption(Option.MAX_COST, "USD")),
                *("`, or send less: `", Ask((UseOption(Option.DRY_RUN),)), "` shows what is sent"),
            ),
        )
    used = f"about {_usd(spent)} is spent"
    if spent < cap.purse.limit:
        used += f", and the next request costs at least {_usd(cap.least_refused)}"
    further = (UseOption(Option.TARGET, "last"), UseOption(Option.MAX_COST, "USD"))
    return OverBudgetError(
        f"the turn was stopped by the limit on costs of {limit} ({used}); the output so far is kept",
        hint=phrase("go on with `", Ask(further, words="continue"), "`"),
    )


def _first_request(
    cap: CappedProvider,
    entries: Sequence[AnyEntry],
    request: ChatRequest,
    settings: RequestSettings,
    loader: Loader,
) -> WireRequest:
    from msgspec.structs import replace

    from jp.compaction.fact_lines import StatusLineFormatter

    cap.cached = max(cap.cached, _last_prompt(entries, settings))
    upcoming = (TurnStart(id=f"{_NEXT}-turn"), replace(request, id=f"{_NEXT}-request"))
    thread = build_thread((*entries, *upcoming), settings, loader=loader, status_formatter=StatusLineFormatter())
    return render_bound(cap, thread, entries).wire


def _last_prompt(entries: Sequence[AnyEntry], settings: RequestSettings) -> int:
    """Return the tokens of the newest prompt, which the provider's cache may still hold. None of another model's."""
    context = context_in_force(entries)
    if context is None or (context.provider, context.model) != (settings.provider, settings.model):
        return 0
    sizes = (prompt_tokens(entry.usage) for entry in reversed(entries) if isinstance(entry, CycleEnd))
    return next((size for size in sizes if size), 0)


def _ratio(model: ModelId) -> float:
    from jp.app.estimates import known_error

    return known_error(str(model)).ratio


def _prices(model: ModelId, config: AppConfig, limit: float, *, cache: str) -> Prices:
    details = pricing(config)(model.provider, model.name)
    prices = prices_of(details, cache=cache)
    if prices is None:
        raise ConfigurationError(
            f"there is a limit on costs ({_usd(limit)}), but what {str(model)!r} costs is not known",
            hint=_price_hint(model, details),
        )
    return prices


def _price_hint(model: ModelId, details: ModelDetails) -> str:
    from shlex import quote

    from jp.config.schema import key_text

    table = ("providers", "llm", model.provider, "models", details.id)
    prices = [quote(f"{key_text((*table, name))}={usd}") for name, usd in (("input_price", 3), ("output_price", 15))]
    return phrase("say it, in USD for a million tokens: `", SetSettings(tuple(prices)), "`")


def _usd(amount: float) -> str:
    """Return an amount as it was typed: limits may be smaller than what is worth showing elsewhere."""
    digits = f"{amount:.6f}".rstrip("0").rstrip(".")
    return "<$0.000001" if digits == "0" else f"${digits}"
