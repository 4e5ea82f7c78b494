"""Writing overlays: planned against the log as it is, appended together, and never taken back but by a revert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec.structs import replace

from jp.cli.compacting.order import Order
from jp.cli.compacting.preview import Previewer
from jp.cli.places import AnyWorkspace
from jp.compaction.planning import Effect, Plan
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry, Compaction, Usage
from jp.provider.registry import ModelId
from jp.workspace.stamp import SYSTEM, timestamp

if TYPE_CHECKING:
    from jp.cli.compacting.summarizer import Pay
    from jp.turn.ports import Recorder


class Appender(Protocol):
    """The log of a conversation."""

    def append_together(self, entries: Sequence[AnyEntry]) -> object:
        """Append all of them or none."""
        ...


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """Overlays that are ready to be written, and what they do.

    `unsupported` counts claims of a summary that nothing bore out; `usage` is what the summary took,
    `budget` the tokens that the view may have.
    """

    overlays: tuple[Compaction, ...]
    effect: Effect
    unsupported: int = 0
    usage: Usage = Usage()
    model: ModelId | None = None
    budget: int | None = None


async def make(
    previewer: Previewer,
    plan: Plan,
    order: Order,
    *,
    entries: Sequence[AnyEntry],
    config: AppConfig,
    workspace: AnyWorkspace,
    recorder: Recorder,
    notice: Callable[[str], None],
    pay: Pay | None = None,
) -> Made:
    """The overlays of `plan`, its summary written by a model. One that would not make the view smaller is left out.

    With `pay` the summary is paid from what a query may cost.

    Raises:
        JpError: the summary did not come to be; nothing was written.
    """
    overlays = plan.overlays
    if plan.summary is None:
        return Made(overlays=overlays, effect=previewer.effect(overlays), budget=previewer.budget_of(order))
    from jp.cli.compacting.summarizer import summarizer_for

    summarizer = summarizer_for(config, order.summary, workspace, model=previewer.model, notice=notice, pay=pay)
    limit = previewer.summary_limit(order, plan, plan.summary)
    written = await summarizer.write(entries, plan.summary, order.summary, recorder, limit=limit)
    summary = replace(previewer.planner.bare(plan.summary), summary=written.policy)
    planner = previewer.planner
    if planner.size((*overlays, summary)) >= planner.size(overlays):
        notice("the summary is no shorter than what it stands for, so it is not used")
        rest = previewer.plan(replace(order, wish=replace(order.wish, summary=False))).overlays
        return Made(
            overlays=rest,
            effect=previewer.effect(rest),
            usage=written.usage,
            model=written.model,
            budget=previewer.budget_of(order),
        )
    with_summary = previewer.settled(order, plan, summary)
    return Made(
        overlays=with_summary,
        effect=previewer.effect(with_summary),
        unsupported=written.unsupported,
        usage=written.usage,
        model=written.model,
        budget=previewer.budget_of(order),
    )


def append(log: Appender, overlays: Sequence[Compaction]) -> None:
    """Append overlays in one step, under one time: they were made together, and are undone together.

    Raises:
        StorageError: they could not be written.
    """
    at = timestamp(SYSTEM.now())
    log.append_together([replace(overlay, at=at) for overlay in overlays])
