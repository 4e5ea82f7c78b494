"""The items of a response as blocks of parts. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from jp.provider.openai import wire
from jp.provider.parts import DataDelta, KeepAlive, Part, ReasoningDelta, TextDelta, ToolArgumentsDelta
from jp.provider.strict import StrictText

Place = tuple[str, int, int]
"""The kind of a delta, and which part of its item it belongs to."""

_WHOLE: Place = ("", 0, 0)


class Words:
    """A message. `has_begun` says whether anything has come of it."""

    def __init__(self, index: int) -> None:
        self._index = index
        self.has_begun = False

    def grow(self, text: str, *, place: Place) -> list[Part]:
        """More of it."""
        del place
        if not text:
            return []
        self.has_begun = True
        return [TextDelta(self._index, text)]

    def finish(self, item: wire.Item) -> list[Part]:
        """All of it, where nothing has come before."""
        return [] if self.has_begun else self.grow(_text_of(item), place=_WHOLE)


class Data:
    """An answer that is held to a schema."""

    def __init__(self, index: int, text: StrictText) -> None:
        self._index = index
        self._text = text
        self._has_grown = False
        self.has_begun = False

    def grow(self, text: str, *, place: Place) -> list[Part]:
        """More of it, as far as it is certain."""
        del place
        self._has_grown = self._has_grown or bool(text)
        return self._out(self._text.feed(text)) or [KeepAlive()]

    def finish(self, item: wire.Item) -> list[Part]:
        """The rest of it."""
        first = "" if self._has_grown else self._text.feed(_text_of(item))
        return self._out(first + self._text.finish())

    def _out(self, text: str) -> list[Part]:
        self.has_begun = self.has_begun or bool(text)
        return [DataDelta(self._index, text)] if text else []


class Call:
    """A call of a function; `text` is what its arguments are read with, where it was held to its schema."""

    has_begun = True

    def __init__(self, index: int, text: StrictText | None) -> None:
        self._index = index
        self._text = text
        self._has_grown = False

    def grow(self, text: str, *, place: Place) -> list[Part]:
        """More of the arguments, as far as they are certain."""
        del place
        self._has_grown = self._has_grown or bool(text)
        return self._out(text if self._text is None else self._text.feed(text)) or [KeepAlive()]

    def finish(self, item: wire.Item) -> list[Part]:
        """The rest of the arguments."""
        parts = [] if self._has_grown else self.grow(item.arguments or "", place=_WHOLE)
        return [*parts, *self._out("" if self._text is None else self._text.finish())]

    def _out(self, text: str) -> list[Part]:
        return [ToolArgumentsDelta(self._index, text)] if text else []


class Thought:
    """Reasoning: its summary, or its text where a server gives that; parts stand apart by a blank line."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._place: Place | None = None
        self.has_begun = False

    def grow(self, text: str, *, place: Place) -> list[Part]:
        """More of it. Of summary and text only that is shown which comes first."""
        if not text or (self._place is not None and place[0] != self._place[0]):
            return []
        gap = "" if self._place in {None, place} else "\n\n"
        self._place = place
        self.has_begun = True
        return [ReasoningDelta(self._index, gap + text)]

    def finish(self, item: wire.Item) -> list[Part]:
        """All of it, where nothing has come before; what is only encrypted is a block without text."""
        if self.has_begun:
            return []
        parts = list(self._all(item))
        if not parts and item.encrypted_content:
            self.has_begun = True
            return [ReasoningDelta(self._index, "")]
        return parts

    def _all(self, item: wire.Item) -> Iterator[Part]:
        for number, part in enumerate(item.summary or item.content or ()):
            yield from self.grow(part.text, place=("", number, 0))


Output = Words | Data | Call | Thought


def _text_of(item: wire.Item) -> str:
    return "".join(part.text for part in item.content or ())
