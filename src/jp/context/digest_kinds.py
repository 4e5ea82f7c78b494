"""What stands for the result of a call: a line that says what was done and how it ended, and lines of evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, assert_never

import msgspec

from jp.context.evidence import (
    changed_lines,
    files_matched,
    first_and_last,
    matches,
    outcome_lines,
    symbols,
)
from jp.context.outcomes import ended, extent, fetched, line_range, status
from jp.context.redaction import redacted
from jp.context.tool_kinds import ToolKind, shown
from jp.context.types import Facts

_LONGEST_PATH = 200
_LONGEST_TITLE = 120
_LONGEST_ERROR = 200
_LONGEST_MATCH = 100
_LONGEST_SYMBOLS = 300
_MOST_TOPS = 5
_MOST_KEYS = 8
_LONGEST_KEY = 40
_LARGEST_JSON = 2_000_000
_MILLISECONDS = 1_000
_Form = TypeVar("_Form")
_SUBJECT_WORDS: dict[ToolKind, str] = {"search": "pattern ", "agent": "goal "}


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A result to be described.

    `body` is its text, None where it is not at hand or is not to be read; `size`, in bytes, and `lines` are its own.
    `handles` recall it. `subject` is what the call was to do, without secrets. `note` says where else the content
    stands, or what became of it.
    """

    tool: str
    kind: ToolKind
    size: int
    handles: tuple[str, ...]
    facts: Facts = Facts()
    is_error: bool = False
    lines: int | None = None
    subject: str = ""
    body: str | None = None
    note: str = ""


def digest_of(result: Result, known: dict[str, str] | None = None) -> str:
    """What stands for `result`: one line, and up to five of its own below it, word for word but for their secrets.

    `known` is what `jp.context.redaction.redacted` remembers.
    """
    known = {} if known is None else known
    lines = _evidence(result, known)
    return "\n".join(("; ".join((*_headline(result, known), *_shape(result, known), *_where(result))), *lines))


def _headline(result: Result, known: dict[str, str]) -> tuple[str, ...]:
    """How it ended and what is known of it without its text, the most important first."""
    facts = result.facts
    subject = _SUBJECT_WORDS.get(result.kind, "") + result.subject if result.subject else ""
    parts = (
        status(result.tool, is_error=result.is_error),
        shown(facts.path, _LONGEST_PATH, known),
        shown(facts.url, _LONGEST_PATH, known),
        shown(facts.title, _LONGEST_TITLE, known),
        "" if facts.status is None else fetched(facts.status),
        line_range(shown(facts.lines, _LONGEST_KEY, known), facts.total_lines),
        "" if facts.url and result.subject == shown(facts.url, _LONGEST_PATH, known) else subject,
        "" if facts.exit_code is None else ended(facts.exit_code),
        "" if facts.matches is None else f"{facts.matches} matches",
        f"took {facts.duration_ms / _MILLISECONDS:.1f} s" if facts.duration_ms is not None else "",
        extent(result.size, result.lines),
        result.note,
    )
    return tuple(part for part in parts if part)


def _where(result: Result) -> tuple[str, ...]:
    return (f"recall {', '.join(result.handles)}",)


def _shape(result: Result, known: dict[str, str]) -> tuple[str, ...]:
    """What can be counted or named in the text of a result of this kind; of a stale one nothing."""
    if result.body is None or result.note:
        return ()
    body = result.body
    match result.kind:
        case "read":
            found = symbols(body)
            shape = (f"defines {shown(', '.join(found), _LONGEST_SYMBOLS, known)}",) if found else ()
        case "search":
            files = files_matched(body)
            shape = (f"in {files} files",) if files else ()
        case "list":
            shape = _listing(body, known)
        case "patch" | "write":
            added, removed = changed_lines(body)
            shape = (f"+{added} -{removed}",) if added or removed else ()
        case "json":
            shape = _shape_of_json(body, known)
        case "terminal" | "test" | "web" | "agent" | "other":
            shape = ()
        case _:
            assert_never(result.kind)
    return shape


def _evidence(result: Result, known: dict[str, str]) -> tuple[str, ...]:
    if result.body is None:
        error = shown(result.facts.first_error, _LONGEST_ERROR, known)
        return (error,) if error and not result.note else ()
    match result.kind:
        case "terminal" | "test":
            return outcome_lines(redacted(result.body, known))
        case "search":
            return matches(redacted(result.body, known), _LONGEST_MATCH)
        case "web" | "agent" | "other":
            return first_and_last(redacted(result.body, known))
        case "read" | "list" | "patch" | "write" | "json":
            return outcome_lines(redacted(result.body, known)) if result.is_error else ()
        case _:
            assert_never(result.kind)


def _listing(body: str, known: dict[str, str]) -> tuple[str, ...]:
    names = [name for name in map(str.strip, body.splitlines()) if name]
    tops = dict.fromkeys(name.removeprefix("./").split("/")[0] for name in names if "/" in name)
    told = dict.fromkeys(shown(top, _LONGEST_KEY, known) for top in tops)
    shares = (f"below {', '.join(list(told)[:_MOST_TOPS])}",) if tops else ()
    return (f"{len(names)} entries", *shares)


def _shape_of_json(body: str, known: dict[str, str]) -> tuple[str, ...]:
    if len(body) > _LARGEST_JSON:
        return ()
    fields = _decoded(body, dict[str, msgspec.Raw])
    if fields is not None:
        return (f"object with {_keys(list(fields), known)}",)
    rows = _decoded(body, list[dict[str, msgspec.Raw]])
    if rows:
        return (f"{len(rows)} rows with {_keys(list(rows[0]), known)}",)
    elements = _decoded(body, list[msgspec.Raw])
    return () if elements is None else (f"{len(elements)} elements",)


def _decoded(body: str, form: type[_Form]) -> _Form | None:
    try:
        return msgspec.json.decode(body.encode(), type=form)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def _keys(names: Sequence[object], known: dict[str, str]) -> str:
    named = ", ".join(shown(str(name), _LONGEST_KEY, known) for name in names[:_MOST_KEYS])
    more = len(names) - _MOST_KEYS
    return f"{len(names)} keys: {named}" + (f" and {more} more" if more > 0 else "")
