"""What is said of calls while they run: their lines, and what is waited for meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, assert_never

import msgspec

from jp.conversation.entries import ToolCallRequest, ToolCallResponse
from jp.conversation.resource import Block, ResourceBlock, TextBlock
from jp.render.amounts import count_text
from jp.render.sanitise import one_line, sanitise
from jp.render.tool_call import TurnOf, call_text, inquiry_text, is_told, result_text
from jp.render.tool_style import StyleOf
from jp.tool.base import Inquired, Progressed
from jp.turn.ports import CallAnswered, CallMade, ToolNews

_ESCAPE = "\x1b"
_RESET = "\x1b[0m"
_INDENT = "  "
_NAMES_SHOWN = 4


class ToolLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line, without its line feed. A `result` is what came of a call, with its own colours if any are shown."""

    text: str
    kind: Literal["event", "failure", "result"] = "event"


class ToolLines:
    """Follows the calls of a turn."""

    def __init__(self, *, unicode: bool, colour: bool, style_of: StyleOf, turn_of: TurnOf | None) -> None:
        self._to, self._from = ("→", "←") if unicode else ("->", "<-")
        self._colour = colour
        self._style_of = style_of
        self._turn_of = turn_of
        self._running: dict[str, str] = {}  # what is said of each call that is not answered yet
        self._progress = ""

    @property
    def awaited(self) -> str:
        """What is waited for; empty where every call was answered."""
        if self._progress or not self._running:
            return self._progress
        names = list(self._running.values())
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        return f"running {', '.join(names[:_NAMES_SHOWN])}{more}"

    def lines(self, event: ToolNews) -> list[ToolLine]:
        """What is to be said of `event`."""
        self._follow(event)
        if self._style_of(event.call.name).hidden:
            return []
        match event:
            case CallMade(call=call):
                return [ToolLine(text=f"{self._to} {call_text(call)}")]
            case Inquired():
                return [ToolLine(text=f"? {inquiry_text(event)}")]
            case Progressed():
                return []
            case CallAnswered(call=call, response=response):
                return [self._ending(call, response), *self._result(call, response)]
            case _:
                assert_never(event)

    def _follow(self, event: ToolNews) -> None:
        call = event.call
        self._progress = f"{one_line(call.name)}: {one_line(event.text)}" if isinstance(event, Progressed) else ""
        if isinstance(event, CallMade):
            self._running[call.id] = one_line(call.name)
        elif isinstance(event, CallAnswered):
            self._running.pop(call.id, None)

    def _ending(self, call: ToolCallRequest, response: ToolCallResponse) -> ToolLine:
        text = f"{self._from} {result_text(call, response, turn_of=self._turn_of)}"
        return ToolLine(text=text, kind="failure" if response.is_error else "event")

    def _result(self, call: ToolCallRequest, response: ToolCallResponse) -> Iterator[ToolLine]:
        """So much of the result as the style wants; nothing of what was there before."""
        wanted = self._style_of(call.name).inline_results or "off"
        if wanted == "off" or is_told(response):
            return
        lines = [line for block in response.content for line in _text(block).splitlines()]
        shown = lines if wanted == "full" else lines[:wanted]
        for line in shown:
            text = sanitise(line, keep_colours=self._colour)
            end = _RESET if _ESCAPE in text and not text.endswith(_RESET) else ""
            yield ToolLine(text=f"{_INDENT}{text}{end}", kind="result")
        if len(shown) < len(lines):
            yield ToolLine(text=f"{_INDENT}({count_text(len(lines) - len(shown), 'line')} more)")


def _text(block: Block) -> str:
    match block:
        case TextBlock(text=text):
            return text or ""
        case ResourceBlock(resource=resource) if resource.duplicate_of is None:
            return resource.text or ""
        case _:
            return ""
