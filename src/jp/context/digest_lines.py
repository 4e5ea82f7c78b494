"""The lines that replace a tool result: what was done, how it ended, and evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar, assert_never, get_args

import msgspec

from jp.context.evidence import (
    changed_lines,
    files_matched,
    first_and_last,
    matches,
    outcome_lines,
    symbols,
)
from jp.context.redaction import redacted
from jp.context.types import Call, Facts

ToolKind = Literal["terminal", "test", "read", "search", "list", "web", "write", "patch", "json", "agent", "other"]
"""`terminal`: a command ran. `test`: one that runs tests. `write` and `patch` change a file, whole or in part. `json`:
the result is data. `agent`: another agent did a task. What is unknown is `other`.
"""

_KINDS: dict[str, ToolKind] = {kind: kind for kind in get_args(ToolKind)}
CHANGING = frozenset({"write", "patch"})

_LONGEST_SUBJECT = 120
_LONGEST_ARGUMENT = 40
_SHOWN_ARGUMENTS = 2
_LONGEST_VALUE = 2_000


class ToolRule(msgspec.Struct, frozen=True, kw_only=True):
    """What a host says of a tool.

    `subject` names the argument that tells what was done: a command, a pattern, an address, a goal.
    """

    kind: ToolKind = "other"
    subject: str = ""


ToolRules = Mapping[str, ToolRule]
"""By the tool's name."""


def kind_of(facts: Facts | None, rule: ToolRule) -> ToolKind:
    """The kind that the tool recorded, where it is one of ours; else the host's."""
    recorded = _KINDS.get(facts.kind) if facts is not None else None
    return recorded or rule.kind


def subject_of(call: Call, rule: ToolRule, known: dict[str, str] | None = None) -> str:
    """What `call` was to do, in a line without secrets; empty where no argument says so.

    Without a named argument: the first two, shortened. `known` is what `jp.context.redaction.redacted` remembers.
    """
    arguments = _arguments(call)
    if rule.subject:
        value = arguments.get(rule.subject)
        return "" if value is None else shown(_written(value), _LONGEST_SUBJECT, known)
    return ", ".join(
        shown(f"{name}={_written(value)}", _LONGEST_ARGUMENT, known)
        for name, value in list(arguments.items())[:_SHOWN_ARGUMENTS]
    )


