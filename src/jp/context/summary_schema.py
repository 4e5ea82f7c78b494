"""What a summarizer answers: a typed account of what happened, read strictly, or a reason why there is none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.errors import reason_of

MOST_REQUIREMENTS = 40
MOST_ITEMS = 12
MOST_FILES = 80
LONGEST_ITEM = 400
LONGEST_STATEMENT = 800

ErrorKind = Literal[
    "auth",
    "permission",
    "quota",
    "network",
    "stream_cut",
    "overloaded",
    "timeout",
    "truncated",
    "empty",
    "tool_markup",
    "malformed",
    "no_provider",
]
"""Why there is no summary.

The first three need a person. `network` to `timeout` pass by themselves; `overloaded` is the provider's own word for
it. `truncated` to `malformed` are answers that cannot be used: cut off at the longest answer, blank, a call of a tool
instead of an answer, anything that is not an account.
"""


class SummaryError(msgspec.Struct, frozen=True, kw_only=True):
    """A summary that did not come to be. `detail` is for a person, and never becomes part of a summary."""

    kind: ErrorKind
    detail: str = ""


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What was decided, and why."""

    what: str
    why: str = ""


class MendedError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What went wrong, and what mended it, if anything did."""

    error: str
    fix: str = ""


class TouchedFiles(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Paths, as the transcript writes them."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


class StructuredSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a model says happened. `requirements` are word for word what the person asked for."""

    goal: str
    next_step: str
    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    done: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    errors_and_fixes: tuple[MendedError, ...] = ()
    files: TouchedFiles = TouchedFiles()
    commands: tuple[str, ...] = ()
    hypothesis: str = ""
    test_command: str = ""
    open_questions: tuple[str, ...] = ()


SummaryReply = StructuredSummary | SummaryError

NOTHING_SAID = StructuredSummary(goal="", next_step="", requirements=())

_TOOL_MARKUP = re.compile(r"<\|?/?(?:tool_calls?|function_calls?|invoke|tool_use)\b|\"tool_calls\"\s*:|\[TOOL_CALLS\]")
_CODE_FENCE = "```"


def answer_schema() -> dict[str, object]:
    """The JSON schema of an account, for providers that hold a model to one."""
    return msgspec.json.schema(StructuredSummary)


def read_answer(text: str, *, is_complete: bool = True) -> SummaryReply:
    """The account that a model's answer is; `is_complete` is whether the model came to its end by itself.

    A fence of backticks around the JSON is taken off, as models put it there whatever they are told. Everything else
    has to fit: members that nobody asked for, types, and what is required.
    """
    if not text.strip():
        return SummaryError(kind="empty", detail="the answer is blank")
    if not is_complete:
        return SummaryError(kind="truncated", detail="the answer was cut off")
    try:
        account = msgspec.json.decode(_unfenced(text).encode("utf-8", "surrogatepass"), type=StructuredSummary)
    except (msgspec.DecodeError, RecursionError) as error:
        kind: ErrorKind = "tool_markup" if _TOOL_MARKUP.search(text) else "malformed"
        return SummaryError(kind=kind, detail=reason_of(error))
    if not account.goal.strip():
        return SummaryError(kind="malformed", detail="Expected a `goal` that is not blank")
    return capped(account)


def capped(account: StructuredSummary) -> StructuredSummary:
    """`account` within its bounds: what is too long ends in an ellipsis, what is too many loses the oldest."""
    return replace(
        account,
        goal=shortened(account.goal, LONGEST_STATEMENT),
        next_step=shortened(account.next_step, LONGEST_STATEMENT),
        hypothesis=shortened(account.hypothesis, LONGEST_STATEMENT),
        test_command=shortened(account.test_command, LONGEST_ITEM),
        requirements=_items(account.requirements, MOST_REQUIREMENTS),
        constraints=_items(account.constraints),
        decisions=tuple(
            Decision(what=shortened(made.what), why=shortened(made.why)) for made in account.decisions[-MOST_ITEMS:]
        ),
        done=_items(account.done),
        open=_items(account.open),
        errors_and_fixes=tuple(
            MendedError(error=shortened(met.error), fix=shortened(met.fix))
            for met in account.errors_and_fixes[-MOST_ITEMS:]
        ),
        files=TouchedFiles(
            read=_items(account.files.read, MOST_FILES), modified=_items(account.files.modified, MOST_FILES)
        ),
        commands=_items(account.commands),
        open_questions=_items(account.open_questions),
    )


def shortened(text: str, limit: int = LONGEST_ITEM) -> str:
    """`text` in at most `limit` characters, with an ellipsis for its end where it had more."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def normalised(text: str) -> str:
    """What two wordings have in common that differ in spaces and capitals alone."""
    return " ".join(text.split()).casefold()


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """The first of each wording in `texts`; blank ones are none."""
    found: dict[str, str] = {}
    for text in texts:
        found.setdefault(normalised(text), text)
    found.pop("", None)
    return tuple(found.values())


def _items(texts: tuple[str, ...], most: int = MOST_ITEMS) -> tuple[str, ...]:
    return distinct(shortened(text) for text in texts[-most:])


def _unfenced(text: str) -> str:
    text = text.strip()
    if text.startswith(_CODE_FENCE) and text.endswith(_CODE_FENCE) and "\n" in text:
        return text[text.index("\n") : -len(_CODE_FENCE)]
    return text
