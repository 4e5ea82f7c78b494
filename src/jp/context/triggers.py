"""Why something is left out now, or is not: a code and its numbers, which can be logged as they are."""

from __future__ import annotations

from typing import Literal

import msgspec

Reason = Literal["threshold", "hard_limit", "manual", "provider_overflow", "idle_cold_cache"]
"""`hard_limit`: the next request would not fit. `provider_overflow`: the provider said so. `idle_cold_cache`: so much
time has passed that the cache is gone, and an edit costs nothing.
"""

Obstacle = Literal["below", "cooldown", "blocked_thrash", "infeasible", "min_reclaim"]
"""`below`: there is no reason. `cooldown`: it was tried and failed a moment ago. `blocked_thrash`: it was tried again
and again without effect. `infeasible`: there is nothing to leave out. `min_reclaim`: there is too little of it.
"""


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens: in `used` what the last request took, in `projected` what the next one will.

    `limit` is the window without what is reserved for the answer; `reclaimable` is the estimate of what can be left
    out, and `least` how much that has to be, to be worth an edit.
    """

    used: int
    projected: int
    threshold: int
    limit: int
    reclaimable: int
    least: int = 0


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What else the host knows.

    `is_manual`: a person asks for it. `has_overflowed`: the provider refused the request as too long. `is_cold`: its
    cache has expired. `is_cooling` and `is_blocked`: see `Obstacle`.
    """

    is_manual: bool = False
    has_overflowed: bool = False
    is_cold: bool = False
    is_cooling: bool = False
    is_blocked: bool = False


class Triggered(msgspec.Struct, frozen=True, kw_only=True, tag_field="verdict", tag="triggered"):
    """Something is to be left out."""

    reason: Reason
    numbers: Numbers


class NotTriggered(msgspec.Struct, frozen=True, kw_only=True, tag_field="verdict", tag="not_triggered"):
    """Nothing is to be left out. `reason` is why it would have been, but for the obstacle."""

    because: Obstacle
    numbers: Numbers
    reason: Reason | None = None


Verdict = Triggered | NotTriggered

_USUAL = Circumstances()


def decide(numbers: Numbers, circumstances: Circumstances = _USUAL) -> Verdict:
    """Whether something is to be left out before the next request, and why or why not.

    A request that would not fit, and a person who asks, are not held up by failures of a moment ago.
    """
    reason = _reason(numbers, circumstances)
    if reason is None:
        return NotTriggered(because="below", numbers=numbers)
    obstacle = _obstacle(reason, numbers, circumstances)
    if obstacle is not None:
        return NotTriggered(because=obstacle, numbers=numbers, reason=reason)
    return Triggered(reason=reason, numbers=numbers)


def _reason(numbers: Numbers, circumstances: Circumstances) -> Reason | None:
    reasons: tuple[tuple[Reason, bool], ...] = (
        ("provider_overflow", circumstances.has_overflowed),
        ("hard_limit", numbers.projected > numbers.limit),
        ("manual", circumstances.is_manual),
        ("threshold", numbers.projected >= numbers.threshold),
        ("idle_cold_cache", circumstances.is_cold and numbers.reclaimable >= max(numbers.least, 1)),
    )
    return next((reason for reason, holds in reasons if holds), None)


def _obstacle(reason: Reason, numbers: Numbers, circumstances: Circumstances) -> Obstacle | None:
    is_urgent = reason in {"provider_overflow", "hard_limit", "manual"}
    obstacles: tuple[tuple[Obstacle, bool], ...] = (
        ("infeasible", numbers.reclaimable <= 0),
        ("blocked_thrash", circumstances.is_blocked and not is_urgent),
        ("cooldown", circumstances.is_cooling and not is_urgent),
        ("min_reclaim", numbers.reclaimable < numbers.least and not is_urgent),
    )
    return next((obstacle for obstacle, holds in obstacles if holds), None)
