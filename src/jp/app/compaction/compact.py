"""Compact a conversation: plan, preview, apply, undo."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from jp.app.compaction.order import (
    CompactionOrder,
    PolicyFlags,
    RangeFlags,
    SummaryOrder,
    order_of,
    policies_text,
)
from jp.app.compaction.preview import Preview, Previewer, SummaryPreview
from jp.app.conversations import OpenConversation, ReadConversation, open_conversation, read_conversation
from jp.app.options import AnyWorkspace, Options
from jp.app.settings import is_of_model, require_trust, tell_ignored
from jp.app.values import parse_turns
from jp.compaction.fact_lines import nonce_of
from jp.compaction.large_items import LargeItem
from jp.compaction.overlays import Range, compactions_in_force, turns_covered
from jp.compaction.planning import Effect, Plan
from jp.config.model import AppConfig
from jp.config.schema import KeyPath
from jp.context.budget import EditCost, ItemKind
from jp.conversation.entries import AnyEntry, Compaction, Revert, Usage, encode
from jp.conversation.turns import Placement, divide, turns_of, turns_text, undone
from jp.errors import JpError, StorageError, UsageError, reason_of
from jp.file_access import read_beginning
from jp.provider.registry import ModelId
from jp.remedies import ChangeConversation, Compact, Option, Show, UseOption, phrase
from jp.render.sanitize import one_line
from jp.render.tables import Table, count_text, money_text
from jp.workspace.files import SYSTEM, make_directories, replace_file, timestamp

if TYPE_CHECKING:
    from jp.app.compaction.summarizer import Pay
    from jp.workspace.log import Log


_VERSION = 1
_ID_DIGITS = 12
_MOST_BYTES = 16 * 1024 * 1024


class StaleProposalError(JpError):
    """The turns are not what they were when it was proposed to compact them."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal for a conversation, and the digest of the turns that it is about.

    `nonce` is the one in the marks of its summaries.
    """

    version: int
    conversation: str
    digest: str
    overlays: tuple[Compaction, ...]
    nonce: str = ""


class Proposals:
    """The proposals in a directory of the user's."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, conversation: str, overlays: Sequence[Compaction], entries: Sequence[AnyEntry]) -> str:
        """Keep a proposal; its id.

        Raises:
            StorageError: it could not be written.
        """
        digest = digest_of(entries, overlays)
        proposal = Proposal(
            version=_VERSION,
            conversation=conversation,
            digest=digest,
            overlays=tuple(overlays),
            nonce=nonce_of(entries),
        )
        data = msgspec.json.encode(proposal)
        identity = hashlib.sha256(data).hexdigest()[:_ID_DIGITS]
        path = self._path(identity)
        make_directories(path.parent, private=True)
        replace_file(path, data)
        return identity

    def read(self, identity: str, conversation: str, entries: Sequence[AnyEntry]) -> tuple[Compaction, ...]:
        """Return the overlays of a proposal for `conversation`, whose stream `entries` is.

        Raises:
            UsageError: there is none of this id, or it is for another conversation.
            StaleProposalError: the turns have changed since.
        """
        proposal = self._read(identity)
        if proposal.conversation != conversation:
            raise UsageError(
                f"proposal {identity!r} is for conversation {proposal.conversation!r}",
                hint=phrase("`", Compact(proposal.conversation, proposal=identity), "` applies it there"),
            )
        if digest_of(entries, proposal.overlays) != proposal.digest:
            raise StaleProposalError(
                f"the turns have changed since {identity!r} was proposed, so it is not applied",
                hint=phrase("have another one made: `", Compact(proposes=True), "`"),
            )
        return tuple(_marked(overlay, proposal.nonce, nonce_of(entries)) for overlay in proposal.overlays)

    def forget(self, identity: str) -> None:
        """Take a proposal away."""
        with suppress(OSError):
            self._path(identity).unlink()

    def _read(self, identity: str) -> Proposal:
        hint = phrase("`", Compact(proposes=True), "` makes one, and says its id")
        if not identity.isalnum():
            raise UsageError(f"{identity!r} is no proposal", hint=hint)
        try:
            proposal = msgspec.json.decode(read_beginning(self._path(identity), _MOST_BYTES), type=Proposal)
        except FileNotFoundError:
            raise UsageError(f"there is no proposal {identity!r}", hint=hint) from None
        except (OSError, ValueError, RecursionError) as error:
            raise StorageError(f"the proposal {identity!r} cannot be read: {reason_of(error)}", hint=hint) from None
        if proposal.version != _VERSION:
            raise UsageError(f"the proposal {identity!r} is of another version of jp", hint=hint)
        return proposal

    def _path(self, identity: str) -> Path:
        return self._directory / f"{identity}.json"


