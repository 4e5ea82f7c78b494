"""A limit in money on what several requests cost together, a title beside the turn included.

What is decided here is decided before a request is sent and whenever something of an answer has come: from what the
provider reports, and from an estimate of what it has not reported yet.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from msgspec.structs import replace

from jp.context.estimate import estimate_tokens
from jp.conversation.entries import Usage
from jp.conversation.turns import prompt_tokens
from jp.provider.base import (
    DataDelta,
    Finished,
    ModelDetails,
    Part,
    Provider,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
    WireRequest,
)
from jp.provider.models import cost
from jp.turn.measuring import RelayingProvider, prompt_size

CUT = "the limit on what it may cost"
"""The reason given for an answer that was cut here."""

_CONTENT = (TextDelta, ReasoningDelta, DataDelta, ToolCallStart, ToolArgumentsDelta)


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """The token prices of a model; see `prices_of`. `is_long` is true if prompts are cached for an hour."""

    details: ModelDetails
    is_long: bool = False

    def usd(self, usage: Usage) -> float:
        """Return the cost of one request."""
        return cost(usage, self.details, long_cache=self.is_long) or 0.0


def prices_of(details: ModelDetails, *, cache: str) -> Prices | None:
    """Return the prices of a model under the cache policy `cache`; None if they are unknown.

    If only those of input and output are known, cached tokens cost what input does.
    """
    price = details.input_price
    if price is None or details.output_price is None:
        return None
    writing = details.cache_write_price if details.cache_write_price is not None else price
    long = details.cache_write_long_price
    whole = replace(
        details,
        cache_read_price=price if details.cache_read_price is None else details.cache_read_price,
        cache_write_price=writing,
        cache_write_long_price=writing if long is None else long,
    )
    return Prices(details=whole, is_long=cache == "long")


def least_cost(tokens: int, prices: Prices, *, cached: int) -> float:
    """Return the minimum cost of a prompt of `tokens` tokens, of which `cached` may be read from the cache."""
    read = min(tokens, cached)
    reading = Usage(input=tokens - read, cache_read=read)
    return min(prices.usd(reading), prices.usd(Usage(input=tokens)))


def allows(limit: float, *, spent: float, upcoming: float) -> bool:
    """Return True if one more request that costs at least `upcoming` USD may be sent."""
    return spent < limit and spent + upcoming <= limit


class Meter(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one running request.

    `prompt` is the estimated size of the prompt; it counts from the first output until the provider reports usage.
    `unreported` is the estimated size of the output since the last report.
    """

    prompt: int
    usage: Usage | None = None
    unreported: int = 0
    began: bool = False

    def after(self, part: Part) -> Meter:
        """Return the meter after one more part."""
        match part:
            case UsageReport(usage=usage):
                return replace(self, usage=usage, unreported=0, began=True)
            case TextDelta() | ReasoningDelta() | DataDelta() | ToolArgumentsDelta():
                return replace(self, unreported=self.unreported + max(1, estimate_tokens(part.text)), began=True)
            case _:
                return replace(self, began=True)

    def tokens(self) -> Usage:
        """Return its tokens, as far as they are known or can be estimated."""
        if not self.began:
            return Usage()
        known = Usage(input=self.prompt) if self.usage is None else self.usage
        return replace(known, output=known.output + self.unreported)


class Purse:
    """The cost limit for a group of requests and their cost so far, in USD."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._spent: dict[int, float] = {}

    @property
    def spent(self) -> float:
        """The cost of all requests so far, including running ones."""
        return sum(self._spent.values())

    @property
    def is_empty(self) -> bool:
        """True if nothing is left."""
        return self.spent >= self.limit

    def open(self) -> int:
        """Return a number for one more request, which has cost nothing yet."""
        self._spent[len(self._spent)] = 0.0
        return len(self._spent) - 1

    def charge(self, number: int, usd: float) -> None:
        """Say what a request has cost by now, in all."""
        self._spent[number] = usd


class CappedProvider(RelayingProvider):
    """A provider whose requests are paid from a purse: none is sent that it cannot pay, and no answer goes on then.

    It is a `Cap`, too. `cached` is how many tokens of the next prompt the provider's cache may already hold. `stopped`
    says that a request was not sent, or its answer was cut; `least_refused` is what that request costs at least.
    `ratio` is how many tokens the model takes for one that is estimated.
    """

    def __init__(self, provider: Provider, purse: Purse, prices: Prices, *, ratio: float = 1.0) -> None:
        super().__init__(provider)
        self.purse = purse
        self.cached = 0
        self.stopped = False
        self.least_refused = 0.0
        self._prices = prices
        self._ratio = ratio

    def permits(self, request: WireRequest) -> bool:
        """See the port, `jp.turn.ports.Cap`."""
        least = least_cost(self._estimate(request), self._prices, cached=self.cached)
        if allows(self.purse.limit, spent=self.purse.spent, upcoming=least):
            return True
        self.stopped, self.least_refused = True, least
        return False

    async def stream(self, request: WireRequest) -> AsyncGenerator[Part, None]:
        """See the port. Where the purse is empty before the answer is whole, it ends as one that is too long does."""
        number, meter = self.purse.open(), Meter(prompt=self._estimate(request))
        async with aclosing(self.inner.stream(request)) as parts:
            async for part in parts:
                if isinstance(part, _CONTENT) and self.purse.is_empty:
                    self.stopped = True
                    yield Finished("length", CUT, is_final=True)
                    return
                meter = meter.after(part)
                tokens = meter.tokens()
                self.purse.charge(number, self._prices.usd(tokens))
                self.cached = prompt_tokens(tokens)
                yield part

    def _estimate(self, request: WireRequest) -> int:
        return prompt_size(request.sections).scaled(self._ratio).total
