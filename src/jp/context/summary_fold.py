"""Summaries brought up to date, fitted into a number of tokens, and made without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import structs
from msgspec.structs import replace

from jp.context.anchors import is_visible_assistant
from jp.context.estimate import estimate_tokens
from jp.context.evidence import Mentions, mentions_in, merge_mentions, within
from jp.context.groups import Group, index_groups
from jp.context.markers import Artifacts, Cutter, checksum_of
from jp.context.redaction import NOTE, cut_plainly, excerpt, redacted
from jp.context.summary_schema import MOST_REQUIREMENTS, NOTHING_SAID, StructuredSummary, TouchedFiles, normalised
from jp.context.summary_source import (
    MOST_FILES,
    Ledger,
    Source,
    Spoken,
    SpokenFold,
    command_in,
    fold_spoken,
    ledger_of,
    merge_ledgers,
    read_source,
    speaks,
    spoken_in,
)
from jp.context.summary_text import Provenance, Recallable, Renderer, SummaryState, is_summary, state_of
from jp.context.types import Call, Message, ReasoningBlock, StoredBlock, Transcript, texts_of

MOST_RECALLABLE = 40
_EVICTED_LABEL = 60


class Computed(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the messages that leave without asking anybody, all of it redacted.

    `spoken` has what an earlier summary held and what is new, in one order already; `evicted` are what it has no room
    for. `recallable` are contents worth naming, newest last.
    """

    spoken: Spoken = Spoken()
    evicted: tuple[str, ...] = ()
    ledger: Ledger = Ledger()
    mentions: Mentions = Mentions()
    recallable: tuple[Recallable, ...] = ()
    answers: tuple[str, ...] = ()


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a model told of the messages that leave: its account, folded over all parts; all of it unless `is_local`."""

    account: StructuredSummary
    unsupported: int = 0
    is_local: bool = False


def fold_summaries(older: StructuredSummary, newer: StructuredSummary) -> StructuredSummary:
    """`newer`, with the requirements of `older` that it lost, which come first."""
    known = {normalised(text) for text in newer.requirements}
    lost = tuple(text for text in older.requirements if normalised(text) not in known)
    return replace(newer, requirements=(*lost, *newer.requirements)) if lost else newer


def fold_state(previous: SummaryState | None, told: Told, computed: Computed, artifacts: Artifacts) -> SummaryState:
    """The state of the summary after this compaction; what there is no room for is kept in `artifacts`.

    Answers, and an earlier record that could not be read, stay until a model has accounted for everything.
    """
    before = previous or SummaryState()
    evicted = tuple(
        Recallable(handle=artifacts.keep(text), what=f"the person: {text[:_EVICTED_LABEL]}")
        for text in computed.evicted
    )
    state = SummaryState(
        account=without_secrets(fold_summaries(before.account, told.account)),
        spoken=computed.spoken,
        ledger=merge_ledgers(before.ledger, computed.ledger),
        mentions=merge_mentions(before.mentions, computed.mentions),
        answers=computed.answers if told.is_local else (),
        inherited=before.inherited if told.is_local else "",
        older_requirements=before.older_requirements,
        recallable=_newest((*before.recallable, *evicted, *computed.recallable)),
        provenance=Provenance(
            is_local=told.is_local,
            unsupported=before.provenance.unsupported + told.unsupported,
            updates=before.provenance.updates + (previous is not None),
        ),
    )
    return within_requirements(state, artifacts, MOST_REQUIREMENTS)


_Nested: TypeAlias = "str | dict[str, _Nested] | list[_Nested] | tuple[_Nested, ...]"
"""An account without its types: it has texts and nothing else."""


def without_secrets(account: StructuredSummary) -> StructuredSummary:
    """`account` with what may be a secret replaced: a model, or an earlier version of jp, may have put one there."""
    told: _Nested = msgspec.to_builtins(account)
    clean = _clean(told, {})
    return account if clean == told else msgspec.convert(clean, StructuredSummary)


def _clean(value: _Nested, known: dict[str, str]) -> _Nested:
    match value:
        case str():
            return redacted(value, known)
        case dict():
            return {name: _clean(below, known) for name, below in value.items()}
        case _:
            return tuple(_clean(item, known) for item in value)


def with_whole_request(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    """`state` with all of the request being worked on, where there was no room for it and it can be recalled."""
    if not state.whole_request:
        return state
    whole = artifacts.recall(state.whole_request)
    if whole is not None:
        return replace(state, spoken=replace(state.spoken, active=whole), whole_request="")
    lost = Recallable(handle=state.whole_request, what="the whole of a request")
    return replace(state, whole_request="", recallable=_newest((*state.recallable, lost)))


def join_states(older: SummaryState, newer: SummaryState) -> SummaryState:
    """What two summaries knew that stood in one transcript, where there should have been one."""
    said = (*older.spoken.all(), *newer.spoken.all())
    handles = filter(None, (older.older_requirements, newer.older_requirements))
    found = tuple(Recallable(handle=handle, what="older requirements") for handle in handles)
    return SummaryState(
        account=fold_summaries(older.account, newer.account),
        spoken=fold_spoken(said, begins=bool(older.spoken.first), is_active=bool(newer.spoken.active)).spoken,
        ledger=merge_ledgers(older.ledger, newer.ledger),
        mentions=merge_mentions(older.mentions, newer.mentions),
        answers=(*older.answers, *newer.answers),
        inherited="\n\n".join(filter(None, (older.inherited, newer.inherited))),
        recallable=_newest((*older.recallable, *newer.recallable, *found)),
        provenance=Provenance(
            is_local=older.provenance.is_local or newer.provenance.is_local,
            unsupported=older.provenance.unsupported + newer.provenance.unsupported,
            updates=older.provenance.updates + newer.provenance.updates,
        ),
    )


def within_requirements(state: SummaryState, artifacts: Artifacts, most: int) -> SummaryState:
    """`state` with its newest `most` requirements; older ones go to `artifacts`, with the handle of those before."""
    requirements = state.account.requirements
    gone = requirements[: max(len(requirements) - most, 0)]
    if not gone:
        return state
    before = [f"Still older requirements: recall {state.older_requirements}"] if state.older_requirements else []
    handle = artifacts.keep("\n".join((*before, *gone)))
    account = replace(state.account, requirements=requirements[len(gone) :])
    return replace(state, account=account, older_requirements=handle)


def _newest(recallable: Sequence[Recallable]) -> tuple[Recallable, ...]:
    """The last of each handle, as many as there is room for."""
    found = {each.handle: each for each in reversed(recallable)}
    return tuple(reversed(list(found.values())[:MOST_RECALLABLE]))


ANSWERS_LIMIT = 8_000
ANSWER_LIMIT = 700


def told_locally(previous: SummaryState | None) -> Told:
    """The account of the earlier summary as it is: nobody is asked, so nothing in it is brought up to date."""
    return Told(account=NOTHING_SAID if previous is None else previous.account, is_local=True)


def answers_in(messages: Sequence[Message], cutter: Cutter, older: Sequence[str] = ()) -> tuple[str, ...]:
    """The newest visible answers in `messages`, and before them `older` ones, whole as far as there is room for them.

    Each in at most 700 characters, without secrets, oldest first.
    """
    room = ANSWERS_LIMIT
    found: list[str] = []
    for message in reversed(messages):
        if not is_visible_assistant(message):
            continue
        text = excerpt("\n\n".join(filter(None, texts_of(message))), ANSWER_LIMIT, cutter)
        room -= len(text)
        if room < 0:
            return tuple(reversed(found))
        found.append(text)
    for text in reversed(older):
        room -= len(text)
        if room < 0:
            break
        found.append(text)
    return tuple(reversed(found))


_Item = TypeVar("_Item")
_Step = Callable[[SummaryState, Artifacts], SummaryState]


def fit_summary(
    state: SummaryState, limit: int, nonce: str, artifacts: Artifacts, *, may_cut_request: bool = False
) -> SummaryState:
    """`state` so that its text has at most `limit` tokens, or as few as it can have.

    The goal and the next step always stay, and of the request being worked on its beginning and end; all of it, unless
    that may be cut. What the person said and required goes to `artifacts`, and a handle stays.
    """
    renderer = Renderer(nonce)
    for step in (*_STEPS, *(_LAST_STEPS if may_cut_request else ())):
        if estimate_tokens(renderer.text(state)) <= limit:
            break
        state = step(state, artifacts)
    return state


def _fewer_mentions(limit: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        return replace(state, mentions=within(structs.asdict(state.mentions), limit))

    return step


def _without_asides(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, account=replace(state.account, hypothesis="", open_questions=()))


def _without_told_files(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, account=replace(state.account, files=TouchedFiles(), commands=()))


def _without_what_is_done(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, account=replace(state.account, done=(), errors_and_fixes=()))


def _fewer_of_ledger(files: int, commands: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        ledger = state.ledger
        fewer = Ledger(
            read=_last(ledger.read, files), modified=ledger.modified, commands=_last(ledger.commands, commands)
        )
        return replace(state, ledger=fewer)

    return step


def _fewer_modified(most: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        return replace(state, ledger=Ledger(modified=_last(state.ledger.modified, most)))

    return step


def _without_answers(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, answers=(), inherited="")


def _without_decisions(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    account = replace(state.account, decisions=(), constraints=(), open=(), test_command="")
    return replace(state, account=account)


def _fewer_answers(state: SummaryState, artifacts: Artifacts) -> SummaryState:
    return replace(state, answers=state.answers[-3:])


def _fewer_recallable(most: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        return replace(state, recallable=_last(state.recallable, most))

    return step


def _fewer_spoken(limit: int, *, keep_first: bool = True) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        spoken = state.spoken
        begins = keep_first and bool(spoken.first)
        room = limit + len(spoken.active) + (len(spoken.first) if begins else 0)
        found = fold_spoken(spoken.all(), begins=begins, is_active=bool(spoken.active), limit=room)
        if not found.evicted:
            return state
        handle = artifacts.keep("\n\n".join(found.evicted))
        gone = Recallable(handle=handle, what=f"what the person said, {len(found.evicted)} messages")
        return replace(state, spoken=found.spoken, recallable=(*state.recallable, gone))

    return step


def _shorter_request(limit: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        active = state.spoken.active
        if len(active) <= limit:
            return state
        shorter = replace(state.spoken, active=cut_plainly(active, limit - NOTE))
        return replace(state, spoken=shorter, whole_request=state.whole_request or artifacts.keep(active))

    return step


def _fewer_requirements(most: int) -> _Step:
    def step(state: SummaryState, artifacts: Artifacts) -> SummaryState:
        return within_requirements(state, artifacts, most)

    return step


def _last(items: tuple[_Item, ...], most: int) -> tuple[_Item, ...]:
    return items[max(len(items) - most, 0) :]


_STEPS: tuple[_Step, ...] = (
    _fewer_mentions(3_000),
    _fewer_of_ledger(files=MOST_FILES, commands=50),
    _fewer_answers,
    _fewer_of_ledger(files=MOST_FILES, commands=25),
    _fewer_mentions(1_000),
    _fewer_of_ledger(files=MOST_FILES, commands=15),
    _fewer_mentions(0),
    _fewer_recallable(10),
    _without_asides,
    _without_told_files,
    _fewer_of_ledger(files=40, commands=10),
    _without_what_is_done,
    _fewer_spoken(12_000),
    _without_answers,
    _fewer_of_ledger(files=10, commands=5),
    _fewer_of_ledger(files=0, commands=3),
    _fewer_modified(10),
    _fewer_modified(0),
    _without_decisions,
    _fewer_spoken(4_000),
    _fewer_recallable(3),
    _fewer_requirements(20),
    _fewer_spoken(0),
    _fewer_requirements(5),
    _fewer_spoken(0, keep_first=False),
    _fewer_requirements(1),
)
"""What goes, one after the other, in the order of what a reader misses least."""

_LAST_STEPS: tuple[_Step, ...] = (
    *map(_shorter_request, (3_000, 2_000, 1_000)),
    _fewer_recallable(1),
    _shorter_request(300),
    _fewer_recallable(0),
)
"""What is left to do where a request cannot be sent otherwise."""


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