def _marked(overlay: Compaction, before: str, now: str) -> Compaction:
    """Return the overlay with the nonce of its log: that of an original is another one until something is written."""
    summary = overlay.summary
    if summary is None or not before or before == now:
        return overlay
    state = msgspec.json.encode(summary.state).replace(before.encode(), now.encode())
    return replace(
        overlay,
        summary=replace(summary, text=summary.text.replace(before, now), state=msgspec.json.decode(state)),
    )


def digest_of(entries: Sequence[AnyEntry], overlays: Sequence[Compaction]) -> str:
    """Return the sha256 of what `overlays` were made from: the raw entries of their turns, less what was undone.

    A summary takes over what earlier ones of the same turns required, so those in force count, too.
    """
    division = divide(entries)
    gone = undone(entries)
    numbers = {turn.id: turn.number for turn in division.turns if turn.id}
    found = hashlib.sha256()
    for overlay in overlays:
        placement = Placement(compaction=overlay, turn=len(division.turns) - 1, events=0)
        first, last = turns_covered(placement, numbers)
        for turn in division.turns[first : last + 1]:
            for entry in () if turn.id in gone else turn.entries:
                found.update(encode(entry) + b"\n")
        for earlier in division.placements if overlay.summary is not None else ():
            begins, ends = turns_covered(earlier, numbers)
            if earlier.compaction.summary is not None and first <= ends and begins <= last:
                found.update(b"" if earlier.compaction.id in gone else earlier.compaction.id.encode() + b"\n")
        found.update(b"\0")
    return found.hexdigest()


class CompactionResult(msgspec.Struct, frozen=True, kw_only=True):
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
    order: CompactionOrder,
    *,
    workspace: AnyWorkspace,
    options: Options,
    pay: Pay | None = None,
) -> CompactionResult:
    """Return the overlays of `plan` that make the view smaller, its summary written by a model.

    With `pay` the summary is paid from what a query may cost.

    Raises:
        JpError: the summary did not come to be; nothing was written.
    """
    overlays = plan.overlays
    if plan.summary is None:
        return CompactionResult(overlays=overlays, effect=previewer.effect(overlays), budget=previewer.budget_of(order))
    from jp.app.compaction.summarizer import summarizer_for

    summarizer = summarizer_for(
        previewer.config, order.summary, workspace, model=previewer.model, notice=options.notice, pay=pay
    )
    limit = previewer.summary_limit(order, plan.summary)
    with options.progress(summarizing(plan.summary, summarizer.model)):
        written = await summarizer.write(previewer.entries, plan.summary, order.summary, previewer.loader, limit=limit)
    summary = replace(previewer.planner.bare(plan.summary), summary=written.policy)
    planner = previewer.planner
    if planner.size((*overlays, summary)) >= planner.size(overlays):
        options.notice("the summary is not shorter than the turns that it replaces, so it is not used")
        rest = previewer.plan(replace(order, wish=replace(order.wish, summary=False))).overlays
        return CompactionResult(
            overlays=rest,
            effect=previewer.effect(rest),
            usage=written.usage,
            model=written.model,
            budget=previewer.budget_of(order),
        )
    with_summary = previewer.settled(order, plan, summary)
    return CompactionResult(
        overlays=with_summary,
        effect=previewer.effect(with_summary),
        unsupported=written.unsupported,
        usage=written.usage,
        model=written.model,
        budget=previewer.budget_of(order),
    )


def summarizing(found: Range, model: ModelId) -> str:
    """Return what a person is told while a model writes a summary."""
    return f"{model} summarizes {turns_text(found.first, found.last)}"


def append(log: Log, overlays: Sequence[Compaction]) -> None:
    """Append overlays in one step, under one time: they were made together, and are undone together.

    Raises:
        StorageError: they could not be written.
    """
    at = timestamp(SYSTEM.now())
    log.append_together([replace(overlay, at=at) for overlay in overlays])


_KIND_NAMES: dict[ItemKind, str] = {
    "user": "request",
    "attachments": "attachment",
    "assistant": "answer",
    "results": "result",
    "images": "image",
    "summaries": "summary",
    "digests": "stand-in",
}

