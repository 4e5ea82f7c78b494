"""A summary as typed state and as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from jp.context.evidence import Mentions
from jp.context.summary_schema import NOTHING_SAID, StructuredSummary
from jp.context.summary_source import Ledger, Spoken

VERSION = 1
"""What `meta.digested` has on a summary's message. A summary of another version is recognised and not read."""


class Recallable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something left out, and the handle that recalls it."""

    handle: str
    what: str


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a summary comes from.

    `is_local` says that at least a part of it was made without a model. `unsupported` counts what a model claimed and
    nothing bears out.
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
"""What msgspec makes of a Struct: members by name."""

_ABOUT = "About this record"
_TITLES: tuple[tuple[str, str], ...] = (
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


def escaped(text: str) -> str:
    """`text` with nothing in it that begins a marker of a summary."""
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
