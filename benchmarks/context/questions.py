"""What a reader would search for to find a fact again: words around it and of its class, never a word of its value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from context.gold import Fact, Kind, one_line, pairs, strings_of
from jp.context.types import Message, Transcript, texts_of

EXCERPTS = 5
"""How many excerpts of a search count."""

EXCERPT_TOKENS = 2_000

_WORD = re.compile(r"[^\W_]{3,40}")
_AROUND = 200
"""Characters on each side of a fact, from which words are taken."""

_MOST_WORDS = 12
_OF_CLASS: dict[Kind, tuple[str, ...]] = {
    "file": ("file", "path"),
    "command": ("command", "exit"),
    "error": ("error", "failed"),
    "identifier": ("commit", "issue", "link"),
    "requirement": ("user", "asked"),
}
_COMMON = frozenset(re.findall(r"\w+", "the and for that this with you are was not have has but from can all will its"))


def questions_of(messages: Transcript, facts: Iterable[Fact]) -> dict[Fact, str]:
    """Return a query for each of `facts`, made of where it stands first in `messages`."""
    places = list(_places(messages))
    return {fact: _question(fact, places) for fact in facts}


def _places(messages: Transcript) -> Iterable[str]:
    """Each text in which a fact may stand, with what was said right before it."""
    said = ""
    results = {call.id: result for call, result in pairs(messages)}
    for message in messages:
        if message.role == "tool":
            continue
        text = one_line("\n".join(texts_of(message)))
        calls = (f"{' '.join(strings_of(call.arguments))} {_start(results.get(call.id))}" for call in message.calls)
        yield one_line(f"{said if message.calls and not text else ''} {text} {' '.join(calls)}")
        said = text or said
    for message in messages:
        if message.role == "tool":
            yield one_line("\n".join(texts_of(message)))


def _start(result: Message | None) -> str:
    return "" if result is None else "\n".join(texts_of(result))[:_AROUND]


def _question(fact: Fact, places: Sequence[str]) -> str:
    around = next((_around(place, fact.text) for place in places if fact.text in place), "")
    hidden = fact.text.casefold()
    words = dict.fromkeys(
        word for word in _WORD.findall(around) if word.casefold() not in hidden and word.casefold() not in _COMMON
    )
    return " ".join((*_OF_CLASS[fact.kind], *list(words)[:_MOST_WORDS]))


def _around(place: str, value: str) -> str:
    at = place.index(value)
    return f"{place[max(at - _AROUND, 0) : at]} {place[at + len(value) : at + len(value) + _AROUND]}"
