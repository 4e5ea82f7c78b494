"""A summary as typed state, as text, and as a message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from jp.context.budget import size_of
from jp.context.evidence import Mentions
from jp.context.markers import Cutter, checksum_of
from jp.context.redaction import excerpt
from jp.context.summary_schema import NOTHING_SAID, StructuredSummary
from jp.context.summary_source import Ledger, Spoken
from jp.context.types import Digested, Message, Meta, TextBlock, Transcript, has_content, texts_of

RULE = "summary"
VERSION = 1
"""What `meta.digested` has on a summary's message. A summary of another version is recognised and not read."""


class Recallable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something left out, and the handle that recalls it."""

    handle: str
    what: str


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a summary comes from.

    `is_local` says that at least a part of it was made without a model. `unsupported` counts what a model claimed and
    nothing bears out, over all `updates`.
    """

    is_local: bool = False
    unsupported: int = 0
    updates: int = 0


class SummaryState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """All of a summary; its text is rendered from this and reads back to it.

    `answers` are the newest visible ones of the model, where no model accounted for them. `inherited` is the text of an
    earlier summary that could not be read. `older_requirements` recalls those for which there is no room, and
    `whole_request` the request being worked on, where there is room for its beginning and end alone.
    """

    account: StructuredSummary = NOTHING_SAID
    spoken: Spoken = Spoken()
    ledger: Ledger = Ledger()
    mentions: Mentions = Mentions()
    answers: tuple[str, ...] = ()
    inherited: str = ""
    older_requirements: str = ""
    whole_request: str = ""
    recallable: tuple[Recallable, ...] = ()
    provenance: Provenance = Provenance()


_FAMILY = re.compile(r"(?i)(\[\[/?)(\\*)(summary:)")
_ESCAPED = re.compile(r"(?i)(\[\[/?\\*)\\(summary:)")

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
"""What msgspec makes of a Struct: members by name."""

