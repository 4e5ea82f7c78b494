"""The lines that replace a tool result: what was done, how it ended, and evidence."""

from __future__ import annotations

import msgspec

from jp.context.redaction import redacted
from jp.context.types import Call, Facts

_LONGEST_VALUE = 2_000


def shown(text: str, limit: int) -> str:
    """Return `text` as one line of at most `limit` characters, without secrets, which are removed before it is cut."""
    if not text:
        return text

    line = " ".join(redacted(text[: limit + _LONGEST_VALUE], {}).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


_SIGNALLED = 128
_SIGNALS = {1: "HUP", 2: "INT", 3: "QUIT", 6: "ABRT", 9: "KILL", 11: "SEGV", 13: "PIPE", 14: "ALRM", 15: "TERM"}


def status(tool: str, *, is_error: bool) -> str:
    """Return the status prefix of a result: whether the call of `tool` succeeded."""
    return f"[compacted] {tool}: {'error' if is_error else 'success'}"


def ended(exit_code: int) -> str:
    """Return an exit code with the name of its signal. A command whose reader closed the pipe did not fail."""
    signal = -exit_code if exit_code < 0 else exit_code - _SIGNALLED
    name = _SIGNALS.get(signal)
    if name is None:
        return f"exit {exit_code}"
    return f"exit {exit_code} (SIG{name}{', no failure' if name == 'PIPE' else ''})"


def line_range(lines: str, total: int | None) -> str:
    """Return the lines that a result has, and of how many; empty if it has all, or if unknown."""
    if not lines:
        return ""
    return f"lines {lines}" if total is None else f"lines {lines} of {total}"


def extent(size: int, lines: int | None) -> str:
    """Return the size of the result in bytes and, if they were counted, lines."""
    if lines is None:
        return f"{size} bytes"
    return f"{lines} line{'' if lines == 1 else 's'}, {size} bytes"


_LONGEST_PATH = 200
_LONGEST_TITLE = 120
_LONGEST_ERROR = 200


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


def digest_text(call: Call, facts: Facts | None, stripped: Stripped) -> str | None:
    """Return `stand_in` and below it as much of the recorded evidence as leaves it shorter than the result."""
    line = stand_in(call, facts, stripped)
    if line is None or facts is None:
        return line
    left = (stripped.size if stripped.room is None else stripped.room) - 1 - _bytes(line)
    for told in facts.evidence:
        if told not in line and _bytes(f"\n{told}") <= left:
            line = f"{line}\n{told}"
            left -= _bytes(f"\n{told}")
    return line


def stand_in(call: Call, facts: Facts | None, stripped: Stripped) -> str | None:
    """Return one line of fewer bytes than the result: how it ended and as many known facts as fit.

    None if not even the status is shorter: then the result stays. Secrets are removed from `facts`.
    """
    line = status(call.name, is_error=stripped.is_error)
    left = (stripped.size if stripped.room is None else stripped.room) - 1 - _bytes(line)
    if left < 0:
        return None
    parts = _parts(facts or Facts(), stripped)
    taken: set[int] = set()
    for number in sorted(range(len(parts)), key=lambda number: parts[number][0]):
        cost = _bytes(f"; {parts[number][1]}")
        if parts[number][1] and cost <= left:
            taken.add(number)
            left -= cost
    return "; ".join((line, *(parts[number][1] for number in sorted(taken))))


def _parts(facts: Facts, stripped: Stripped) -> tuple[tuple[int, str], ...]:
    """Return the facts in the order of the line, each with its rank: lower ranks get room first."""
    return (
        (3, shown(facts.path, _LONGEST_PATH)),
        (4, shown(facts.url, _LONGEST_PATH)),
        (9, shown(facts.title, _LONGEST_TITLE)),
        (2, "" if facts.status is None else f"HTTP {facts.status}"),
        (6, line_range(shown(facts.lines, _LONGEST_PATH), facts.total_lines)),
        (1, "" if facts.exit_code is None else ended(facts.exit_code)),
        (7, "" if facts.matches is None else f"{facts.matches} matches"),
        (10, extent(stripped.size, stripped.lines)),
        (5, shown(facts.first_error, _LONGEST_ERROR)),
        (0, f"recall {stripped.handle}" if stripped.handle else ""),
    )


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
