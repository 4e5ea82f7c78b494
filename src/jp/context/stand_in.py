"""What a host's own view shows in place of a result that it strips: said without reading the result."""

from __future__ import annotations

import msgspec

from jp.context.outcomes import ended, extent, fetched, line_range, status
from jp.context.tool_kinds import ToolRule, shown, subject_of
from jp.context.types import Call, Facts

_LONGEST_PATH = 200
_LONGEST_TITLE = 120
_LONGEST_ERROR = 200
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
