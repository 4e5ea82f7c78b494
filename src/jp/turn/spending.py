"""The cost of requests: sums of tokens and money that also count what is unknown. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

import msgspec

from jp.conversation.entries import AnyEntry, Compaction, InquiryResponse, Usage, add_usage
from jp.conversation.turns import RequestUsage
from jp.provider.base import ModelDetails
from jp.provider.models import cost

DetailsOf = Callable[[str, str], ModelDetails]
"""A function that returns the details of a model, by provider and name."""


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens and cost of cycles.

    `usage` and `usd` sum what is known. `untold` counts the cycles whose tokens were not all reported, `unpriced` those
    whose cost is unknown. Unreported tokens have no price, unless the model is free.
    """

    cycles: int = 0
    usage: Usage = Usage()
    usd: float = 0.0
    untold: int = 0
    unpriced: int = 0

    @property
    def known_usd(self) -> float | None:
        """The total cost, None if a part is unknown."""
        return None if self.unpriced else self.usd


def add_spending(one: Spending, other: Spending) -> Spending:
    """Both; what they count must be different cycles."""
    return Spending(
        cycles=one.cycles + other.cycles,
        usage=add_usage(one.usage, other.usage),
        usd=one.usd + other.usd,
        untold=one.untold + other.untold,
        unpriced=one.unpriced + other.unpriced,
    )


def total_of(spendings: Iterable[Spending]) -> Spending:
    """All of them; what they count must be different cycles."""
    total = Spending()
    for spending in spendings:
        total = add_spending(total, spending)
    return total


def is_free(details: ModelDetails) -> bool:
    """Return True if a model is known to cost nothing."""
    return details.input_price == details.output_price == 0


def price_of(usage: Usage | None, details: ModelDetails, *, cache: str = "short") -> float | None:
    """Return the cost of one request in USD, None if unknown. `cache` is the retention that was set for its prompt."""
    if usage is None:
        return 0.0 if is_free(details) else None
    return cost(usage, details, long_cache=cache == "long")


def by_cycle(requests: Iterable[RequestUsage], details_of: DetailsOf) -> list[tuple[RequestUsage, Spending]]:
    """Return the spending of each cycle over all its attempts, with the last attempt. `requests` are in order."""
    found: list[tuple[RequestUsage, Spending]] = []
    for _, attempts in groupby(requests, lambda request: (request.turn, request.cycle)):
        group = list(attempts)
        found.append((group[-1], _of_cycle(group, details_of)))
    return found


def of_inquiries(answers: Iterable[InquiryResponse], details_of: DetailsOf) -> Spending:
    """Return the known spending of a model's answers to questions of tools. These are not cycles."""
    return total_of(_beside(answer.model, answer.usage, details_of) for answer in answers)


def of_summaries(entries: Iterable[AnyEntry], details_of: DetailsOf) -> Spending:
    """Return the known spending of the summaries of all compactions in `entries`, undone or not."""
    summaries = (entry.summary for entry in entries if isinstance(entry, Compaction) and entry.summary is not None)
    return total_of(_beside(summary.model, summary.usage, details_of) for summary in summaries)


def _beside(model: str | None, usage: Usage | None, details_of: DetailsOf) -> Spending:
    """Return the spending of a request that is not a cycle; `model` is `provider/name`."""
    provider, _, name = (model or "").partition("/")
    price = price_of(usage, details_of(provider, name))
    return Spending(usage=usage or Usage(), usd=price or 0.0)


def _of_cycle(attempts: list[RequestUsage], details_of: DetailsOf) -> Spending:
    usages = [attempt.usage for attempt in attempts]
    prices = [
        price_of(usage, details_of(*attempt.model), cache=attempt.cache)
        for usage, attempt in zip(usages, attempts, strict=True)
    ]
    usage = Usage()
    for known in usages:
        usage = add_usage(usage, known or Usage())
    return Spending(
        cycles=1,
        usage=usage,
        usd=sum(price or 0.0 for price in prices),
        untold=int(None in usages),
        unpriced=int(None in prices),
    )
