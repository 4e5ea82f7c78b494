"""The text of a summary: written from its fields, read back, and folded into a later one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import structs
from msgspec.structs import replace

from jp.context.estimate import estimate_tokens
from jp.context.evidence import Mentions, mentions_in, within
from jp.context.markers import Artifacts, Cutter, checksum_of
from jp.context.redaction import excerpt, redacted
from jp.context.summary_schema import MOST_REQUIREMENTS, NOTHING_SAID, StructuredSummary, TouchedFiles, normalised
from jp.context.summary_source import (
    MOST_FILES,
    Ledger,
    Source,
    Spoken,
    command_in,
    fold_spoken,
    groups_of,
    is_visible_assistant,
    ledger_of,
    read_source,
    spoken_in,
)
from jp.context.types import Call, Message, StoredBlock, Transcript, texts_of

VERSION = 1
"""The value of `meta.digested` on a summary's message. A summary of another version is recognized and not read."""


class Recallable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A removed content, and the handle that recalls it."""

    handle: str
    what: str


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The origin of a summary.

    `is_local`: at least a part of it was written without a model. `unsupported` counts a model's claims without
    evidence.
    """

    is_local: bool = False
    unsupported: int = 0


class SummaryState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """All of a summary; its text is rendered from this.

    `answers` are the newest visible ones of the model, where no model accounted for them. `older_requirements` recalls
    those for which there is no room.
    """

    account: StructuredSummary = NOTHING_SAID
    spoken: Spoken = Spoken()
    ledger: Ledger = Ledger()
    mentions: Mentions = Mentions()
    answers: tuple[str, ...] = ()
    older_requirements: str = ""
    recallable: tuple[Recallable, ...] = ()
    provenance: Provenance = Provenance()


_FAMILY = re.compile(r"(?i)(\[\[/?)(\\*)(summary:)")

PREFACE = """\
This is a record of earlier messages that were left out here. It is for reference and is no new request: do not answer \
it. The work goes on with what comes after it.
What comes after it in this conversation wins over everything in it. Where a later message says to stop, to undo or to \
forget something, that holds.
All tools can be used as before. Files with instructions or memories have authority over this record.
What it does not tell can be recalled by a handle or searched for."""
LOCAL_NOTE = "This record was made locally, at least in part without a model, and may be incomplete."

_HEADING = "## "
_ITEM = "- "
_INDENT = "  "
_COLON = ": "

_Plain = dict[str, Any]
"""A Struct as msgspec converts it: members by name."""

_ABOUT = "About this record"
TITLES: tuple[tuple[str, str], ...] = (
    ("Goal", "account.goal"),
    ("The request being worked on, word for word", "spoken.active"),
    ("Requirements, word for word", "account.requirements"),
    ("Older requirements, to recall by this handle", "older_requirements"),
    ("Constraints", "account.constraints"),
    ("The first request, word for word", "spoken.first"),
    ("Earlier requests, word for word, oldest first", "spoken.later"),
    ("Decisions", "account.decisions"),
    ("Done", "account.done"),
    ("Open", "account.open"),
    ("Next step", "account.next_step"),
    ("Errors and what mended them", "account.errors_and_fixes"),
    ("Working hypothesis", "account.hypothesis"),
    ("How to test", "account.test_command"),
    ("Open questions", "account.open_questions"),
    ("Files modified, as recorded", "ledger.modified"),
    ("Files read, as recorded", "ledger.read"),
    ("Commands, as recorded", "ledger.commands"),
    ("Files modified, as told", "account.files.modified"),
    ("Files read, as told", "account.files.read"),
    ("Commands, as told", "account.commands"),
    ("The newest answers that were left out", "answers"),
    ("Paths mentioned", "mentions.paths"),
    ("Issues mentioned", "mentions.issues"),
    ("Commits mentioned", "mentions.commits"),
    ("Error lines", "mentions.errors"),
    ("Addresses mentioned", "mentions.urls"),
    ("To recall by handle", "recallable"),
    (_ABOUT, "provenance"),
)
"""Each part of a state under the heading that it has in the text, in this order."""

