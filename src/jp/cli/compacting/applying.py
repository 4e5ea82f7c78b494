"""Writing overlays, and proposals that nobody has accepted yet."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec.structs import replace

from jp.cli.compacting.order import Order
from jp.cli.compacting.preview import Previewer
from jp.cli.places import AnyWorkspace
from jp.compaction.fact_lines import nonce_of
from jp.compaction.overlays import turns_covered
from jp.compaction.planning import Effect, Plan
from jp.config.model import AppConfig
from jp.conversation.codec import encode
from jp.conversation.entries import AnyEntry, Compaction, Usage
from jp.conversation.turns import Placement, divide, undone
from jp.errors import JpError, StorageError, UsageError, reason_of
from jp.provider.registry import ModelId
from jp.reading import read_beginning
from jp.workspace.files import make_directories, replace_file
from jp.workspace.stamp import SYSTEM, timestamp

if TYPE_CHECKING:
    from jp.cli.compacting.summarizer import Pay
    from jp.turn.ports import Recorder


_VERSION = 1
_ID_DIGITS = 12
_MOST_BYTES = 16 * 1024 * 1024


class StaleProposalError(JpError):
    """The turns are not what they were when it was proposed to compact them."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What was proposed for a conversation, and the digest of the turns that it is about.

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
