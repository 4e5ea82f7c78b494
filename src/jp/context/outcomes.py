"""How a call ended, in the words with which everything begins that stands for its result."""

from __future__ import annotations

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