_RECORDS = frozenset({
    "Decisions",
    "Errors and what mended them",
    "Commands, as recorded",
    "To recall by handle",
    _ABOUT,
})
"""The headings under which an item has members with names."""

_PARTS = {title: attrgetter(path) for title, path in TITLES}


def opening(nonce: str) -> str:
    """Return the first line of a summary."""
    return f"[[summary:{nonce}:v{VERSION}]]"


def closing(nonce: str) -> str:
    """Return the last line of a summary."""
    return f"[[/summary:{nonce}]]"


def render_summary(state: SummaryState, nonce: str) -> str:
    """Return the text of `state`, without empty parts."""
    return Renderer(nonce).text(state)


class Renderer:
    """Renders several states of which most parts are the same objects; each part once."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._sections: dict[tuple[str, int], tuple[object, str]] = {}

    def text(self, state: SummaryState) -> str:
        """Return the text of `state`, without empty parts."""
        notes = (PREFACE, LOCAL_NOTE) if state.provenance.is_local else (PREFACE,)
        body = (self._section(title, get(state)) for title, get in _PARTS.items())
        return "\n".join((opening(self._nonce), *notes, *filter(None, body), closing(self._nonce)))

    def _section(self, title: str, value: object) -> str:
        """Return the text of a section, cached with its value, so that no other value gets that identity."""
        key = title, id(value)
        if key not in self._sections:
            lines = _section(title, msgspec.to_builtins(value)) if value else ()
            self._sections[key] = value, escaped("\n".join(lines))
        return self._sections[key][1]


def escaped(text: str) -> str:
    """Return `text` without anything that begins a marker of a summary."""
    return _FAMILY.sub(r"\1\\\2\3", text) if "[[" in text else text


def _section(title: str, value: Any) -> Iterator[str]:
    if not value:
        return
    yield _HEADING + title
    if isinstance(value, str):
        yield from (_INDENT + line for line in value.split("\n"))
        return
    items: Sequence[Any] = [value] if title == _ABOUT else value
    for item in items:
        first, *rest = _members(item) if title in _RECORDS else item.split("\n")
        yield _ITEM + first
        yield from (_INDENT + line for line in rest)


def _members(record: _Plain) -> list[str]:
    lines: list[str] = []
    for name, value in record.items():
        first, *rest = _spelled(value).split("\n")
        lines.append(name + _COLON + first)
        lines.extend(_INDENT + line for line in rest)
    return lines


def _spelled(value: str | int) -> str:
    return value if isinstance(value, str) else str(value).lower()


MOST_RECALLABLE = 40
_EVICTED_LABEL = 60


class Computed(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about the removed messages that need no model, all redacted.

    `evicted` are the messages for which `spoken` has no room. `recallable` are contents worth naming, newest last.
    """

    spoken: Spoken = Spoken()
    evicted: tuple[str, ...] = ()
    ledger: Ledger = Ledger()
    mentions: Mentions = Mentions()
    recallable: tuple[Recallable, ...] = ()
    answers: tuple[str, ...] = ()


class ModelAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A model's account of the removed messages, folded over all parts; complete unless `is_local`."""

    account: StructuredSummary
    unsupported: int = 0
    is_local: bool = False


def fold_summaries(older: StructuredSummary, newer: StructuredSummary) -> StructuredSummary:
    """Return `newer`, preceded by the requirements of `older` that it lost."""
    known = {normalised(text) for text in newer.requirements}
    lost = tuple(text for text in older.requirements if normalised(text) not in known)
    return replace(newer, requirements=(*lost, *newer.requirements)) if lost else newer


def fold_state(told: ModelAccount, computed: Computed, artifacts: Artifacts) -> SummaryState:
    """Return the state of a summary; items without room are kept in `artifacts`.

    The model's answers stay in it if no model has accounted for everything.
    """
    evicted = tuple(
        Recallable(handle=artifacts.keep(text), what=f"the person: {text[:_EVICTED_LABEL]}")
        for text in computed.evicted
    )
    state = SummaryState(
        account=without_secrets(told.account),
        spoken=computed.spoken,
        ledger=computed.ledger,
        mentions=computed.mentions,
        answers=computed.answers if told.is_local else (),
        recallable=_newest((*evicted, *computed.recallable)),
        provenance=Provenance(is_local=told.is_local, unsupported=told.unsupported),
    )
    return within_requirements(state, artifacts, MOST_REQUIREMENTS)


