"""How much a model is asked to think: the user's words, shares of the output, a vendor's levels. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from jp.conversation.thread import Effort, Parameters
from jp.provider.abilities import Level

SHARES: dict[Effort, int] = {"none": 0, "xlow": 10, "low": 20, "medium": 50, "high": 80, "xhigh": 90, "max": 100}
"""Thinking tokens for an effort, in percent of the longest output."""

_EFFORTS: tuple[tuple[int, Effort], ...] = ((90, "max"), (80, "xhigh"), (50, "high"), (20, "medium"))
"""Efforts for more thinking tokens than this, in percent of the longest output."""

_RANKS: dict[Level | Effort, int] = {
    "none": 0,
    "minimal": 1,
    "xlow": 1,
    "low": 2,
    "medium": 3,
    "high": 4,
    "xhigh": 5,
    "max": 6,
}


def is_off(parameters: Parameters) -> bool:
    """Whether the model is not to think."""
    return parameters.reasoning in {"off", "none"}


def effort_of(parameters: Parameters, max_tokens: int) -> Effort | None:
    """The effort that is asked for, None where the model decides or is not to think."""
    match parameters.reasoning:
        case None | "auto" | "off":
            return None
        case int(tokens):
            return _effort_for(100 * tokens / max_tokens)
        case effort:
            return effort


def _effort_for(percent: float) -> Effort:
    for least, effort in _EFFORTS:
        if percent > least:
            return effort
    return "low"


def nearest_level(effort: Effort, levels: Sequence[Level]) -> Level | None:
    """The highest of a vendor's levels, least first, that is not above an effort; where all are, the least.

    Who wants to think at all is not given `none`. None where there are no levels.
    """
    usable: list[Level] = [level for level in levels if level != "none" or effort == "none"]
    below: list[Level] = [level for level in usable if _RANKS[level] <= _RANKS[effort]]
    return below[-1] if below else next(iter(usable), None)
