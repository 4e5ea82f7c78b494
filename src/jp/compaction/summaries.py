"""Summaries of turns: what a model is asked, from the raw entries, and the overlay's text that comes of it (RFD 064).

Nobody is asked here: `summarize_turns` yields questions and is sent answers. No view and no text of an earlier summary
is ever shown to a summarizer. Of the summaries that are superseded, requirements that the new one lost are taken over,
and typed accounts of raw entries that are what they were: only other entries are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Protocol

import msgspec
from msgspec.structs import replace

from jp.compaction.fact_lines import nonce_of
from jp.compaction.log_contents import LogContent, contents_in
from jp.compaction.overlays import Range, turns_covered
from jp.compaction.transcript import Record, whole_transcript
from jp.context.evidence import exit_status, observe
from jp.context.markers import Cutter, assign_handles, checksum_of
from jp.context.summary_asking import QuestionSettings, Reading, Setup, SummaryRequest, Terms, ask, evidence_of
from jp.context.summary_fold import (
    ModelAccount,
    RemovedMessages,
    SummaryState,
    fit_summary,
    fold_state,
    fold_summaries,
    leave,
    render_summary,
    without_secrets,
)
from jp.context.summary_schema import NOTHING_SAID, StructuredSummary, SummaryError, SummaryReply
from jp.context.summary_source import Source, ledger_of, read_source, runs_command
from jp.context.types import Block, Facts, Message, TextBlock, Transcript
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    Compaction,
    SummaryChunk,
    SummaryPolicy,
    ToolCallRequest,
    ToolCallResponse,
    encode,
)
from jp.conversation.entries import Facts as LoggedFacts
from jp.conversation.resource import Payload
from jp.conversation.thread import ToolResult, UserText, ViewEvent, carriers_in
from jp.conversation.turns import cycles_of, divide, is_blank, turns_of, undone


class TextLoader(Protocol):
    """Reads text content of a log."""

    def __call__(self, content: LogContent, /) -> str | None:
        """Return the text; None if the content is not text."""
        ...


class SummaryResult(msgspec.Struct, frozen=True, kw_only=True):
    """A summary, in how many questions, and how many claims nothing bore out. `is_local`: no model told all of it."""

    policy: SummaryPolicy
    calls: int
    unsupported: int
    is_local: bool


SummaryExchange = Generator[SummaryRequest, SummaryReply, SummaryResult | SummaryError]


class LogArtifacts:
    """The contents of a log, and what is kept besides: see `jp.context.markers.Artifacts`."""

    def __init__(self, entries: Sequence[AnyEntry], load: TextLoader) -> None:
        self._contents: dict[str, LogContent] = {}
        for entry in entries:
            for sha256, content in contents_in(entry):
                self._contents.setdefault(sha256, content)
        self._handles = {sha256: handle for handle, sha256 in assign_handles(self._contents).items()}
        self._load = load
        self._kept: dict[str, str] = {}

    def handle(self, sha256: str) -> str:
        """Return the handle that it has in the log, or that it gets there."""
        if sha256 not in self._handles:
            assigned = assign_handles((*self._handles, sha256))
            self._handles = {other: handle for handle, other in assigned.items()}
        return self._handles[sha256]

    def keep(self, content: str) -> str:
        """Keep content that is not in the log."""
        sha256 = checksum_of(content)
        handle = self.handle(sha256)
        if sha256 not in self._contents:
            self._kept[sha256] = content
        return handle

    def recall(self, handle: str) -> str | None:
        """Return the text that is in the log, or was kept."""
        sha256 = next((found for found, known in self._handles.items() if known == handle), None)
        if sha256 is None or sha256 in self._kept:
            return None if sha256 is None else self._kept[sha256]
        content = self._contents.get(sha256)
        return None if content is None else self._load(content)

    def named_in(self, text: str) -> tuple[Payload, ...]:
        """Return the kept texts that are named in `text`."""
        return tuple(Payload(text=kept) for sha256, kept in self._kept.items() if self._handles[sha256] in text)


def summarize_turns(
    entries: Sequence[AnyEntry],
    found: Range,
    *,
    terms: Terms,
    asking: QuestionSettings,
    load: TextLoader,
    wishes: str = "",
) -> SummaryExchange:
    """Summarize the turns of `found`: return the overlay's summary, or the reason for having none.

    `wishes` are the user's instructions: an account that was written with others is not reused.
    """
    artifacts = LogArtifacts(entries, load)
    cutter = Cutter(nonce_of(entries), artifacts)
    messages = messages_of(entries, found, load)
    if not messages:
        return SummaryError(kind="empty", detail="nothing was said in these turns")
    leaving = leave(messages, cutter)
    known = _known_chunks(entries, found, wishes)
    if 2 * len(known) > terms.calls:
        # Each may part what is new in two; what a model is not asked about would have no account.
        known = [one for one in known[:1] if one.found.first == found.first]
    reading = _reading(entries, messages, known, cutter)
    asked = yield from ask(leaving, Setup(terms=terms, asking=asking), reading)
    if asked.error is not None and not terms.may_fall_back:
        return asked.error
    told = asked.told or ModelAccount(account=NOTHING_SAID, is_local=True)
    state = fold_state(told, leaving.computed, artifacts)
    state = _with_requirements(state, superseded_states(entries, found), leaving)
    state = fit_summary(state, terms.limit, cutter.nonce, artifacts)
    text = render_summary(state, cutter.nonce)
    beginning = _beginning(known, found) if reading is not None else ()
    policy = SummaryPolicy(
        text=text,
        state=msgspec.to_builtins(state),
        kept=artifacts.named_in(text),
        chunks=() if told.is_local else (*beginning, *_chunk(entries, found, told, wishes)),
    )
    return SummaryResult(policy=policy, calls=asked.calls, unsupported=told.unsupported, is_local=told.is_local)


def messages_of(entries: Sequence[AnyEntry], found: Range, load: TextLoader | None = None) -> Transcript:
    """Return the messages of `found` as if nothing had ever been compacted; undone turns have none.

    With `load`, commands whose tools recorded nothing have what they came to.

    What was attached again is named: a reference is nothing that the person said, and what it refers to leaves, too.
    """
    whole = whole_transcript(entries)
    requests = {entry.id: entry for entry in entries if isinstance(entry, ChatRequest)}
    inside = None if found.to_cycle is None else _answered_in(entries, found.last, found.to_cycle)
    silent = {} if load is None else _silent_commands(entries)
    messages: list[Message] = []
    for message in whole.messages:
        event = whole.records[message.origin].event
        if not found.first <= event.turn <= found.last:
            continue
        if inside is None or event.origin in inside or (isinstance(event, ToolResult) and event.call in inside):
            named = _with_names(message, whole.records, requests)
            if load is not None and event.origin in silent:
                named = _with_outcome(named, *silent[event.origin], load)
            messages.append(named)
    return tuple(messages)


def _silent_commands(entries: Sequence[AnyEntry]) -> dict[str, tuple[ToolCallResponse, LoggedFacts]]:
    """Return what commands returned whose tools recorded nothing, with what overlays store of it, by id."""
    calls = {entry.id: entry for entry in entries if isinstance(entry, ToolCallRequest)}
    stored = {key: facts for entry in entries if isinstance(entry, Compaction) for key, facts in entry.facts.items()}
    return {
        entry.id: (entry, stored.get(entry.id, LoggedFacts()))
        for entry in entries
        if isinstance(entry, ToolCallResponse)
        and not (entry.facts is not None and entry.facts.kind)
        and entry.request in calls
        and runs_command(calls[entry.request].arguments)
    }


def _with_outcome(message: Message, response: ToolCallResponse, stored: LoggedFacts, load: TextLoader) -> Message:
    """Return the result of a command with how it ended, as far as an overlay or its output says so."""
    text = "\n".join(filter(None, map(load, carriers_in(response))))
    code = exit_status(text) if stored.exit_code is None else stored.exit_code
    lines: Sequence[str] = ()
    if code or response.is_error:
        lines = stored.evidence or observe(text, is_error=True).lines
    before = message.meta.facts or Facts()
    error = before.first_error or next(iter(lines), "")
    facts = replace(before, kind="terminal", exit_code=code, first_error=error)
    return replace(message, meta=replace(message.meta, facts=facts))


def _answered_in(entries: Sequence[AnyEntry], turn: int, to_cycle: int) -> frozenset[str]:
    """Return the ids of what the model and the tools said in the first cycles of a turn."""
    cycles = cycles_of(turns_of(entries)[turn])[: to_cycle + 1]
    said = (answer for cycle in cycles for attempt in cycle.attempts for answer in attempt.answers)
    results = (response for cycle in cycles for response in cycle.responses)
    return frozenset(entry.id for entry in (*said, *results))


def _with_names(message: Message, records: Mapping[str, Record], requests: Mapping[str, ChatRequest]) -> Message:
    if message.role != "user" or isinstance(message.content, str):
        return message
    named = tuple(_with_name(block, records[block.origin].event, requests) for block in message.content)
    return replace(message, content=named)


def _with_name(block: Block, event: ViewEvent, requests: Mapping[str, ChatRequest]) -> Block:
    if not isinstance(event, UserText) or not event.synthetic or event.origin not in requests:
        return block
    uris = [resource.uri for resource in requests[event.origin].resources if resource.uri in event.text]
    return TextBlock(text=f"[attached again: {max(uris, key=len, default='')}]", origin=block.origin)


def superseded_states(entries: Sequence[AnyEntry], found: Range) -> list[SummaryState]:
    """Return the states of the summaries in force inside of `found`, oldest first; unreadable ones are skipped."""
    return [state for summary in _superseded(entries, found) for state in _state_in(summary.state)]


def _superseded(entries: Sequence[AnyEntry], found: Range) -> Iterator[SummaryPolicy]:
    """Return the summaries in force inside of `found`, oldest first."""
    gone = undone(entries)
    division = divide(entries)
    numbers = {turn.id: turn.number for turn in division.turns if turn.id}
    for placement in division.placements:
        summary = placement.compaction.summary
        if summary is None or is_blank(summary.text) or placement.compaction.id in gone:
            continue
        first, last = turns_covered(placement, numbers)
        if found.first <= first and last <= found.last and first <= last:
            yield summary


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk that still holds, and the turns that it is about."""

    found: Range
    chunk: SummaryChunk
    account: StructuredSummary


