"""Reasoning that a server leaves at the beginning of the text, between `<think>` and `</think>`. Pure."""

from __future__ import annotations

import msgspec

_OPENING, _CLOSING = "<think>", "</think>"


class Split(msgspec.Struct, frozen=True):
    """What a piece of text adds to the reasoning, and to the message."""

    reasoning: str = ""
    text: str = ""


def _begun(text: str, tag: str) -> int:
    """How many characters at the end of `text` may be the beginning of `tag`."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)


class ThinkSplitter:
    """Takes the reasoning off one text, as it streams. Tags count at the very beginning only."""

    def __init__(self) -> None:
        self._held = ""
        self._state = self._at_start

    def feed(self, text: str) -> Split:
        """Add to the text, and take what certainly belongs to one or the other."""
        self._held += text
        return self._state()

    def finish(self) -> Split:
        """Take the rest: reasoning that was not closed is reasoning all the same."""
        rest, self._held = self._held, ""
        return Split(reasoning=rest) if self._state == self._inside else Split(text=rest)

    def _at_start(self) -> Split:
        begun = self._held.lstrip()
        if begun.startswith(_OPENING):
            self._held = begun.removeprefix(_OPENING)
            self._state = self._at_thought
            return self._state()
        if _OPENING.startswith(begun):
            return Split()
        self._state = self._after
        return self._state()

    def _at_thought(self) -> Split:
        self._held = self._held.lstrip()
        if not self._held:
            return Split()
        self._state = self._inside
        return self._state()

    def _inside(self) -> Split:
        thought, closed, rest = self._held.partition(_CLOSING)
        if closed:
            self._held = rest
            self._state = self._at_text
            then = self._state()
            return Split(reasoning=thought.rstrip(), text=then.text)
        # White space before the tag belongs to it, so it is held until something else follows.
        size = len(self._held) - _begun(self._held, _CLOSING)
        size = len(self._held[:size].rstrip())
        thought, self._held = self._held[:size], self._held[size:]
        return Split(reasoning=thought)

    def _at_text(self) -> Split:
        self._held = self._held.lstrip()
        if not self._held:
            return Split()
        self._state = self._after
        return self._state()

    def _after(self) -> Split:
        text, self._held = self._held, ""
        return Split(text=text)
