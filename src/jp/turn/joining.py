"""Joining the pieces of one message where a model was asked to continue it. Pure."""

from __future__ import annotations

LONGEST = 500
"""How far back a repetition is looked for, in characters."""

SHORTEST = 5
"""Shorter repetitions are taken for chance."""


def _overlap(before: str, text: str) -> int:
    """How many leading characters of `text` repeat the end of `before`."""
    longest = min(len(before), len(text), LONGEST)
    return next((size for size in range(longest, SHORTEST - 1, -1) if before.endswith(text[:size])), 0)


class Joiner:
    """Drops from a continuation's beginning what repeats the end of `before`.

    Text is held back only while it may still turn out to be a repetition, so at most `LONGEST` characters.
    """

    def __init__(self, before: str) -> None:
        self._before = before[-LONGEST:]
        self._held = ""
        self._decided = not before

    def feed(self, text: str) -> str:
        """Take more of the continuation; what comes out follows `before`."""
        if self._decided:
            return text
        self._held += text
        if self._may_repeat():
            return ""
        return self.flush()

    def flush(self) -> str:
        """What is still held back, without the repetition."""
        self._decided = True
        text, self._held = self._held, ""
        return text[_overlap(self._before, text) :]

    def _may_repeat(self) -> bool:
        """Whether more text could make the repetition longer: the end of `before` goes on after what is held."""
        start = self._before.find(self._held)
        while start >= 0:
            if start + len(self._held) < len(self._before):
                return True
            start = self._before.find(self._held, start + 1)
        return False