def _known_chunks(entries: Sequence[AnyEntry], found: Range, wishes: str) -> list[_Known]:
    """Return the chunks inside of `found` whose raw entries are what they were, in order, without overlaps."""
    numbers = {turn.id: turn.number for turn in divide(entries).turns if turn.id}
    candidates: list[tuple[Range, SummaryChunk]] = []
    for summary in _superseded(entries, found):
        for chunk in summary.chunks:
            if chunk.from_id in numbers and chunk.to_id in numbers:
                about = Range(first=numbers[chunk.from_id], last=numbers[chunk.to_id], to_cycle=chunk.to_cycle)
                candidates += [(about, chunk)] if _is_inside(about, found) else []
    candidates.sort(key=lambda one: (one[0].first, -one[0].last, -(one[0].to_cycle or 0)))
    known: list[_Known] = []
    for about, chunk in candidates:
        # A digest reads all entries of its turns: those of chunks that a longer one has made useless are not computed.
        is_behind = not known or about.first > known[-1].found.last
        if is_behind and chunk.digest == _digest(entries, about, wishes):
            known += [_Known(found=about, chunk=chunk, account=account) for account in _account_in(chunk.account)]
    return known


def _is_inside(about: Range, found: Range) -> bool:
    if (about.to_cycle is None) != (found.to_cycle is None):
        return False
    return found.first <= about.first <= about.last <= found.last and (about.to_cycle or 0) <= (found.to_cycle or 0)


