"""Joining the pieces of one message where a model was asked to go on with it. Pure.

A continuation is only taken where it is certain how it follows: the model was asked to begin with the anchor, and may
start over word for word. `anchor_of` chooses the anchor so that these two begin differently. What begins otherwise has
no known place and is not taken, except where it repeats an end of the message that occurs nowhere else in it.
"""

from __future__ import annotations

from jp.compaction.wording import AFTER_MESSAGE_END, anchor_of
from jp.conversation.turns import is_blank

_LONGEST = 500
"""How far back another repetition than the one asked for is looked for, in characters."""

_SHORTEST = 10
"""Shorter ones are taken for chance."""


class StrayError(Exception):
    """A continuation has no known place behind what it should continue."""


class Joiner:
    """Passes on one attempt's message text: without what it repeats of `before`, once it is known to follow it.

    White space waits for what follows it: nothing but white space is no piece of a message that a model could be
    shown, and so none that it could go on from.
    """

    def __init__(self, before: str = "") -> None:
        self._before = before
        self._starts = (before.lstrip(), anchor_of(before))
        self._held = ""
        self._is_joined = not before
        self._has_begun = False

    def feed(self, text: str) -> str:
        """Take more of the text; what comes out follows `before`.

        Raises:
            StrayError: it does not go on with `before`.
        """
        if self._has_begun:
            return text
        self._held += text
        if not self._is_joined:
            self._join()
        return self._release() if self._is_joined and not is_blank(self._held) else ""

    def call(self) -> str:
        """Take the beginning of a call, which may follow a cut message that the model does not go on with."""
        if not self._is_joined and self._held:
            return ""
        self._is_joined = True
        return self._release()

    def end_block(self) -> None:
        """Take the end of a block of text.

        Raises:
            StrayError: it does not go on with `before`.
        """
        if not self._is_joined:
            raise StrayError

    def finish(self) -> str:
        """Take the end of the answer, and return what is still held back.

        Raises:
            StrayError: it does not go on with `before`.
        """
        self.end_block()
        return self._release()

    def _release(self) -> str:
        self._has_begun = True
        text, self._held = self._held, ""
        return text

    def _join(self) -> None:
        """Drop the repetition from what is held, once it is there."""
        begun = self._held.lstrip()
        size = next((len(start) for start in self._starts if begun.startswith(start)), None)
        if size is None and any(start.startswith(begun) for start in self._starts):
            return
        if size is None:
            size = self._other_repetition(begun)
        if size == 0:
            raise StrayError
        if size is not None:
            self._held, self._is_joined = begun[size:], True

    def _other_repetition(self, begun: str) -> int | None:
        """Return the length of the repetition that `begun` starts with, 0 for none, None where it may still come."""
        found = 0
        ends = range(_SHORTEST, min(len(self._before), _LONGEST) + 1)
        for size in ends:
            end = self._before[-size:]
            if len(end) > len(begun) and end.startswith(begun):
                return None
            if not found and begun.startswith(end):
                if self._before.find(end) != len(self._before) - size:
                    return 0
                found = size
        return found


class Follower:
    """Passes on the text of an attempt that was asked for what follows a message that is complete.

    Text is held back until a call begins, which it then introduces: without one, only a repetition of the message or
    the word that nothing follows is known to be no new answer.
    """

    def __init__(self, before: str) -> None:
        self._nothing = ("", AFTER_MESSAGE_END, f"{AFTER_MESSAGE_END}.", before.strip())
        self._before = before.strip()
        self._held = ""
        self._has_call = False

    def feed(self, text: str) -> str:
        """Take more of the text; what comes out follows the message."""
        if self._has_call:
            return text
        self._held += text
        return ""

    def end_block(self) -> None:
        """Take the end of a block of text, which a call may follow."""

    def call(self) -> str:
        """Take the beginning of a call, and return the text before it."""
        self._has_call = True
        text, self._held = self._held, ""
        stripped = text.strip().removeprefix(self._before)
        return "" if stripped.strip() in self._nothing else stripped

    def finish(self) -> str:
        """Take the end of the answer.

        Raises:
            StrayError: it is another answer.
        """
        if not self._has_call and self._held.strip() not in self._nothing:
            raise StrayError
        return ""
