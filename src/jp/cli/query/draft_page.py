"""The page that an editor is given: the text of a query, a cut line, and below it what helps in writing. Pure.

The cut line holds a mark that stands in no line of the text, so that whatever is written above it comes back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from jp.cli.query.past import answer_of, calls_of, request_of
from jp.conversation.turns import Turn
from jp.render.sanitise import one_line, sanitise

MARK = re.compile(r"[0-9a-z]{8,32}")
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


def lay_out(text: str, mark: str, below: str) -> str:
    """The page. `mark` must not stand in `text`, see `choose_mark`."""
    return f"{text}\n\n{_cut_line(mark)}\n\n{below}"


def text_above(page: str, mark: str) -> str:
    """The text above the cut line, all of the page where somebody removed that line."""
    cut = _cut_line(mark)
    lines = page.split("\n")
    found = next((number for number, line in enumerate(lines) if line.rstrip() == cut), None)
    if found is None:
        return page
    return "\n".join(lines[:found]).removesuffix("\n")


def choose_mark(text: str, candidates: Iterable[str]) -> str:
    """The first candidate that does not stand in `text`."""
    return next(mark for mark in candidates if mark not in text)


def trimmed(text: str) -> str:
    """What is asked of a text from an editor: no blank lines around it, and line feeds only."""
    lines = text.replace("\r\n", "\n").rstrip()
    return re.sub(r"\A(?:[^\S\n]*\n)+", "", lines)


def block_quote(text: str) -> str:
    """`text` as a block quote of Markdown, without anything that steers a terminal."""
    return "\n".join(f"> {line}" if line else ">" for line in sanitise(text).strip("\n").split("\n"))


def is_quote_only(text: str) -> bool:
    """Whether `text` has no words but quoted ones."""
    return all(line.startswith(">") or not line.strip() for line in text.split("\n"))


def seeded(kept: str, parts: Sequence[str]) -> str:
    """The text to begin with: what was kept, and each of `parts` that it does not hold already."""
    texts = [kept.strip("\n")]
    texts += [part for part in parts if part.strip() and part not in kept]
    return "\n\n".join(text for text in texts if text.strip())


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


def _cut_line(mark: str) -> str:
    return f"<!-- jp {mark}: this line and everything below it is not asked -->"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters)"
