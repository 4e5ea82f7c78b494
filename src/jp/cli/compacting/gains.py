"""What each profile would free now, for whoever looks at a context."""

from __future__ import annotations

from collections.abc import Sequence
from time import time

import msgspec

from jp.cli.compacting.order import order_of
from jp.cli.compacting.summarizer import LARGE_WINDOW
from jp.compaction.fact_lines import FactLines
from jp.compaction.planning import Planner
from jp.config.compaction import profiles_of
from jp.config.model import AppConfig
from jp.context.summarizing import summary_limit
from jp.conversation.entries import AnyEntry


class ProfileGain(msgspec.Struct, frozen=True, kw_only=True):
    """What a profile would free, in tokens, and of how many turns. With a summary it is the least that can be told."""

    profile: str
    freed: int
    turns: int
    with_summary: bool


def gains_of(
    entries: Sequence[AnyEntry], config: AppConfig, *, window: int | None, ratio: float
) -> Sequence[ProfileGain]:
    """The profiles, those that free most first. `window` is that of the model, `ratio` its tokens for one estimated."""
    compaction = config.conversation.compaction
    planner = Planner(entries, FactLines(), config.conversation.tools, now=time())
    gains: list[ProfileGain] = []
    for name in profiles_of(compaction):
        order = order_of(compaction, profile=name)
        plan = planner.plan(order.wish, order.bounds)
        covered = {number for overlay in plan.overlays for number in range(overlay.from_turn, overlay.to_turn + 1)}
        freed = planner.effect(plan.overlays).freed
        if plan.summary is not None:
            told = range(plan.summary.first, plan.summary.last + 1)
            replaced = sum(turn.tokens for turn in planner.shape.turns if turn.number in told)
            freed += max(replaced - summary_limit(window or LARGE_WINDOW), 0)
            covered.update(told)
        gains.append(
            ProfileGain(
                profile=name,
                freed=round(freed * ratio),
                turns=len(covered),
                with_summary=plan.summary is not None,
            )
        )
    return sorted(gains, key=lambda gain: (-gain.freed, gain.profile))
