"""Whether it is time to digest. An edit costs the provider's cache everything behind it, so it is rare and large."""

from __future__ import annotations

from typing import Literal

import msgspec

from jp.context.budget import Budget, threshold

_TIER_PERCENT = 75
_LEAST_TOKENS = 4_096
_LEAST_PERCENT = 10

Verdict = Literal["over_threshold", "cold_cache", "below_threshold", "not_rearmed", "too_little"]
"""Why it runs, or does not. `not_rearmed`: it has grown too little since the last time. `too_little`: there is too
little to gain.
"""


class Occasion(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens: `used` is what the next request would take, measured or estimated.

    `is_cold` says that the provider's cache has expired. `rearm_at` is what the last `Decision` that ran came with; a
    host keeps it with the conversation, so that it survives a restart.
    """

    budget: Budget
    used: int
    is_cold: bool = False
    rearm_at: int = 0


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """`rearm_at`: so many tokens must be used before it runs again; what it was where it does not run now."""

    run: bool
    verdict: Verdict
    rearm_at: int


def digest_threshold(budget: Budget) -> int:
    """From how many tokens on old results are digested: before anything has to be summarised."""
    return threshold(budget) * _TIER_PERCENT // 100


def least_reclaimed(occasion: Occasion) -> int:
    """How many tokens a digest has to free: a tenth of the request and at least 4,096, in a small window fewer."""
    least = min(_LEAST_TOKENS, max(occasion.budget.window, 0) * _LEAST_PERCENT // 100)
    return max(least, occasion.used * _LEAST_PERCENT // 100, 1)


def decide_digest(occasion: Occasion, reclaimable: int) -> Decision:
    """Whether to digest now, where that would free `reclaimable` tokens.

    With a warm cache only from the threshold on, and after a digest only once the request has grown by what that freed.
    """
    if not occasion.is_cold:
        if occasion.used < digest_threshold(occasion.budget):
            return Decision(run=False, verdict="below_threshold", rearm_at=occasion.rearm_at)
        if occasion.used < occasion.rearm_at:
            return Decision(run=False, verdict="not_rearmed", rearm_at=occasion.rearm_at)
    if reclaimable < least_reclaimed(occasion):
        return Decision(run=False, verdict="too_little", rearm_at=occasion.rearm_at)
    verdict = "cold_cache" if occasion.is_cold else "over_threshold"
    return Decision(run=True, verdict=verdict, rearm_at=occasion.used)
