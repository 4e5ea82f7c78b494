"""Tool calls and their results as single lines without control characters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, assert_never

import msgspec

from jp.compaction.references import cut_handle
from jp.compaction.status_lines import content_size
from jp.conversation.entries import Facts, JsonObject, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import (
    Block,
    ResourceBlock,
    ResourceLink,
    StoredContent,
    TextBlock,
    content_of,
    size_in_bytes,
)
from jp.render.sanitize import escape_line, one_line, sanitize
from jp.render.tables import count_text, duration_text, size_text, truncate
from jp.render.theme import StyleOf
from jp.tool.base import CallProgress, QuestionAnswered
from jp.turn.ports import CallAnswered, CallMade, ToolNews

_ARGUMENT_WIDTH = 60
_MOST_HANDLES = 3

TurnOf = Callable[[str], int | None]
"""The turn in which the entry with this id stands."""


def call_text(call: ToolCallRequest) -> str:
    """Return the tool and its arguments, long ones shortened: `fs_read(path="src/a.py")`."""
    return f"{one_line(call.name)}({arguments_text(call.arguments)})"


def arguments_text(arguments: JsonObject | str, *, is_whole: bool = False) -> str:
    """Return the arguments as `name=value`; long values are shortened unless `is_whole`."""
    if isinstance(arguments, str):
        return _shortened(arguments, is_whole=is_whole)
    return ", ".join(
        f"{escape_line(name)}={_shortened(_json(value), is_whole=is_whole)}" for name, value in arguments.items()
    )


def result_text(call: ToolCallRequest, response: ToolCallResponse, *, turn_of: TurnOf | None = None) -> str:
    """Return how a call ended: `fs_read: src/a.py, 120 lines, 3.4 KiB, 15 ms`, or `fs_read failed: no such file`."""
    name = one_line(call.name)
    if response.is_error:
        return f"{name} failed: {_failure(response)}"
    said = [*_facts(response.facts), *_amount(response.content)]
    said += _repetition(response.content, turn_of) or _form(response.content, turn_of)
    if response.duration_ms is not None:
        said.append(duration_text(response.duration_ms))
    return f"{name}: {', '.join(said)}"


def is_one_line_failure(response: ToolCallResponse) -> bool:
    """Return whether the result is a failure of one line, which `result_text` already shows."""
    if not response.is_error or len(response.content) != 1:
        return False
    block = response.content[0]
    text = (block.text or "").strip() if isinstance(block, TextBlock) else ""
    return len(text.splitlines()) == 1 and one_line(text) == _failure(response)


def inquiry_text(event: QuestionAnswered) -> str:
    """Return the question of a call and its answer, in one line: `fs_modify_file: Overwrite it? "yes" (the model)`."""
    who = {"user": "you", "assistant": "the model", "config": "the configuration"}[event.answer.by]
    value = _shortened(_json(event.answer.value), is_whole=False)
    return f"{one_line(event.call.name)}: {one_line(event.question.text)} {value} ({who})"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _shortened(text: str, *, is_whole: bool) -> str:
    line = escape_line(text)
    return line if is_whole else truncate(line, _ARGUMENT_WIDTH)


def _failure(response: ToolCallResponse) -> str:
    """Return the first known error, how a command ended, or the first line of the result, if it is loaded."""
    facts = response.facts or Facts()
    if facts.first_error:
        return one_line(facts.first_error)
    amount = ", ".join(_amount(response.content))
    if facts.exit_code:
        return f"exit code {facts.exit_code}, {amount}"
    for block in response.content:
        text = (block.formatted or block.text or "").strip() if isinstance(block, TextBlock) else ""
        if text:
            return one_line(text.splitlines()[0])
    return amount


def _facts(facts: Facts | None) -> list[str]:
    if facts is None:
        return []
    said: list[str] = []
    if facts.path:
        said.append(one_line(facts.path) + (f" lines {one_line(facts.lines)}" if facts.lines else ""))
    if facts.url:
        said.append(one_line(facts.url))
    if facts.exit_code is not None:
        said.append(f"exit code {facts.exit_code}")
    if facts.matches is not None:
        said.append("1 match" if facts.matches == 1 else f"{facts.matches:,} matches")
    return said


def _amount(blocks: tuple[Block, ...]) -> list[str]:
    """Return the size of the result: in lines if all of it is text that is loaded or counted, and in bytes."""
    carriers = [block.resource if isinstance(block, ResourceBlock) else block for block in blocks]
    lines = size = 0
    is_text = True
    for carrier in carriers:
        if isinstance(carrier, ResourceLink):
            continue
        size += size_in_bytes(carrier)
        content = content_of(carrier)
        text = getattr(content, "text", None)
        counted = content.lines if isinstance(content, StoredContent) else None
        if isinstance(text, str):
            lines += len(text.splitlines())
        elif counted is not None:
            lines += counted
        else:
            is_text = False
    if not size:
        return ["nothing"]
    return [count_text(lines, "line"), size_text(size)] if is_text else [size_text(size)]


def _form(blocks: tuple[Block, ...], turn_of: TurnOf | None) -> list[str]:
    """That the model is shown less than what came: what has changed only, or the beginning and the end."""
    bases = [block.resource.formatted_against for block in blocks if isinstance(block, ResourceBlock)]
    if len(bases) == len(blocks) and (base := bases[0] if bases else None) is not None:
        turn = turn_of(base) if turn_of else None
        since = "" if turn is None else f" since turn {turn}"
        return [f"changed{since}, a diff of {size_text(content_size(blocks))}"]
    carriers = [block.resource if isinstance(block, ResourceBlock) else block for block in blocks]
    handles = [cut_handle(carrier) for carrier in carriers if not isinstance(carrier, ResourceLink)]
    cut = list(dict.fromkeys(handle for handle in handles if handle is not None))
    if not cut:
        return []
    more = f" and {len(cut) - _MOST_HANDLES} more" if len(cut) > _MOST_HANDLES else ""
    return [f"cut to {size_text(content_size(blocks))}: recall {', '.join(cut[:_MOST_HANDLES])}{more}"]


def _repetition(blocks: tuple[Block, ...], turn_of: TurnOf | None) -> list[str]:
    """That what came is what was there before."""
    earlier = [block.resource.duplicate_of for block in blocks if isinstance(block, ResourceBlock)]
    if not earlier or not all(earlier):
        return []
    turns = {turn_of(entry) for entry in earlier if entry} if turn_of else set[int | None]()
    turn = turns.pop() if len(turns) == 1 else None
    return ["unchanged"] if turn is None else [f"unchanged since turn {turn}"]


_ESCAPE = "\x1b"
_RESET = "\x1b[0m"
_INDENT = "  "
_NAMES_SHOWN = 4


class ToolLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line, without its line feed. A `result` is what came of a call, with its own colors if any are shown."""

    text: str
    kind: Literal["event", "failure", "result"] = "event"