def _account_in(account: Mapping[str, object]) -> list[StructuredSummary]:
    try:
        return [msgspec.convert(account, StructuredSummary)]
    except msgspec.ValidationError:
        return []


def _reading(
    entries: Sequence[AnyEntry], messages: Transcript, known: Sequence[_Known], cutter: Cutter
) -> Reading | None:
    """Return what a model has to read of `messages`; None where that is all of them, or would be none of them."""
    owners = {message.origin: one.account for one in known for message in messages_of(entries, one.found)}
    new = tuple(message for message in messages if message.origin not in owners)
    if not owners or not new:
        return None
    sections: list[Source | StructuredSummary] = []
    for account, group in groupby(messages, key=lambda message: owners.get(message.origin)):
        sections.append(account or read_source(tuple(group), cutter.artifacts, cutter.known))
    first = sections[0]
    account = first if isinstance(first, StructuredSummary) else None
    return Reading(
        account=account,
        sections=tuple(sections[1:] if account else sections),
        ledger=ledger_of(new, cutter.known),
    )


def _beginning(known: Sequence[_Known], found: Range) -> tuple[SummaryChunk, ...]:
    """Return the chunk with which `found` begins: it holds where a later turn is undone."""
    return tuple(one.chunk for one in known[:1] if one.found.first == found.first)


