"""Decodes what jp shows to a person who consents to it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_TOKEN = re.compile("⟨(?:U\\+([0-9A-F]{4,6})|([A-Za-z]+))(?:\\*([0-9]+))?⟩")
_NAMED = {"space": " ", "newline": "\n", "tab": "\t", "CR": "\r", "ESC": "\x1b", "BEL": "\x07", "BS": "\x08"}
_MEMBER = re.compile(r'((?:[A-Za-z0-9_-]+)|"(?:[^"\\]|\\.)*"):(?: (.*))?')
_GUTTERS = {"│": "\n", "┆": ""}


def decode(escaped: str) -> str:
    """What was escaped."""
    text = _TOKEN.sub(
        lambda found: (chr(int(found[1], 16)) if found[1] else _NAMED[found[2]]) * int(found[3] or 1), escaped
    )
    left_over = _TOKEN.sub("", escaped)
    assert "⟨" not in left_over
    assert "⟩" not in left_over
    return text


def decode_arguments(escaped: str) -> dict[str, Any]:
    """The arguments that a question shows: `name: JSON`, or `name:` and indented lines that are a text."""
    arguments: dict[str, Any] = {}
    lines = escaped.split("\n")
    while lines:
        found = _MEMBER.fullmatch(lines.pop(0))
        assert found
        name = decode(found[1])
        name = json.loads(name) if name.startswith('"') else name
        if found[2] is not None:
            arguments[name] = json.loads(decode(found[2]))
            continue
        block: list[str] = []
        while lines and (not lines[0] or lines[0].startswith("  ")):
            block.append(lines.pop(0)[2:])
        arguments[name] = decode("\n".join(block))
    return arguments


def decode_rows(rows: Sequence[str]) -> str:
    """The escaped text of rows on a screen: the first character says whether a line begins there or goes on."""
    text = "".join(_GUTTERS[row[:1]] + row[2:] for row in rows)
    return text.removeprefix("\n")
