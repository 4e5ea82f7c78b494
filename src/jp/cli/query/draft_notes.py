"""What stands below the cut line of a draft: facts, and what was said before, as quotes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jp.cli.query.past import answer_of, calls_of, request_of
from jp.conversation.turns import Turn
from jp.render.sanitize import one_line, sanitize

MOST_TURNS = 10
MOST_CHARS = 32_000
MOST_CHARS_OF_ONE = 4_000
_MOST_CHARS_OF_FACT = 200
_MOST_CALLS = 20
_ADVICE = "Write above the line. Save and leave the editor to ask; leave nothing above it to ask nothing."


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is worth knowing about the conversation."""

    name: str
    value: str


def block_quote(text: str) -> str:
    """`text` as a block quote of Markdown, without anything that steers a terminal."""
    return "\n".join(f"> {line}" if line else ">" for line in sanitize(text).strip("\n").split("\n"))


def is_quote_only(text: str) -> bool:
    """Whether `text` has no words but quoted ones."""
    return all(line.startswith(">") or not line.strip() for line in text.split("\n"))


def notes(facts: Sequence[Fact], turns: Sequence[Turn]) -> str:
    """What stands below the cut line: how to go on, the facts, and the last of `turns`, newest first. Bounded."""
    listed = [f"- {fact.name}: {_shortened(one_line(fact.value), _MOST_CHARS_OF_FACT)}" for fact in facts]
    return "\n".join([_ADVICE, "", *listed, *_quoted_turns(turns), ""])


def _quoted_turns(turns: Sequence[Turn]) -> list[str]:
    lines: list[str] = []
    room = MOST_CHARS
    for turn in reversed(turns[-MOST_TURNS:]):
        for heading, text in _said_in(turn):
            quote = block_quote(_shortened(text, min(room, MOST_CHARS_OF_ONE)))
            room -= len(quote)
            if room <= 0:
                return lines
            lines += ["", f"## Turn {turn.number}, {heading}", "", quote]
    return lines


def _said_in(turn: Turn) -> list[tuple[str, str]]:
    request, answer, calls = request_of(turn), answer_of(turn), calls_of(turn)
    called = ", ".join(calls[:_MOST_CALLS]) + (", …" if len(calls) > _MOST_CALLS else "")
    said = [("answer", answer), ("calls of tools", called), ("request", "" if request is None else request.content)]
    return [(heading, text) for heading, text in said if text.strip()]


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters)"