_ABOUT = "About this record"
_TITLES: tuple[tuple[str, str], ...] = (
    ("Goal", "account.goal"),
    ("The request being worked on, word for word", "spoken.active"),
    ("The whole of that request, to recall by this handle", "whole_request"),
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
    ("From an earlier record", "inherited"),
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

_PLACES = {title: path.split(".") for title, path in _TITLES}
_PARTS = {title: attrgetter(path) for title, path in _TITLES}


def opening(nonce: str) -> str:
    """The first line of a summary."""
    return f"[[summary:{nonce}:v{VERSION}]]"


def closing(nonce: str) -> str:
    """The last line of a summary."""
    return f"[[/summary:{nonce}]]"


def render_summary(state: SummaryState, nonce: str) -> str:
    """The text of `state`, in which empty parts do not appear."""
    return Renderer(nonce).text(state)


class Renderer:
    """Renders several states of which most parts are the same objects; each part once."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._sections: dict[tuple[str, int], tuple[object, str]] = {}

    def text(self, state: SummaryState) -> str:
        """The text of `state`, in which empty parts do not appear."""
        notes = (PREFACE, LOCAL_NOTE) if state.provenance.is_local else (PREFACE,)
        body = (self._section(title, get(state)) for title, get in _PARTS.items())
        return "\n".join((opening(self._nonce), *notes, *filter(None, body), closing(self._nonce)))

    def _section(self, title: str, value: object) -> str:
        """The section is kept with its value, so that no other one gets that's identity."""
        key = title, id(value)
        if key not in self._sections:
            lines = _section(title, msgspec.to_builtins(value)) if value else ()
            self._sections[key] = value, escaped("\n".join(lines))
        return self._sections[key][1]


def parse_summary(text: str, nonce: str) -> SummaryState | None:
    """The state whose text this is; None where it is not all of a summary of this conversation and version."""
    lines = text.split("\n")
    if lines[0] != opening(nonce) or lines[-1] != closing(nonce):
        return None
    plain: _Plain = {"account": {"goal": "", "next_step": "", "requirements": []}}
    try:
        for title, content in _sections(map(unescaped, lines[1:-1])):
            *parents, name = _PLACES[title]
            place = plain
            for parent in parents:
                place = place.setdefault(parent, {})
            value = _read(content, is_record=title in _RECORDS)
            place[name] = value[0] if title == _ABOUT else value
        return msgspec.convert(plain, SummaryState, strict=False)
    except (LookupError, ValueError):
        return None


def escaped(text: str) -> str:
    """`text` with nothing in it that begins a marker of a summary."""
    return _FAMILY.sub(r"\1\\\2\3", text) if "[[" in text else text


def unescaped(text: str) -> str:
    """What `escaped` was given."""
    return _ESCAPED.sub(r"\1\2", text) if "[[" in text else text


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


def _sections(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    title, content = "", list[str]()
    for line in lines:
        if line.startswith(_HEADING):
            if title:
                yield title, content
            title, content = line.removeprefix(_HEADING), []
        else:
            content.append(line)
    if title:
        yield title, content


def _read(lines: list[str], *, is_record: bool) -> Any:
    """The value under a heading.

    Raises:
        LookupError: a line is indented and belongs to no item.
        ValueError: a line is neither an item nor indented, or a record's has no name.
    """
    if any(line[:2] not in {_ITEM, _INDENT} for line in lines):
        raise ValueError("a line that is neither an item nor part of one")
    if all(line.startswith(_INDENT) for line in lines):
        return "\n".join(line.removeprefix(_INDENT) for line in lines)
    items: list[list[str]] = []
    for line in lines:
        if line.startswith(_ITEM):
            items.append([])
        items[-1].append(line[2:])
    found = (_record(item) if is_record else "\n".join(item) for item in items)
    return list(found)


def _record(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        if line.startswith(_INDENT):
            found[name] += "\n" + line.removeprefix(_INDENT)
            continue
        name, colon, value = line.partition(_COLON)
        if not colon:
            raise ValueError("a line of a record without a name")
        found[name] = value
    return found


INHERITED_LIMIT = 3_000


def is_summary(message: Message) -> bool:
    """Whether `message` stands for others; by what it is, whatever its text looks like."""
    return message.meta.kind == "summary"


def summary_row(state: SummaryState, gone: Sequence[Message], nonce: str) -> Message:
    """The message for `state`, which stands for the messages `gone`.

    It has the user's role, so that system messages stay as they are, and is hidden and no person's. `meta.digested`
    says by which version it was written; its checksum is that of the text.
    """
    text = render_summary(state, nonce)
    digested = Digested(sha256=checksum_of(text), original_bytes=sum(map(size_of, gone)), rule=RULE, version=VERSION)
    return Message(role="user", content=text, meta=Meta(kind="summary", hidden=True, digested=digested))


def state_of(message: Message, cutter: Cutter) -> SummaryState:
    """What the summary `message` knows; of one by another version or program, the beginning and end of its text."""
    text = "\n\n".join(filter(None, texts_of(message)))
    digested = message.meta.digested
    if digested is not None and (digested.rule, digested.version) == (RULE, VERSION):
        found = parse_summary(text, cutter.nonce)
        if found is not None:
            return found
    return SummaryState(inherited=excerpt(text, INHERITED_LIMIT, cutter))


def alternating(messages: Transcript) -> Transcript:
    """`messages` for a provider that takes no two of one side in a row: a summary joins the message after it.

    The text of that message stays a block of its own, byte for byte; a blank one leaves a summary. This is how messages
    are sent and not how they are kept: who keeps it has a message of the person with a summary in it.
    """
    rows: list[Message] = []
    for message in messages:
        if rows and is_summary(rows[-1]) and message.role == "user" and not is_summary(message):
            rows[-1] = _joined(rows[-1], message)
        else:
            rows.append(message)
    return tuple(rows) if len(rows) < len(messages) else messages


def _joined(summary: Message, message: Message) -> Message:
    record = TextBlock(text="\n\n".join(texts_of(summary)))
    own = (TextBlock(text=message.content),) if isinstance(message.content, str) else message.content
    return replace(message, content=(record, *own), meta=message.meta if has_content(message) else summary.meta)