def shown(text: str, limit: int, known: dict[str, str] | None = None) -> str:
    """`text` as one line of at most `limit` characters, without secrets: they go before anything is cut.

    `known` is what `jp.context.redaction.redacted` remembers.
    """
    if not text:
        return text
    from jp.context.redaction import redacted  # its patterns take milliseconds to compile

    line = " ".join(redacted(text[: limit + _LONGEST_VALUE], {} if known is None else known).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _arguments(call: Call) -> dict[str, object]:
    try:
        return msgspec.json.decode(call.arguments.encode(), type=dict[str, object])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {}


def _written(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_SIGNALLED = 128
_SIGNALS = {1: "HUP", 2: "INT", 3: "QUIT", 6: "ABRT", 9: "KILL", 11: "SEGV", 13: "PIPE", 14: "ALRM", 15: "TERM"}


def status(tool: str, *, is_error: bool) -> str:
    """Whether the call of `tool` succeeded."""
    return f"[compacted] {tool}: {'error' if is_error else 'success'}"


def ended(exit_code: int) -> str:
    """An exit code with the signal that it stands for. A command whose reader had enough did not fail."""
    signal = -exit_code if exit_code < 0 else exit_code - _SIGNALLED
    name = _SIGNALS.get(signal)
    if name is None:
        return f"exit {exit_code}"
    return f"exit {exit_code} (SIG{name}{', no failure' if name == 'PIPE' else ''})"


def fetched(status: int) -> str:
    """How a request over HTTP ended."""
    return f"HTTP {status}"


def line_range(lines: str, total: int | None) -> str:
    """Which lines a result has, and of how many; empty where it has all, or nobody said which."""
    if not lines:
        return ""
    return f"lines {lines}" if total is None else f"lines {lines} of {total}"


def extent(size: int, lines: int | None) -> str:
    """How large the result is, in bytes and, where they were counted, lines."""
    if lines is None:
        return f"{size} bytes"
    return f"{lines} line{'' if lines == 1 else 's'}, {size} bytes"


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


_NO_RULE = ToolRule()


class Stripped(msgspec.Struct, frozen=True, kw_only=True):
    """A result that is not sent: its `size` in bytes, its lines where they were counted, and what recalls it.

    `room` is how many bytes of it are sent otherwise, where that is not all of it.
    """

    size: int
    room: int | None = None
    is_error: bool = False
    lines: int | None = None
    handle: str = ""


def status_line(call: Call, stripped: Stripped) -> str | None:
    """Return how a call ended and the handle of its result; None where not even that is shorter than the result."""
    line = status(call.name, is_error=stripped.is_error)
    left = (stripped.size if stripped.room is None else stripped.room) - 1 - _bytes(line)
    handle = f"; recall {stripped.handle}" if stripped.handle else ""
    return None if left < 0 else line + handle if _bytes(handle) <= left else line


def digest_text(call: Call, facts: Facts | None, stripped: Stripped, rule: ToolRule = _NO_RULE) -> str | None:
    """Return `stand_in` and below it as much of the recorded evidence as leaves it shorter than the result."""
    line = stand_in(call, facts, stripped, rule)
    if line is None or facts is None:
        return line
    left = (stripped.size if stripped.room is None else stripped.room) - 1 - _bytes(line)
    for told in facts.evidence:
        if told not in line and _bytes(f"\n{told}") <= left:
            line = f"{line}\n{told}"
            left -= _bytes(f"\n{told}")
    return line


def stand_in(call: Call, facts: Facts | None, stripped: Stripped, rule: ToolRule = _NO_RULE) -> str | None:
    """One line of fewer bytes than the result has: how it ended and as much of what is known as there is room for.

    None where not even how it ended is shorter: then the result stays. Secrets are taken out of what `call` and `facts`
    say. `rule` names the argument that says what was done.
    """
    line = status(call.name, is_error=stripped.is_error)
    left = (stripped.size if stripped.room is None else stripped.room) - 1 - _bytes(line)
    if left < 0:
        return None
    known = facts or Facts()
    subject = subject_of(call, rule) if rule.subject else ""
    parts = _parts(known, stripped, subject)
    taken: set[int] = set()
    for number in sorted(range(len(parts)), key=lambda number: parts[number][0]):
        cost = _bytes(f"; {parts[number][1]}")
        if parts[number][1] and cost <= left:
            taken.add(number)
            left -= cost
    return "; ".join((line, *(parts[number][1] for number in sorted(taken))))


def _parts(facts: Facts, stripped: Stripped, subject: str) -> tuple[tuple[int, str], ...]:
    """What can be said, in the order in which it is said, each with its rank: the lower, the sooner there is room."""
    return (
        (3, shown(facts.path, _LONGEST_PATH)),
        (4, shown(facts.url, _LONGEST_PATH)),
        (9, shown(facts.title, _LONGEST_TITLE)),
        (2, "" if facts.status is None else fetched(facts.status)),
        (6, line_range(shown(facts.lines, _LONGEST_PATH), facts.total_lines)),
        (8, "" if facts.url and subject == shown(facts.url, _LONGEST_PATH) else subject),
        (1, "" if facts.exit_code is None else ended(facts.exit_code)),
        (7, "" if facts.matches is None else f"{facts.matches} matches"),
        (10, extent(stripped.size, stripped.lines)),
        (5, shown(facts.first_error, _LONGEST_ERROR)),
        (0, f"recall {stripped.handle}" if stripped.handle else ""),
    )


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
