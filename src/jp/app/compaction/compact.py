"""Compacting a conversation: planned, made, written and undone."""

from __future__ import annotations

from collections.abc import Sequence
from time import time

import msgspec
from msgspec.structs import replace

from jp.app.compaction.order import CompactionOrder, PolicyFlags, RangeFlags, SummaryOrder, order_of
from jp.app.compaction.overlays import CompactionResult, Proposals, append, make
from jp.app.compaction.preview import Preview, Previewer
from jp.app.conversations import OpenConversation, ReadConversation, open_conversation, read_conversation
from jp.app.options import Options
from jp.app.settings import require_trust, tell_ignored
from jp.app.values import parse_turns
from jp.compaction.overlays import compactions_in_force
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry, Compaction, Revert
from jp.conversation.turns import turns_of
from jp.errors import UsageError

_ASK_FOR_SUMMARY = "add --summarize, or --profile heavy"


class CompactionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a compaction.

    Args:
        profile: its name; None for policies of its own, or the usual profile.
        policies: what is done to reasoning, tool calls and resources, and whether a summary is written.
        ranges: which turns; each bound as the command line takes it.
        model: who writes a summary; None for the profile's or the conversation's own.
        is_local: the summary is made of the log, without a model.
        budget: tokens that the view may have, such as `40k` or `25%`.
    """

    profile: str | None = None
    policies: PolicyFlags = PolicyFlags()
    ranges: RangeFlags = RangeFlags()
    model: str | None = None
    is_local: bool = False
    budget: str | None = None


class PlannedCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that a compaction would make to a conversation that was only read."""

    conversation: ReadConversation
    preview: Preview


def plan_compaction(options: Options, target: str, request: CompactionRequest) -> PlannedCompaction:
    """Return what `request` would do to the conversation `target`. Nothing is written, and no model is asked.

    Raises:
        UsageError: the request contradicts itself, or names no bound, turn or profile.
        JpError: there is no such conversation, or it cannot be read.
    """
    read = read_conversation(options, target)
    config = read.resolved.config
    order = order_for(config, request, read.entries)
    previewer = Previewer(read.entries, config, read.loader, now=time())
    return PlannedCompaction(conversation=read, preview=previewer.preview(order, previewer.plan(order)))


async def compact(options: Options, target: str, request: CompactionRequest) -> CompactionResult:
    """Compact the conversation `target`, and return what was written; nothing where nothing would be saved.

    Raises:
        JpError: it could not be done; nothing was written.
    """
    with open_conversation(options, target) as held:
        made = await make_compaction(options, held, request)
        if made.overlays:
            append(held.log, made.overlays)
        return made


async def make_compaction(options: Options, held: OpenConversation, request: CompactionRequest) -> CompactionResult:
    """Return the overlays that `request` asks for, ready to be written; a summary is asked of a model.

    Raises:
        UntrustedError: a summary needs a setting of a file that the user has not trusted.
        JpError: the summary could not be written.
    """
    resolved = held.with_layers(())
    config = resolved.config
    entries = tuple(held.log.entries)
    order = order_for(config, request, entries)
    previewer = Previewer(entries, config, held.log, now=time())
    plan = previewer.plan(order)
    if plan.summary is not None:
        # Only now does anything reach out, with a key.
        require_trust(resolved, held.info, model=order.summary.model or config.assistant.model.id)
        tell_ignored(options, resolved, held.info)
    return await make(previewer, plan, order, workspace=held.workspace, notice=options.notice)


def undo_compactions(held: OpenConversation, which: str) -> list[Compaction]:
    """Undo `all` compactions in force, or one by its number from 1, and return them.

    Raises:
        UsageError: there is no such compaction.
    """
    found = chosen_compactions(held.log.entries, which)
    if found:
        held.log.append(Revert(entries=tuple(overlay.id for overlay in found)))
    return found


def chosen_compactions(entries: Sequence[AnyEntry], which: str) -> list[Compaction]:
    """Return the compactions in force that `which` means: `all`, or a number from 1.

    Raises:
        UsageError: there is none with that number.
    """
    found = compactions_in_force(entries)
    if which == "all":
        return [overlay for overlay in found if overlay.id]
    if not (which.isascii() and which.isdecimal()) or not 1 <= int(which) <= len(found):
        there = "there are none" if not found else "there is 1" if len(found) == 1 else f"there are {len(found)}"
        raise UsageError(
            f"--reset={which}: there is no such compaction ({there})", hint="`jp conversation show` lists them"
        )
    chosen = found[int(which) - 1]
    # One automatic compaction may be several overlays; undoing one of them would leave half of it.
    return [one for one in found if one is chosen or (chosen.source == one.source == "auto" and one.at == chosen.at)]


def order_for(config: AppConfig, request: CompactionRequest, entries: Sequence[AnyEntry]) -> CompactionOrder:
    """Return what `request` comes to under the configuration.

    Raises:
        UsageError: it contradicts itself, or names no bound, turn or profile.
    """
    order = order_of(
        config.conversation.compaction,
        profile=request.profile,
        policies=request.policies,
        ranges=request.ranges,
        model=request.model,
        budget=request.budget,
    )
    if request.is_local and order.budget is not None:
        order = replace(order, wish=replace(order.wish, summary=True))
    if order.budget is not None and order.wish.tools is not None and order.wish.tools.policy == "omit":
        raise UsageError("a budget and `omit` exclude each other", hint="--tools=digest or strip leave out as needed")
    if request.model is not None and not order.wish.summary:
        raise UsageError("--model is for a summary, and none is asked for", hint=_ASK_FOR_SUMMARY)
    if request.is_local:
        if not order.wish.summary:
            raise UsageError("--local is for a summary, and none is asked for", hint=_ASK_FOR_SUMMARY)
        if order.summary.instructions:
            raise UsageError("--local cannot pay attention to anything", hint="leave out the text of --summarize")
        order = replace(order, summary=SummaryOrder(is_local=True))
    if request.ranges.turn is not None:
        parse_turns(request.ranges.turn, len(turns_of(entries)), option="--turn")
    return order


def proposals_of(held: OpenConversation) -> Proposals:
    """Return the proposals of the user that nobody has accepted yet."""
    return Proposals(held.workspace.user_data / "proposals")
