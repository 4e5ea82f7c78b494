"""What sort of thing a tool does: as it said when it ran, or as the host says of its name; nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

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
