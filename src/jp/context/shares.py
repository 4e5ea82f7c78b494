"""A whole in integer shares, so that what is shown adds up."""

from __future__ import annotations

from collections.abc import Sequence


def apportion(weights: Sequence[int], total: int) -> tuple[int, ...]:
    """`total` in shares by `weights`, which are not negative; the shares add up to it.

    What rounding leaves goes to the largest remainders, and to earlier ones among equals. What has a weight has a share
    of at least 1, as long as the total is enough for that. Without any weight, every share is 0.
    """
    whole = sum(weights)
    if whole <= 0:
        return (0,) * len(weights)
    shares = [weight * total // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda number: -(weights[number] * total % whole))
    for number in by_remainder[: total - sum(shares)]:
        shares[number] += 1
    nothing = [number for number, weight in enumerate(weights) if weight and not shares[number]]
    if total >= sum(map(bool, weights)):
        for number in nothing:
            shares[shares.index(max(shares))] -= 1
            shares[number] = 1
    return tuple(shares)
