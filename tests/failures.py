"""What every failure of a command has in common."""

from __future__ import annotations

import json
from typing import Any

from running import Result


def check_failure(result: Result, code: int, *words: str) -> None:
    """A failure with this code: one line that says what failed, one that says what mends it, and nothing else.

    Notices may come before.
    """
    lines = result.stderr.splitlines()
    while lines and lines[0].startswith("note: "):
        lines.pop(0)
    assert result.code == code, result
    assert result.stdout == "", result
    assert [line.partition(": ")[0] for line in lines] == ["error", "hint"], result
    assert all(line.partition(": ")[2].strip() for line in lines), result
    for word in words:
        assert word in result.stderr, result
    assert "unexpected" not in lines[0], result


def json_error(result: Result) -> dict[str, Any]:
    """The error that a command with `--format json` reports, the last line of stderr."""
    assert result.stdout == "", result
    value: dict[str, Any] = json.loads(result.stderr.splitlines()[-1])
    assert value["schema"] == 1
    assert set(value["error"]) == {"kind", "message", "hint", "exit_code"}
    return value["error"]