LITTLE_PERCENT = 5
"""A compaction that frees a smaller share says so, and is asked about at a terminal."""


def preview_parts(preview: Preview, *, base: str = "") -> tuple[str | Table, ...]:
    """Return the effects of a compaction, line by line. What lies below the URI `base` is named as it lies there."""
    return tuple(_lines(preview, base))


def preview_value(preview: Preview) -> dict[str, Any]:
    """Return the same as data."""
    return {
        "model": preview.model or None,
        "turns": preview.turns,
        "profile": preview.profile or None,
        "overlays": [overlay_value(overlay) for overlay in preview.overlays],
        "summary": None if preview.summary is None else msgspec.to_builtins(preview.summary),
        "tokens": {
            "before": preview.effect.before,
            "after": preview.effect.after,
            "freed": preview.effect.freed,
            "unchanged_prefix": preview.effect.untouched,
        },
        "reasoning_lost": msgspec.structs.asdict(preview.reasoning_lost),
        "changed_from_turn": preview.changed_from,
        "largest": [msgspec.to_builtins(item) for item in preview.effect.largest],
        "rest": _rest(preview.effect),
        "cache": {"warm": preview.is_warm, "edit": None if preview.cost is None else msgspec.to_builtins(preview.cost)},
        "budget": preview.budget,
        "frees": preview.frees,
    }


def overlay_value(overlay: Compaction) -> dict[str, Any]:
    """Return an overlay as data, as in the log, without the text of a summary."""
    value: dict[str, Any] = msgspec.to_builtins(overlay)
    if overlay.summary is not None:
        value["summary"] = {"model": overlay.summary.model, "text": overlay.summary.text}
    return value


def overlay_text(overlay: Compaction) -> str:
    """Return an overlay in a line: which turns, what, since when and by whom."""
    by = ", automatic" if overlay.source == "auto" else ""
    return f"{turns_text(overlay.from_turn, overlay.to_turn)}: {policies_text(overlay)} ({overlay.at}{by})"


def made_sentence(made: CompactionResult, conversation: str) -> str:
    """Return one line that says what was done and what undoes it."""
    if not made.overlays:
        return "nothing to compact"
    turns = ", ".join(turns_text(overlay.from_turn, overlay.to_turn) for overlay in made.overlays)
    tokens = f"about {made.effect.before:,} tokens before, {made.effect.after:,} now"
    undo = ChangeConversation("undo", conversation)
    return phrase(f"compacted {turns}: {tokens}; undo it with `", undo, "`")


def over_budget(budget: int, after: int) -> str:
    """Return that a budget is not reached, and how near it comes."""
    reached = f"the budget of about {budget:,} tokens cannot be reached in this way: about {after:,} are left; "
    less = UseOption(Option.KEEP_LAST, "0")
    return phrase(
        reached, "a summary (", Option.LOCAL, ", ", Option.SUMMARY, ") or less to keep (", less, ") goes further"
    )


def frees_little(effect: Effect) -> bool:
    """Return whether a compaction frees so little that breaking the cache for it may not be worth it."""
    return effect.freed * 100 < effect.before * LITTLE_PERCENT


def little_freed(effect: Effect) -> str:
    """Return that a compaction frees little, and how much."""
    return f"it frees only about {effect.freed:,} of {effect.before:,} tokens, under {LITTLE_PERCENT} %"


def _lines(preview: Preview, base: str) -> Iterator[str | Table]:
    for overlay in preview.overlays:
        yield f"would compact {turns_text(overlay.from_turn, overlay.to_turn)}: {policies_text(overlay)}"
    if preview.summary is not None:
        yield from _summary_lines(preview.summary)
    yield from _size_lines(preview)
    if preview.cost is not None:
        yield _cost_line(preview.cost, is_warm=preview.is_warm)
    if preview.changed_from is not None:
        yield f"the cache is read again from turn {preview.changed_from} on"
    if preview.effect.largest:
        yield ""
        yield _largest(preview.effect, base)


def _size_lines(preview: Preview) -> Iterator[str]:
    effect = preview.effect
    if preview.overlays:
        share = round(100 * effect.freed / max(effect.before, 1))
        yield f"tokens: about {effect.before:,} now, {effect.after:,} after it ({share} % fewer)"
    if preview.summary is None and preview.budget is not None and effect.after > preview.budget:
        yield over_budget(preview.budget, effect.after)
    lost = preview.reasoning_lost
    if lost.blocks:
        pieces = count_text(lost.blocks, "piece")
        yield f"reasoning lost: {pieces}, about {lost.tokens:,} tokens: the provider checks what came before"
    if preview.overlays and preview.summary is None and frees_little(effect):
        yield little_freed(effect)