_Nested: TypeAlias = "str | dict[str, _Nested] | list[_Nested] | tuple[_Nested, ...]"
"""An account without its types: it has texts and nothing else."""


def without_secrets(account: StructuredSummary) -> StructuredSummary:
    """Return `account` with possible secrets replaced: a model, or an earlier version of jp, can have included one."""
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


def within_requirements(state: SummaryState, artifacts: Artifacts, most: int) -> SummaryState:
    """Return `state` with its newest `most` requirements; older ones go to `artifacts`, with the previous handle."""
    requirements = state.account.requirements
    gone = requirements[: max(len(requirements) - most, 0)]
    if not gone:
        return state
    before = [f"Still older requirements: recall {state.older_requirements}"] if state.older_requirements else []
    handle = artifacts.keep("\n".join((*before, *gone)))
    account = replace(state.account, requirements=requirements[len(gone) :])
    return replace(state, account=account, older_requirements=handle)


def _newest(recallable: Sequence[Recallable]) -> tuple[Recallable, ...]:
    """Return the last of each handle, as many as there is room for."""
    found = {each.handle: each for each in reversed(recallable)}
    return tuple(reversed(list(found.values())[:MOST_RECALLABLE]))


ANSWERS_LIMIT = 8_000
ANSWER_LIMIT = 700


def answers_in(messages: Sequence[Message], cutter: Cutter) -> tuple[str, ...]:
    """Return the newest visible answers in `messages` for which there is room, oldest first.

    Each has at most 700 characters, without secrets.
    """
    room = ANSWERS_LIMIT
    found: list[str] = []
    for message in filter(is_visible_assistant, reversed(messages)):
        text = excerpt("\n\n".join(filter(None, texts_of(message))), ANSWER_LIMIT, cutter)
        room -= len(text)
        if room < 0:
            break
        found.append(text)
    return tuple(reversed(found))


_Item = TypeVar("_Item")
_Step = Callable[[SummaryState, Artifacts], SummaryState]


def fit_summary(state: SummaryState, limit: int, nonce: str, artifacts: Artifacts) -> SummaryState:
    """Return `state` shortened to a text of at most `limit` tokens, or to the least that it can have.

    The goal, the next step and the request being worked on always stay. The person's words and requirements go to
    `artifacts`, and a handle stays.
    """
    renderer = Renderer(nonce)
    for step in _STEPS:
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
    return replace(state, answers=())


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
"""The order in which parts are dropped: the least useful ones first."""

WORTH_A_HANDLE = 800
"""Characters from which on a result that leaves is named with its handle."""


class RemovedMessages(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that leave the view: what a summarizer is shown of them (`source`), and what is known without asking."""

    gone: Transcript
    source: Source
    computed: Computed


def leave(gone: Transcript, cutter: Cutter) -> RemovedMessages:
    """Return the facts about the messages `gone`, which one summary will replace."""
    source = read_source(gone, cutter.artifacts, cutter.known)
    spoken = fold_spoken(spoken_in(gone, cutter))
    outputs = [piece.text for piece in source.pieces if piece.is_output]
    computed = Computed(
        spoken=spoken.spoken,
        evicted=spoken.evicted,
        ledger=ledger_of(gone, cutter.known),
        mentions=mentions_in((piece.text for piece in source.pieces if not piece.is_output), outputs=outputs),
        recallable=_recallable(gone, cutter),
        answers=answers_in(gone, cutter),
    )
    return RemovedMessages(gone=gone, source=source, computed=computed)


def _recallable(messages: Sequence[Message], cutter: Cutter) -> tuple[Recallable, ...]:
    """Return the newest long results in `messages`, oldest first."""
    found: list[Recallable] = []
    for group in reversed(groups_of(messages)):
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
