"""The reasoning and the text of one answer, as blocks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jp.conversation.entries import JsonObject
from jp.provider.chat.details import Details, text_of
from jp.provider.chat.thinking import Split, ThinkSplitter
from jp.provider.parts import BlockEnd, DataDelta, Part, ReasoningDelta, TextDelta
from jp.provider.strict import StrictText


class Indices:
    """The numbers of the blocks, in the order in which these begin."""

    def __init__(self) -> None:
        self._next = 0

    def take(self) -> int:
        """The next one."""
        self._next += 1
        return self._next - 1


class Prose:
    """What an answer thinks and says, however the two alternate on the wire.

    `made` says who thinks. `strict` is the schema that the text is written to, and `is_structured` that it is data.
    """

    def __init__(
        self, indices: Indices, made: JsonObject, *, strict: JsonObject | None, is_structured: bool, think_tags: bool
    ) -> None:
        self._indices = indices
        self._made = made
        self._is_structured = is_structured
        self._strict = None if strict is None else StrictText(strict, is_answer=True)
        self._splitter = ThinkSplitter() if think_tags else None
        self._details = Details()
        self._reasoning: int | None = None
        self._text: int | None = None

    def think(self, text: str) -> Iterator[Part]:
        """More reasoning."""
        if text:
            yield ReasoningDelta(self._thought(), text)

    def detail(self, pieces: Sequence[JsonObject], text: str) -> Iterator[Part]:
        """More detailed reasoning; `text` is what the server itself says of it in plain words, possibly nothing."""
        self._details.add(pieces)
        yield from self.think(text or text_of(pieces))
        if pieces and self._reasoning is None:
            yield ReasoningDelta(self._thought(), "")

    def say(self, content: str) -> Iterator[Part]:
        """More text, which may begin with reasoning."""
        if content:
            yield from self._split(Split(text=content) if self._splitter is None else self._splitter.feed(content))

    def pause(self) -> Iterator[Part]:
        """A call begins: what came before it is complete, unless it can only be told at the end."""
        yield from self._release()
        if not self._details.items:
            yield from self._end_reasoning()
        if self._strict is None:
            yield from self._end_text()

    def end(self) -> Iterator[Part]:
        """The answer is over."""
        yield from self._release()
        yield from self._end_reasoning()
        if self._strict is not None:
            yield from self._word(self._strict.finish())
        yield from self._end_text()

    def _thought(self) -> int:
        if self._reasoning is None:
            self._reasoning = self._indices.take()
        return self._reasoning

    def _release(self) -> Iterator[Part]:
        if self._splitter is not None:
            yield from self._split(self._splitter.finish())

    def _split(self, split: Split) -> Iterator[Part]:
        yield from self.think(split.reasoning)
        yield from self._word(split.text if self._strict is None else self._strict.feed(split.text))

    def _word(self, text: str) -> Iterator[Part]:
        if not text:
            return
        if self._text is None:
            self._text = self._indices.take()
        yield DataDelta(self._text, text) if self._is_structured else TextDelta(self._text, text)

    def _end_reasoning(self) -> Iterator[Part]:
        if self._reasoning is None:
            return
        items = list(self._details.items)
        yield BlockEnd(self._reasoning, {**self._made, "reasoning_details": items} if items else self._made)
        self._reasoning = None

    def _end_text(self) -> Iterator[Part]:
        if self._text is not None:
            yield BlockEnd(self._text)
            self._text = None
