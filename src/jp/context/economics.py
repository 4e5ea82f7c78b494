"""What an edit of a prompt costs and saves, where a provider keeps the beginning of prompts in a cache.

An edit makes the provider read everything behind it anew, and saves what it leaves out with each request from then on.
Exact arithmetic: a break-even that is off by one request decides wrongly at the edge.
"""

from __future__ import annotations

from fractions import Fraction

import msgspec

_MILLION = 1_000_000


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """USD for a million tokens, as the host knows them.

    Without a price of reading or writing the cache, such tokens cost what uncached input does.
    """

    input: float
    cache_read: float | None = None
    cache_write: float | None = None


class PromptEdit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit, in tokens: how many stand from the first changed one on, `before` and `after` it.

    What stands before that place costs the same either way. `once` is what making the edit costs in USD, such as the
    request for a summary.
    """

    before: int
    after: int
    once: float = 0.0


class EditCost(msgspec.Struct, frozen=True, kw_only=True):
    """What comes of an edit, in tokens and USD.

    `rewritten` tokens are read anew by the next request, `saved` fewer are read by each. `next_request` is how much
    more that one costs than without the edit, what the edit itself costs included, and negative where it is cheaper;
    every later one costs `each_later` less. `break_even` is the number of further requests after which the edit has
    paid for itself, None where it never does.
    """

    rewritten: int
    saved: int
    next_request: float
    each_later: float
    break_even: int | None


def cost_of_edit(edit: PromptEdit, prices: Prices, *, is_warm: bool) -> EditCost:
    """What `edit` costs. `is_warm` says that the cache still holds what stands there now.

    A cold cache has to be written either way, so that an edit pays at once.
    """
    read, write = _rates(prices)
    before, after = Fraction(edit.before), Fraction(edit.after)
    now = write * after + _exact(edit.once) * _MILLION - (read if is_warm else write) * before
    later = read * (before - after)
    return EditCost(
        rewritten=edit.after,
        saved=edit.before - edit.after,
        next_request=float(now / _MILLION),
        each_later=float(later / _MILLION),
        break_even=_break_even(now, later),
    )


def _break_even(now: Fraction, later: Fraction) -> int | None:
    """The least number of requests, at least 1, whose sum is no dearer with the edit than without."""
    if later < 0 or (later == 0 and now > 0):
        return None
    return 1 if now <= 0 else 1 + -(-now // later)


def _rates(prices: Prices) -> tuple[Fraction, Fraction]:
    """What a token costs that is read from the cache, and one that is written to it."""
    plain = _exact(prices.input)
    read = plain if prices.cache_read is None else _exact(prices.cache_read)
    return read, plain if prices.cache_write is None else _exact(prices.cache_write)


def _exact(price: float) -> Fraction:
    """A price as it is written, and not the binary number nearest to it."""
    return Fraction(repr(price))
