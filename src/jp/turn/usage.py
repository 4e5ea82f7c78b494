"""Tokens and money that requests took, and the causes of cache misses. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Literal

import msgspec

from jp.conversation.entries import AnyEntry, Compaction, Digests, InquiryResponse, Usage, add_usage
from jp.conversation.turns import RequestUsage, prompt_tokens
from jp.provider.base import ModelDetails
from jp.provider.models import CacheFacts, cost

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
    """Return the sum; they must count different cycles."""
    return Spending(
        cycles=one.cycles + other.cycles,
        usage=add_usage(one.usage, other.usage),
        usd=one.usd + other.usd,
        untold=one.untold + other.untold,
        unpriced=one.unpriced + other.unpriced,
    )


def total_of(spendings: Iterable[Spending]) -> Spending:
    """Return the sum; they must count different cycles."""
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


Section = Literal["tools", "system", "message", "parameters", "nothing", "untold"]
"""`untold`: the log does not say what was sent."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The first thing in which a request differs from the one before it, in the order in which caches read it.

    Of a message, `message` is its number in the request, and `turn` the one that it is of, None where a change of what
    is shown has moved it. `parameters` are names, where it is only these that differ.
    """

    section: Section
    message: int | None = None
    turn: int | None = None
    parameters: tuple[str, ...] = ()


class Miss(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose prompt was not read from the cache, or less than half of what could be expected.

    `expected` and `read` are tokens; `seconds` passed since the request before had its answer, None where the log does
    not say.
    """

    turn: int
    cycle: int
    attempt: int
    change: Change
    expected: int
    read: int
    seconds: float | None


class CacheReport(msgspec.Struct, frozen=True, kw_only=True):
    """`lapsed` counts the requests that came when the cache had to be expected to have forgotten."""

    misses: tuple[Miss, ...]
    lapsed: int


def cache_report(
    requests: Iterable[RequestUsage],
    *,
    facts_of: Callable[[str, str], CacheFacts],
    seconds_of: Callable[[str], float | None],
) -> CacheReport:
    """Hold each request against the one before.

    `facts_of` is asked by provider and model; `seconds_of` gives a moment in seconds. Moments are hints only: a clock
    that ran backwards makes no difference.
    """
    trail = _Trail(facts_of, seconds_of)
    for request in requests:
        trail.follow(request)
    return CacheReport(misses=tuple(trail.misses), lapsed=trail.lapsed)


class _Base(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose prompt the provider has seen, and how many messages it had."""

    request: RequestUsage
    digests: Digests
    prompt: int
    messages: int
    ended_at: str


class _Trail:
    """Follows the requests of a stream. Memory and time grow with the digests in the log, not with the requests."""

    def __init__(self, facts_of: Callable[[str, str], CacheFacts], seconds_of: Callable[[str], float | None]) -> None:
        self.misses: list[Miss] = []
        self.lapsed = 0
        self._facts_of = facts_of
        self._seconds_of = seconds_of
        self._base: _Base | None = None
        self._kept: int | None = None  # the least that any request since `base` kept of the one before it
        self._owners: list[int | None] = []  # the turn of each message of the newest request
        self._turn: int | None = None  # of the newest request
        self._shown: set[tuple[str, str]] = set()  # models whose cache has shown itself

    def follow(self, request: RequestUsage) -> None:
        """Take the next request."""
        end = request.end
        if end is None:
            self._base = None  # nobody knows what was sent
            return
        kept = end.digests.kept if self._kept is None else min(self._kept, end.digests.kept)
        if self._base is not None and self._base.request.model != request.model:
            self._base = None
        usage = request.usage or Usage()
        if self._base is not None and prompt_tokens(usage):
            self._judge(self._base, request, kept, usage)
        self._own(end.digests, request.turn)
        self._kept = kept
        if usage.cache_read + usage.cache_write:
            self._shown.add(request.model)
        if prompt_tokens(usage):
            self._kept = None
            self._base = _Base(
                request=request,
                digests=end.digests,
                prompt=prompt_tokens(usage),
                messages=end.digests.kept + len(end.digests.messages),
                ended_at=end.at,
            )

    def _own(self, digests: Digests, turn: int) -> None:
        kept, count = digests.kept, digests.kept + len(digests.messages)
        is_shifted = count < len(self._owners)
        again = [None if is_shifted else owner for owner in self._owners[kept:count]]
        del self._owners[kept:]
        self._owners += again
        added = count - len(self._owners)
        if added > 1 and self._turn not in {None, turn}:
            self._owners += [self._turn] * (added - 1)  # a turn's answer is first sent with the next question
            added = 1
        self._owners += [turn] * added
        self._turn = turn

    def _judge(self, base: _Base, request: RequestUsage, kept: int, usage: Usage) -> None:
        if 2 * usage.cache_read >= base.prompt or not self._is_expected(base, request):
            return
        before, now = self._seconds_of(base.ended_at), self._seconds_of(request.asked_at)
        seconds = None if before is None or now is None else max(0.0, now - before)
        lifetime = self._facts_of(*request.model).lifetime(base.request.cache)
        if seconds is not None and seconds > lifetime:
            self.lapsed += 1
            return
        self.misses.append(
            Miss(
                turn=request.turn,
                cycle=request.cycle,
                attempt=1 if request.end is None else request.end.attempt,
                change=self._change(base, request, kept),
                expected=base.prompt,
                read=usage.cache_read,
                seconds=seconds,
            )
        )

    def _is_expected(self, base: _Base, request: RequestUsage) -> bool:
        if "off" in {base.request.cache, request.cache}:
            return False
        facts = self._facts_of(*request.model)
        if not (facts.is_certain or request.model in self._shown):
            return False
        used = base.request.usage or Usage()
        return base.prompt > facts.minimum or used.cache_read + used.cache_write > 0

    def _change(self, base: _Base, request: RequestUsage, kept: int) -> Change:
        now = Digests() if request.end is None else request.end.digests
        if Digests() in (base.digests, now):
            return Change(section="untold")
        if base.digests.tools != now.tools:
            return Change(section="tools")
        if base.digests.system != now.system:
            return Change(section="system")
        if kept < base.messages:
            owner = self._owners[kept] if kept < len(self._owners) else None
            return Change(section="message", message=kept, turn=owner)
        names = _changed_parameters(base.request, request)
        return Change(section="parameters", parameters=names) if names else Change(section="nothing")


def _changed_parameters(one: RequestUsage, other: RequestUsage) -> tuple[str, ...]:
    before, now = ({} if each.context is None else each.context.parameters for each in (one, other))
    return tuple(sorted(name for name in {*before, *now} if before.get(name) != now.get(name)))
