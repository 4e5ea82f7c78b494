"""Search queries for a fact: words around it and of its class, never a word of its value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from context.gold import Fact, Kind, one_line, pairs, strings_of
from jp.context.types import Transcript, texts_of

EXCERPTS = 5
"""Excerpts of a search that count."""

EXCERPT_TOKENS = 2_000

_WORD = re.compile(r"[^\W_]{3,40}")
_AROUND = 300
"""Characters on each side of a fact, from which words are taken."""

_MOST_WORDS = 12
_OF_CALLS = frozenset({"command", "file", "error"})
_OF_CLASS: dict[Kind, tuple[str, ...]] = {
    "file": ("file", "path"),
    "command": ("command", "exit"),
    "error": ("error", "failed"),
    "identifier": ("commit", "issue", "link"),
    "requirement": ("user", "asked"),
}
_COMMON = frozenset(re.findall(r"\w+", "the and for that this with you are was not have has but from can all will its"))


class _Place(NamedTuple):
    """Texts that are read together."""

    texts: tuple[str, ...]

    def around(self, fact: Fact) -> str | None:
        """Return what stands near a fact; None where it is not here. A call's other arguments and result are near.

        What follows the beginning of a command may be more of it, so nothing of that is taken.
        """
        if not any(fact.text in text for text in self.texts):
            return None
        held = [text if fact.text not in text else _beside(text, fact) for text in self.texts]
        return " ".join(held)


def questions_of(messages: Transcript, facts: Iterable[Fact]) -> dict[Fact, str]:
    """Return a query for each of `facts`, made of where it stands first in `messages`.

    Of the words around it those are taken that stand in the fewest places, as a reader does who wants to find it.
    """
    calls = list(_calls(messages))
    texts = [_Place((one_line("\n".join(texts_of(message))),)) for message in messages]
    spread = Counter(word for place in (*calls, *texts) for word in set(_words(" ".join(place.texts))))
    return {
        fact: _question(fact, (*calls, *texts) if fact.kind in _OF_CALLS else (*texts, *calls), spread)
        for fact in facts
    }


def _calls(messages: Transcript) -> Iterator[_Place]:
    """Each call with what was said right before it and how its result begins."""
    said = ""
    results = {call.id: result for call, result in pairs(messages)}
    for message in messages:
        if message.role != "tool":
            said = one_line("\n".join(texts_of(message))) or said
        for call in message.calls:
            result = results.get(call.id)
            began = "" if result is None else one_line("\n".join(texts_of(result))[:_AROUND])
            given = (one_line(text)[:_AROUND] for text in strings_of(call.arguments))
            yield _Place((said[-_AROUND:], *given, began))


def _question(fact: Fact, places: Sequence[_Place], spread: Counter[str]) -> str:
    near = next((found for place in places if (found := place.around(fact)) is not None), "")
    hidden = fact.text.casefold()
    words = sorted({word for word in _words(near) if word not in hidden}, key=lambda word: (spread[word], word))
    return " ".join((*_OF_CLASS[fact.kind], *words[:_MOST_WORDS]))


def _beside(text: str, fact: Fact) -> str:
    if fact.kind == "command":
        return ""
    start, end = text.index(fact.text), text.index(fact.text) + len(fact.text)
    return f"{text[max(start - _AROUND, 0) : start]} {text[end : end + _AROUND]}"


def _words(text: str) -> Iterator[str]:
    return (word for word in map(str.casefold, _WORD.findall(text)) if word not in _COMMON)
