"""`jp query --dry-run`: the request that would be sent, its tokens, and what it would cost."""

from __future__ import annotations

import msgspec

from jp.app.query.attachments import RestoringLoader
from jp.app.query.conversation import QueryConversation
from jp.app.query.wiring import Wiring, say_what_is_omitted
from jp.compaction.fact_lines import StatusLineFormatter
from jp.conversation.entries import ChatRequest, TurnStart, Usage
from jp.errors import UsageError
from jp.provider.base import Sections, WireRequest
from jp.provider.http import HttpProvider
from jp.provider.registry import cloud_of, kind_of, vendor_of, vendors
from jp.provider.vendor import read_token_count
from jp.remedies import Option, phrase
from jp.turn.bound_reasoning import render_bound
from jp.turn.measuring import prompt_size
from jp.turn.request import InlineLoader, build_thread


async def count_tokens(wiring: Wiring, request: WireRequest) -> int:
    """Return the number of tokens that the provider counts in `request`. It is asked for nothing else.

    Raises:
        UsageError: it does not count.
        AuthenticationError: there is no key.
        ProviderError: it was asked in vain.
    """
    settings, name = wiring.config.providers.llm, wiring.model.provider
    provider = wiring.provider if wiring.cap is None else wiring.cap.inner
    cloud = cloud_of(settings, name)
    count = None if cloud is not None and not cloud.offer.counts else vendor_of(kind_of(settings, name)).count
    if count is None or not isinstance(provider, HttpProvider):
        who = repr(name) if cloud is None else f"{name!r} ({cloud.title})"
        counting = ", ".join(vendor.id for vendor in vendors() if vendor.count is not None)
        raise UsageError(
            phrase(f"{who} does not count tokens, so ", Option.EXACT, " is of no use"),
            hint=phrase("remove ", Option.EXACT, f" for an estimate; those that count are: {counting}"),
        )
    asking = count(request, None if cloud is None else cloud.platform)
    return read_token_count(name, await provider.ask(asking))


_NEXT = "next"
"""The id of an entry that is not written."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """About how many tokens each section of a request has; `usd` is the price of all as uncached input.

    `answers` is how many answers of the model have taught by what its tokens differ from the usual: it takes `ratio`
    for one of these.
    """

    tools: int
    system: int
    messages: int
    total: int
    context_window: int | None
    usd: float | None
    ratio: float
    answers: int


class Exact(msgspec.Struct, frozen=True, kw_only=True):
    """The number of a request's tokens, who counted them, and what they cost as uncached input."""

    tokens: int
    by: str
    usd: float | None


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """The request that would be sent, and its size."""

    model: str
    request: WireRequest
    estimate: Estimate
    exact: Exact | None


async def preview_request(held: QueryConversation | None, wiring: Wiring, request: ChatRequest) -> DryRun:
    """Return the request; nothing is written, and sent only with `exact`, to have its tokens counted.

    Raises:
        UsageError: nobody counts them.
        ProviderError: they could not be counted.
    """
    entries = () if held is None else held.entries
    loader = RestoringLoader(InlineLoader() if held is None else held.loader, request)
    upcoming = (TurnStart(id=f"{_NEXT}-turn"), msgspec.structs.replace(request, id=f"{_NEXT}-request"))
    thread = build_thread((*entries, *upcoming), wiring.settings, loader=loader, status_formatter=StatusLineFormatter())
    for sentence in loader.notices():
        wiring.notice(sentence)
    wire = render_bound(wiring.provider, thread, entries).wire
    say_what_is_omitted(wiring, wire)
    return DryRun(
        model=str(wiring.model),
        request=wire,
        estimate=_estimate(wiring, wire.sections),
        exact=await _count(wiring, wire) if wiring.context.arguments.exact else None,
    )


def _estimate(wiring: Wiring, sections: Sections) -> Estimate:
    from jp.app.estimates import known_error
    from jp.app.models import details_of

    known = known_error(str(wiring.model))
    size = prompt_size(sections).scaled(known.ratio)
    return Estimate(
        tools=size.tools,
        system=size.system,
        messages=size.messages,
        total=size.total,
        context_window=details_of(wiring.config, wiring.model).context_window,
        usd=_usd(wiring, size.total),
        ratio=known.ratio,
        answers=known.answers,
    )


async def _count(wiring: Wiring, wire: WireRequest) -> Exact:

    with wiring.context.options.progress(f"{wiring.model} counts the tokens"):
        tokens = await count_tokens(wiring, wire)
    return Exact(tokens=tokens, by=wiring.model.provider, usd=_usd(wiring, tokens))


def _usd(wiring: Wiring, tokens: int) -> float | None:
    from jp.app.models import details_of
    from jp.provider.models import cost

    return cost(Usage(input=tokens), details_of(wiring.config, wiring.model))