def _rest(effect: Effect) -> int:
    """Return the tokens freed besides those of the largest items."""
    return effect.freed - sum(item.tokens for item in effect.largest)


def _summary_lines(summary: SummaryPreview) -> Iterator[str]:
    yield f"would have {turns_text(summary.turns.first, summary.turns.last)} summarized by {one_line(summary.model)}"
    price = "price unknown" if summary.usd is None else f"at most about {money_text(summary.usd)}"
    price = "free" if summary.usd == 0 else price
    calls = "" if summary.calls == 1 else f" in {count_text(summary.calls, 'request')}"
    yield f"  it reads about {summary.input:,} tokens{calls} ({price})"
    yield (
        f"  these turns take about {summary.replaced:,} tokens now, "
        f"and then about {summary.expected:,}, at most {summary.at_most:,}"
    )


def _cost_line(cost: EditCost, *, is_warm: bool) -> str:
    if cost.next_request == cost.each_later == 0:
        return "cost: none, the model is free"
    cache = "the cache is warm" if is_warm else "the cache is cold"
    if cost.break_even is None:
        return f"cost: {cache}; it never pays for itself"
    if cost.next_request <= 0:
        return f"cost: {cache}; the next request is cheaper by {money_text(-cost.next_request)} already"
    after = count_text(cost.break_even, "request")
    return (
        f"cost: {cache}; the next request costs {money_text(cost.next_request)} more, "
        f"each later one {money_text(cost.each_later)} less: it pays after {after}"
    )


def _largest(effect: Effect, base: str) -> Table:
    head = ("freed", "turn", "what", "handle", "of")
    rows = [
        (f"{item.tokens:,}", str(item.turn), _KIND_NAMES.get(item.kind, item.kind), item.handle or "-", _of(item, base))
        for item in effect.largest
    ]
    rows.append((f"{_rest(effect):,}", "-", "the rest", "-", "-"))
    return Table(head=head, rows=rows, right=frozenset({0, 1}), keys=frozenset({3}))


def _of(item: LargeItem, base: str) -> str:
    """Return the tool and the source: a path within the workspace, whose end would be cut off first, or a whole URI."""
    inside = base and item.source.startswith(base)
    source = unquote(item.source.removeprefix(base)) if inside else item.source
    return ": ".join(filter(None, (item.tool, source))) or "-"


_ASK_FOR_SUMMARY = phrase("add ", Option.SUMMARY, ", or ", UseOption(Option.PROFILE, "heavy"))


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
        model = order.summary.model or config.assistant.model.id
        require_trust(resolved, held.info, model=model)

        def is_used(path: KeyPath) -> bool:
            is_other = path[:2] in {("conversation", "tools"), ("conversation", "title"), ("providers", "mcp")}
            return not is_other and is_of_model(path, [model], config.providers.llm.aliases)

        tell_ignored(options, resolved, held.info, is_used=is_used)
    return await make(previewer, plan, order, workspace=held.workspace, options=options)


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
            phrase(UseOption(Option.RESET, which), f": there is no such compaction ({there})"),
            hint=phrase("`", Show("conversation"), "` lists them"),
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
        hint = phrase(UseOption(Option.TOOL_POLICY, "digest"), " or strip hide as much as needed")
        raise UsageError("a budget and `omit` exclude each other", hint=hint)
    if request.model is not None and not order.wish.summary:
        raise UsageError(phrase(Option.MODEL, " is for a summary, and none is asked for"), hint=_ASK_FOR_SUMMARY)
    if request.is_local:
        if not order.wish.summary:
            raise UsageError(phrase(Option.LOCAL, " is for a summary, and none is asked for"), hint=_ASK_FOR_SUMMARY)
        if order.summary.instructions:
            hint = phrase("remove the text of ", Option.SUMMARY)
            raise UsageError(phrase(Option.LOCAL, " cannot pay attention to anything"), hint=hint)
        order = replace(order, summary=SummaryOrder(is_local=True))
    if request.ranges.turn is not None:
        parse_turns(request.ranges.turn, len(turns_of(entries)), option=Option.TURN)
    return order


def proposals_of(held: OpenConversation) -> Proposals:
    """Return the proposals of the user that nobody has accepted yet."""
    return Proposals(held.workspace.user_data / "proposals")