class ToolLines:
    """Follows the calls of a turn."""

    def __init__(self, *, unicode: bool, color: bool, style_of: StyleOf, turn_of: TurnOf | None) -> None:
        self._to, self._from = ("→", "←") if unicode else ("->", "<-")
        self._color = color
        self._style_of = style_of
        self._turn_of = turn_of
        self._running: dict[str, str] = {}  # what is said of each call that is not answered yet
        self._progress = ""

    @property
    def awaited(self) -> str:
        """Return what is awaited; empty where every call was answered."""
        if self._progress or not self._running:
            return self._progress
        names = list(self._running.values())
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        return f"running {', '.join(names[:_NAMES_SHOWN])}{more}"

    def lines(self, event: ToolNews) -> list[ToolLine]:
        """Return the lines for `event`."""
        self._follow(event)
        if self._style_of(event.call.name).hidden:
            return []
        match event:
            case CallMade(call=call):
                return [ToolLine(text=f"{self._to} {call_text(call)}")]
            case QuestionAnswered():
                return [ToolLine(text=f"? {inquiry_text(event)}")]
            case CallProgress():
                return []
            case CallAnswered(call=call, response=response):
                return [self._ending(call, response), *self._result(call, response)]
            case _:
                assert_never(event)

    def _follow(self, event: ToolNews) -> None:
        call = event.call
        self._progress = f"{one_line(call.name)}: {one_line(event.text)}" if isinstance(event, CallProgress) else ""
        if isinstance(event, CallMade):
            self._running[call.id] = one_line(call.name)
        elif isinstance(event, CallAnswered):
            self._running.pop(call.id, None)

    def _ending(self, call: ToolCallRequest, response: ToolCallResponse) -> ToolLine:
        text = f"{self._from} {result_text(call, response, turn_of=self._turn_of)}"
        return ToolLine(text=text, kind="failure" if response.is_error else "event")

    def _result(self, call: ToolCallRequest, response: ToolCallResponse) -> Iterator[ToolLine]:
        """Yield the part of the result that the style asks for; nothing of recalled content."""
        wanted = self._style_of(call.name).inline_results or "off"
        if wanted == "off" or is_one_line_failure(response):
            return
        lines = [line for block in response.content for line in _text(block).splitlines()]
        shown = lines if wanted == "full" else lines[:wanted]
        for line in shown:
            text = sanitize(line, keep_colors=self._color)
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
