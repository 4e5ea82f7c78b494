"""Which messages leave for a summary and which stay, and what is known of those that leave without asking anybody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from jp.context.groups import Group, index_groups
from jp.context.handles import Artifacts, checksum_of
from jp.context.ledger import command_in, ledger_of
from jp.context.markers import Cutter
from jp.context.mentions import mentions_in
from jp.context.spoken import Spoken, SpokenFold, fold_spoken, speaks, spoken_in
from jp.context.summary_fallback import answers_in
from jp.context.summary_fold import MOST_RECALLABLE, Computed, join_states, with_whole_request
from jp.context.summary_row import is_summary, state_of
from jp.context.summary_source import Source, read_source
from jp.context.summary_state import Recallable, SummaryState
from jp.context.types import Call, Message, ReasoningBlock, StoredBlock, Transcript, texts_of

WORTH_A_HANDLE = 800
"""Characters from which on a result that leaves is named with its handle."""


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """A transcript, sorted: `head`, `kept` and `tail` stay, in this order; `gone` leave.

    `previous` is the state of the summaries that were there, and `computed` what is known of `gone` and of what they
    knew. `source` is what a summarizer is shown.
    """

    head: Transcript
    gone: Transcript
    kept: Transcript
    tail: Transcript
    previous: SummaryState | None
    source: Source
    computed: Computed


def leave(messages: Transcript, between: tuple[int, int], cutter: Cutter) -> Leaving:
    """Sort `messages`: what stands between the two positions leaves, the second one excluded.

    Not system messages there, nor what is `verbatim`, with the rest of its round, nor calls that still run. Summaries
    go wherever they stand, and what they knew comes along.
    """
    start, end = between
    leaving = _positions(messages, between)
    gone = tuple(messages[at] for at in sorted(leaving))
    kept = tuple(messages[at] for at in range(start, end) if at not in leaving)
    previous = None
    for message in filter(is_summary, messages):
        found = with_whole_request(state_of(message, cutter), cutter.artifacts)
        previous = found if previous is None else join_states(previous, found)
    source = read_source(gone, cutter.artifacts, cutter.known)
    spoken = _spoken(messages, leaving, previous, cutter)
    outputs = [piece.text for piece in source.pieces if piece.is_output]
    computed = Computed(
        spoken=spoken.spoken,
        evicted=spoken.evicted,
        ledger=ledger_of(gone, cutter.known),
        mentions=mentions_in((piece.text for piece in source.pieces if not piece.is_output), outputs=outputs),
        recallable=_recallable(gone, cutter),
        answers=answers_in(gone, cutter, previous.answers if previous else ()),
    )
    return Leaving(
        head=_without_summaries(messages[:start]),
        gone=gone,
        kept=_without_summaries(kept),
        tail=_without_summaries(messages[end:]),
        previous=previous,
        source=source,
        computed=computed,
    )


def stays(messages: Transcript, group: Group) -> bool:
    """Whether `group` stays wherever it stands: it is pending, or a part of it is a system message or `verbatim`."""
    rows = messages[group.start : group.end]
    return group.pending or any(row.meta.verbatim or row.role == "system" for row in rows)


def archive(messages: Sequence[Message], artifacts: Artifacts) -> None:
    """Keep everything that `messages` say; what a digest was made of is kept already, and so is stored content."""
    for message in messages:
        if message.meta.digested is None:
            for text in _contents(message):
                artifacts.keep(text)
        for call in message.calls:
            artifacts.keep(call.arguments)


def _contents(message: Message) -> Iterator[str]:
    yield from filter(None, texts_of(message))
    if isinstance(message.content, tuple):
        yield from (block.text for block in message.content if isinstance(block, ReasoningBlock) and block.text)


def _positions(messages: Transcript, between: tuple[int, int]) -> frozenset[int]:
    """Where the messages stand that leave."""
    start, end = between
    found: list[int] = []
    for group in index_groups(messages).groups:
        rows = messages[group.start : group.end]
        is_wanted = start <= group.start and group.end <= end
        if is_wanted and not stays(messages, group) and not any(map(is_summary, rows)):
            found.extend(range(group.start, group.end))
    return frozenset(found)


def _without_summaries(messages: Transcript) -> Transcript:
    return tuple(row for row in messages if not is_summary(row))


def _spoken(messages: Transcript, leaving: frozenset[int], previous: SummaryState | None, cutter: Cutter) -> SpokenFold:
    """What the person said in messages that leave, and what the earlier summary has of it, in the order of speaking."""
    said_at = [at for at, row in enumerate(messages) if speaks(row)]
    summary = next((at for at, row in enumerate(messages) if is_summary(row)), None)
    places = [*(at for at in said_at if at in leaving), *(() if summary is None else (summary,))]
    if not places:
        return SpokenFold(spoken=Spoken())
    earliest, latest = min(places), max(places)
    border = len(messages) if summary is None else summary
    before = spoken_in([messages[at] for at in said_at if at in leaving and at < border], cutter)
    after = spoken_in([messages[at] for at in said_at if at in leaving and at > border], cutter)
    known = previous or SummaryState()
    staying = [at for at in said_at if at not in leaving]
    is_first_known = bool(before or known.spoken.first) or not (known.spoken.later or known.inherited)
    return fold_spoken(
        (*before, *known.spoken.all(), *after),
        begins=is_first_known and not (staying and staying[0] < earliest),
        is_active=not (staying and staying[-1] > latest),
    )


def _recallable(messages: Sequence[Message], cutter: Cutter) -> tuple[Recallable, ...]:
    """The newest long results in `messages`, oldest first."""
    found: list[Recallable] = []
    for group in reversed(index_groups(messages).groups):
        rows = messages[group.start : group.end]
        called = {call.id: call for call in rows[0].calls}
        for row in reversed(rows):
            handles = _handles(row, cutter.artifacts) if row.role == "tool" else []
            if handles:
                what = _label(called.get(row.call_id), cutter.known)
                found += [Recallable(handle=handle, what=what) for handle in handles]
        if len(found) >= MOST_RECALLABLE:
            break
    return tuple(reversed(found[:MOST_RECALLABLE]))


def _label(call: Call | None, known: dict[str, str]) -> str:
    return "a result" if call is None else f"{call.name} {command_in(call.arguments, known)}"


def _handles(message: Message, artifacts: Artifacts) -> list[str]:
    if message.meta.digested is not None:
        handle = artifacts.handle(message.meta.digested.sha256)
        return [] if artifacts.recall(handle) is None else [handle]
    if isinstance(message.content, str):
        return [artifacts.handle(checksum_of(message.content))] if len(message.content) >= WORTH_A_HANDLE else []
    stored = [block.sha256 for block in message.content if isinstance(block, StoredBlock)]
    texts = [checksum_of(text) for text in texts_of(message) if len(text) >= WORTH_A_HANDLE]
    return [artifacts.handle(sha256) for sha256 in (*stored, *texts)]