def _chunk(entries: Sequence[AnyEntry], found: Range, told: ModelAccount, wishes: str) -> tuple[SummaryChunk, ...]:
    """Return the account of all of `found`; none where its turns have no ids."""
    turns = divide(entries).turns
    first, last = turns[found.first].id, turns[found.last].id
    if not first or not last:
        return ()
    chunk = SummaryChunk(
        from_id=first,
        to_id=last,
        to_cycle=found.to_cycle,
        digest=_digest(entries, found, wishes),
        account=msgspec.to_builtins(without_secrets(told.account)),
    )
    return (chunk,)


def _digest(entries: Sequence[AnyEntry], about: Range, wishes: str) -> str:
    """Return the sha256 of the raw entries of turns, in whatever form their contents are stored, and of `wishes`."""
    gone = undone(entries)
    inside = None if about.to_cycle is None else _answered_in(entries, about.last, about.to_cycle)
    found = hashlib.sha256(wishes.encode(errors="surrogatepass"))
    for turn in divide(entries).turns[about.first : about.last + 1]:
        for entry in () if turn.id in gone else turn.entries:
            if inside is None or entry.id in inside:
                found.update(b"\0" + _identity(entry))
    return found.hexdigest()


def _identity(entry: AnyEntry) -> bytes:
    match entry:
        case ChatRequest():
            contents = [digest for digest, _ in contents_in(entry)]
            return msgspec.json.encode([entry.id, entry.content, contents])
        case ToolCallResponse():
            return msgspec.json.encode([entry.id, entry.is_error, [digest for digest, _ in contents_in(entry)]])
        case _:
            return encode(entry)


def _state_in(state: Mapping[str, object]) -> list[SummaryState]:
    try:
        return [msgspec.convert(state, SummaryState)]
    except msgspec.ValidationError:
        return []


def _with_requirements(state: SummaryState, earlier: Sequence[SummaryState], leaving: RemovedMessages) -> SummaryState:
    """Return `state` with what the person required according to `earlier` summaries of the same turns."""
    account = state.account
    for one in reversed(earlier):
        account = fold_summaries(one.account, account)
    if account.requirements:
        evidence = evidence_of(leaving)
        said = tuple(text for text in account.requirements if evidence.is_said(text))
        account = replace(account, requirements=said)
    return replace(state, account=without_secrets(account))
