"""Writing overlays and proposals; a preview, and what was done, in words and as values."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from jp.app.compaction.order import ListedProfile, Order
from jp.app.compaction.preview import Preview, Previewer, SummaryPreview
from jp.app.places import AnyWorkspace
from jp.compaction.fact_lines import nonce_of, tool_policy
from jp.compaction.large_items import LargeItem
from jp.compaction.overlays import turns_covered
from jp.compaction.planning import Effect, Plan, wish_of
from jp.config.model import ProfileConfig
from jp.context.budget import EditCost, ItemKind
from jp.conversation.entries import AnyEntry, Compaction, SummaryPolicy, Usage, encode
from jp.conversation.turns import Placement, divide, undone
from jp.errors import JpError, StorageError, UsageError, reason_of
from jp.file_access import read_beginning
from jp.provider.registry import ModelId
from jp.render.sanitize import one_line
from jp.render.tables import text_table
from jp.render.units import count_text, money_text
from jp.workspace.files import SYSTEM, make_directories, replace_file, timestamp

if TYPE_CHECKING:
    from jp.app.compaction.summarizer import Pay


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
        """The overlays of a proposal for `conversation`, whose stream `entries` is.

        Raises:
            UsageError: there is none of this id, or it is for another conversation.
            StaleProposalError: the turns have changed since.
        """
        proposal = self._read(identity)
        if proposal.conversation != conversation:
            raise UsageError(
                f"proposal {identity!r} is for conversation {proposal.conversation!r}",
                hint=f"`jp conversation compact --apply {identity} {proposal.conversation}` applies it there",
            )
        if digest_of(entries, proposal.overlays) != proposal.digest:
            raise StaleProposalError(
                f"the turns have changed since {identity!r} was proposed, so it is not applied",
                hint="have another one made: `jp conversation compact --propose`",
            )
        return tuple(_marked(overlay, proposal.nonce, nonce_of(entries)) for overlay in proposal.overlays)

    def forget(self, identity: str) -> None:
        """Take a proposal away."""
        with suppress(OSError):
            self._path(identity).unlink()

    def _read(self, identity: str) -> Proposal:
        hint = "`jp conversation compact --propose` makes one, and says its id"
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
    """The overlay with the nonce of its log: that of an original is another one until something is written."""
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
    workspace: AnyWorkspace,
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
    from jp.app.compaction.summarizer import summarizer_for

    summarizer = summarizer_for(
        previewer.config, order.summary, workspace, model=previewer.model, notice=notice, pay=pay
    )
    limit = previewer.summary_limit(order, plan.summary)
    written = await summarizer.write(previewer.entries, plan.summary, order.summary, previewer.loader, limit=limit)
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


def preview_text(preview: Preview, *, width: int | None, base: str = "") -> str:
    """Return the effects of a compaction, line by line. What lies below the URI `base` is named as it lies there."""
    return "\n".join(_lines(preview, width, base))


def preview_value(preview: Preview) -> dict[str, Any]:
    """The same as data."""
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
    """An overlay as data, as it stands in the log, without what a summary says."""
    value: dict[str, Any] = msgspec.to_builtins(overlay)
    if overlay.summary is not None:
        value["summary"] = {"model": overlay.summary.model, "text": overlay.summary.text}
    return value


def overlay_text(overlay: Compaction) -> str:
    """An overlay in a line: which turns, what, since when and by whom."""
    by = ", automatic" if overlay.source == "auto" else ""
    return f"{turns_text(overlay.from_turn, overlay.to_turn)}: {policies_text(overlay)} ({overlay.at}{by})"


def made_sentence(made: Made, conversation: str) -> str:
    """Return one line that says what was done and what undoes it."""
    if not made.overlays:
        return "nothing to compact"
    turns = ", ".join(turns_text(overlay.from_turn, overlay.to_turn) for overlay in made.overlays)
    tokens = f"about {made.effect.before:,} tokens before, {made.effect.after:,} now"
    return f"compacted {turns}: {tokens}; undo it with `jp conversation undo {conversation}`"


def over_budget(budget: int, after: int) -> str:
    """Return that a budget is not reached, and how near it comes."""
    return (
        f"the budget of about {budget:,} tokens cannot be reached in this way: about {after:,} are left; "
        "a summary (--local, --summarize) or less to keep (--keep 0) goes further"
    )


def frees_little(effect: Effect) -> bool:
    """Return whether a compaction frees so little that breaking the cache for it may not be worth it."""
    return effect.freed * 100 < effect.before * LITTLE_PERCENT


def little_freed(effect: Effect) -> str:
    """Return that a compaction frees little, and how much."""
    return f"it frees only about {effect.freed:,} of {effect.before:,} tokens, under {LITTLE_PERCENT} %"


def turns_text(first: int, last: int) -> str:
    """`turn 3`, `turns 3 to 5`."""
    return f"turn {first}" if first == last else f"turns {first} to {last}"


def policies_text(overlay: Compaction) -> str:
    """Return the effects of an overlay, in words."""
    if overlay.summary is not None:
        return "summary"
    said: list[str] = []
    if overlay.reasoning is not None:
        said.append("reasoning")
    tools = overlay.tool_calls
    if tools is not None:
        halves = {(True, True): "tools", (True, False): "tool requests", (False, True): "tool responses"}
        halved = halves.get((tools.request, tools.response), "tools")
        how = {"omit": "tools omitted", "digest": f"{halved} digested", "strip": halved}
        said.append(how[tools.policy])
    if overlay.resources is not None:
        said.append("superseded resources")
    return " + ".join(said) or "nothing"


def profiles_text(listed: Sequence[ListedProfile], *, width: int | None) -> str:
    """Return the profiles as a table, the one that holds where none is named marked."""
    rows = [
        (f"{one.name} (default)" if one.is_default else one.name, policies_text(_overlay_of(one)), one.source)
        for one in listed
    ]
    return text_table(("PROFILE", "WHAT IT DOES", "FROM"), rows, width=width).rstrip("\n")


def profiles_value(listed: Sequence[ListedProfile]) -> dict[str, Any]:
    """Return the same as data."""
    profiles = [{"name": one.name, "source": one.source, "policies": _policies_value(one.profile)} for one in listed]
    return {"default_profile": next((one.name for one in listed if one.is_default), None), "profiles": profiles}


def _policies_value(profile: ProfileConfig) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.to_builtins(profile)
    if profile.tool_calls is not None:
        value["tool_calls"] = msgspec.structs.asdict(tool_policy(profile.tool_calls))
    return {name: said for name, said in value.items() if said not in (None, {})}


def _overlay_of(listed: ListedProfile) -> Compaction:
    wish = wish_of(listed.profile)
    return Compaction(
        from_turn=0,
        to_turn=0,
        summary=SummaryPolicy(text="") if wish.summary else None,
        reasoning="strip" if wish.reasoning else None,
        tool_calls=wish.tools,
        resources="superseded" if wish.resources else None,
    )


def _lines(preview: Preview, width: int | None, base: str) -> Iterator[str]:
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
        yield from _largest(preview.effect, width, base)


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
    """Return what else is freed, less what stands in its place: with the largest items it is all that is freed."""
    return effect.freed - sum(item.tokens for item in effect.largest)


def _summary_lines(summary: SummaryPreview) -> Iterator[str]:
    yield f"would have {turns_text(summary.turns.first, summary.turns.last)} summarised by {one_line(summary.model)}"
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


def _largest(effect: Effect, width: int | None, base: str) -> Iterator[str]:
    head = ("freed", "turn", "what", "handle", "of")
    rows = [
        (f"{item.tokens:,}", str(item.turn), _KIND_NAMES.get(item.kind, item.kind), item.handle or "-", _of(item, base))
        for item in effect.largest
    ]
    rows.append((f"{_rest(effect):,}", "-", "the rest", "-", "-"))
    yield text_table(head, rows, width=width, right=frozenset({0, 1})).rstrip("\n")


def _of(item: LargeItem, base: str) -> str:
    """The tool and the source: a path within the workspace, whose end would be cut off first, or a whole URI."""
    inside = base and item.source.startswith(base)
    source = unquote(item.source.removeprefix(base)) if inside else item.source
    return ": ".join(filter(None, (item.tool, source))) or "-"
