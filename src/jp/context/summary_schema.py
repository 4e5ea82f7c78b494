"""A summarizer's answer: a typed account of the messages, or the reason for having none.

Models write JSON with prose and fences around it, unknown members, and one text in place of a list. All of that is
read; an answer without a goal, or one that repeats the question, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Literal, cast

import msgspec
from msgspec.structs import replace

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
"""The reason for having no summary.

The first three need a person. `network` to `timeout` are temporary; `overloaded` is the provider's own word.
`truncated` to `malformed` are unusable answers: cut off at the longest answer, blank, a tool call in place of an
answer, anything that is not an account.
"""


class SummaryError(msgspec.Struct, frozen=True, kw_only=True):
    """A summary that did not come to be. `detail` is for a person, and never becomes part of a summary."""

    kind: ErrorKind
    detail: str = ""


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A decision and its reason."""

    what: str
    why: str = ""


class MendedError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An error, and its fix, if there was one."""

    error: str
    fix: str = ""


class TouchedFiles(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Paths, as the transcript writes them."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


class StructuredSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A model's account of the messages. `requirements` are the person's, word for word."""

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

GOAL_MEANS = "what all of this is for"
NEXT_STEP_MEANS = "what would be done next"
"""Descriptions, in a request, of the two statements that every account has."""

_PLACEHOLDERS = ("string", "text", "...", "…", "goal", "next_step", GOAL_MEANS, NEXT_STEP_MEANS)
_MOST_BRACES = 64
"""So many opening braces are tried as the beginning of the account."""

_TOOL_MARKUP = re.compile(r"<\|?/?(?:tool_calls?|function_calls?|invoke|tool_use)\b|\"tool_calls\"\s*:|\[TOOL_CALLS\]")


SENT_DESCRIPTIONS = {
    "Decision": "What was decided, and why.",
    "MendedError": "What went wrong, and what mended it, if anything did.",
    "StructuredSummary": "What a model says happened. `requirements` are word for word what the person asked for.",
}
"""Descriptions that are sent: docstrings can change without a change of what models are asked."""


def answer_schema() -> dict[str, object]:
    """Return the JSON schema of an account, for providers that enforce a schema."""
    schema = msgspec.json.schema(StructuredSummary)
    for name, description in SENT_DESCRIPTIONS.items():
        schema["$defs"][name]["description"] = description
    return schema


def read_answer(text: str, *, is_complete: bool = True) -> SummaryReply:
    """Return the account in a model's answer, or the reason for having none.

    Args:
        text: The answer: one JSON object, perhaps in a fence or between sentences.
        is_complete: Whether the model reached its end on its own.
    """
    if not text.strip():
        return SummaryError(kind="empty", detail="the answer is blank")
    if not is_complete:
        return SummaryError(kind="truncated", detail="the answer was cut off")
    found = _object_in(text.encode("utf-8", "replace").decode())
    if found is None:
        kind: ErrorKind = "tool_markup" if _TOOL_MARKUP.search(text) else "malformed"
        return SummaryError(kind=kind, detail="Expected a JSON object with a `goal`")
    account = _account_of(found)
    if not account.goal.strip():
        return SummaryError(kind="malformed", detail="Expected a `goal` that is not blank")
    if _is_echo(account):
        return SummaryError(kind="malformed", detail="The answer repeats the schema instead of following it")
    return capped(account)


def _object_in(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in `text` that has a `goal`."""
    from json import JSONDecoder

    decoder = JSONDecoder(strict=False)
    start = text.find("{")
    for _ in range(_MOST_BRACES):
        if start < 0:
            return None
        end = start + 1
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and "goal" in value:
            return cast("dict[str, Any]", value)
        start = text.find("{", end)
    return None


def _account_of(found: dict[str, Any]) -> StructuredSummary:
    files = found.get("files")
    touched = cast("dict[str, Any]", files) if isinstance(files, dict) else {}
    return StructuredSummary(
        goal=_text(found.get("goal")),
        next_step=_text(found.get("next_step")),
        requirements=_texts(found.get("requirements")),
        constraints=_texts(found.get("constraints")),
        decisions=tuple(Decision(what=what, why=why) for what, why in _pairs(found.get("decisions"), "what", "why")),
        done=_texts(found.get("done")),
        open=_texts(found.get("open")),
        errors_and_fixes=tuple(
            MendedError(error=error, fix=fix) for error, fix in _pairs(found.get("errors_and_fixes"), "error", "fix")
        ),
        files=TouchedFiles(read=_texts(touched.get("read")), modified=_texts(touched.get("modified"))),
        commands=_texts(found.get("commands")),
        hypothesis=_text(found.get("hypothesis")),
        test_command=_text(found.get("test_command")),
        open_questions=_texts(found.get("open_questions")),
    )


def _text(value: Any) -> str:
    """Return a statement: a text as it is, several joined, a number as it is written; nothing for anything else."""
    match value:
        case str():
            # A lone surrogate, which JSON can spell, is no text that could be stored.
            return value.encode("utf-8", "replace").decode()
        case list():
            return "; ".join(filter(None, map(_text, cast("list[object]", value))))
        case dict():
            return "; ".join(filter(None, map(_text, cast("dict[str, object]", value).values())))
        case int() | float() if not isinstance(value, bool):
            return str(value)
        case _:
            return ""


def _texts(value: object) -> tuple[str, ...]:
    """Return a list of statements; a single one counts as a list."""
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    return tuple(text for text in map(_text, items) if text.strip())


def _pairs(value: object, first: str, second: str) -> Iterator[tuple[str, str]]:
    """Yield the two members of each object in a list; a text instead of an object is the first of them."""
    for item in cast("list[object]", value) if isinstance(value, list) else [value]:
        members: dict[str, object] = {first: item}
        if isinstance(item, dict) and first in item:
            members = cast("dict[str, object]", item)
        text = _text(members[first])
        if text.strip():
            yield text, _text(members.get(second))


def _is_echo(account: StructuredSummary) -> bool:
    statements = (account.goal, account.next_step, *(made.what for made in account.decisions))
    return any(_bare(text) in _descriptions() for text in statements)


@cache
def _descriptions() -> frozenset[str]:
    """Return the texts of the schema and the question that no account says of itself."""
    found: set[str] = set(map(_bare, _PLACEHOLDERS))
    waiting: list[object] = [answer_schema()]
    while waiting:
        match node := waiting.pop():
            case dict():
                members = cast("dict[str, object]", node)
                described = members.get("description")
                found |= {_bare(described)} if isinstance(described, str) else set()
                waiting += members.values()
            case list():
                waiting += cast("list[object]", node)
            case _:
                pass
    return frozenset(found - {""})


def _bare(text: str) -> str:
    return normalised(text).strip(" .`\"'<>")


def capped(account: StructuredSummary) -> StructuredSummary:
    """Return `account` within its bounds: long texts end in an ellipsis, long lists lose their oldest items."""
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
    """Return `text` in at most `limit` characters, with an ellipsis at its end if it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def normalised(text: str) -> str:
    """Return the common form of wordings that differ in spaces and capitals alone."""
    return " ".join(text.split()).casefold()


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the first of each wording in `texts`, without blank ones."""
    found: dict[str, str] = {}
    for text in texts:
        found.setdefault(normalised(text), text)
    found.pop("", None)
    return tuple(found.values())


def _items(texts: tuple[str, ...], most: int = MOST_ITEMS) -> tuple[str, ...]:
    return distinct(shortened(text) for text in texts[-most:])
