"""The view of a conversation, which is what a model is shown of it, under the numbers of the turns that it is of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

import msgspec

from jp.compaction.view import Kept, ProjectedTurn, Projection, Summarised
from jp.conversation.carriers import CarrierChange, map_view_carriers
from jp.conversation.resource import as_shown, resource_as_shown
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)
from jp.render.contents import block_parts, resource_parts
from jp.render.jsonl import SCHEMA, escape_controls
from jp.render.parts import Data, Heading, Message, Note, Part, Reasoning, Request
from jp.render.tool_call import arguments_text
from jp.render.transcript import Extent


def view_parts(view: Projection, *, load: CarrierChange, extent: Extent) -> Iterator[Part]:
    """The parts of a view. `load` reads content from where it is stored, and only what is shown is read."""
    for turn in _chosen(view, extent):
        number, last = _numbers(turn)
        role = ""
        for event in turn.events:
            parts = list(_parts(event, load, extent))
            speaker = "user" if isinstance(event, UserText | UserResource) else "assistant"
            if parts and speaker != role:
                role = speaker
                yield Heading(turn=number, last_turn=last, role=speaker)
            yield from parts


def view_lines(view: Projection, *, load: CarrierChange, extent: Extent) -> Iterator[str]:
    """The events of a view as lines of JSON, content inline, each with the turns that it stands for."""
    for turn in _chosen(view, extent):
        number, last = _numbers(turn)
        for event in turn.events:
            fields: dict[str, Any] = msgspec.to_builtins(map_view_carriers(event, load))
            fields = {name: value for name, value in fields.items() if value is not None and name != "turn"}
            if "schema" in fields:
                fields["output_schema"] = fields.pop("schema")
            head = {"schema": SCHEMA, "type": _TYPES[type(event)], "from_turn": number, "to_turn": last or number}
            yield f"{escape_controls(msgspec.json.encode({**head, **fields}).decode())}\n"


_TYPES: dict[type[ViewEvent], str] = {
    UserText: "user_text",
    UserResource: "user_resource",
    AssistantText: "assistant_text",
    AssistantReasoning: "assistant_reasoning",
    AssistantData: "assistant_data",
    ToolCall: "tool_call",
    ToolResult: "tool_result",
}


def _chosen(view: Projection, extent: Extent) -> Iterable[ProjectedTurn]:
    """The turns that are wanted; a summary, where any of those is that it stands for."""
    for turn in view.turns:
        first, last = _numbers(turn)
        if extent.turns is None or any(number in extent.turns for number in range(first, (last or first) + 1)):
            yield turn


def _numbers(turn: ProjectedTurn) -> tuple[int, int | None]:
    """The first turn of the stream that it stands for, and the last where that is another one."""
    match turn.origin:
        case Kept(number=number):
            return number, None
        case Summarised(from_turn=first, to_turn=last):
            return first, last if last > first else None
        case _:
            assert_never(turn.origin)


def _parts(event: ViewEvent, load: CarrierChange, extent: Extent) -> Iterator[Part]:
    match event:
        case UserText(text=text):
            yield Request(text)
        case UserResource(resource=resource):
            shown = resource_as_shown(resource)
            yield from resource_parts(shown, "attached", load=load, lines=extent.attachment_lines)
        case AssistantText(text=text):
            yield Message(text)
        case AssistantData(text=text):
            yield Data(text)
        case AssistantReasoning() if not extent.reasoning:
            pass
        case AssistantReasoning(text=text):
            yield Reasoning(text) if text else Note(text="reasoning that is not shown")
        case ToolCall() | ToolResult():
            yield from _tool(event, load, extent) if extent.tools else ()
        case _:
            assert_never(event)


def _tool(event: ToolCall | ToolResult, load: CarrierChange, extent: Extent) -> Iterator[Part]:
    match event:
        case ToolCall(name=name, arguments=arguments):
            shown = arguments_text(arguments, is_whole=extent.tool_lines is None)
            yield Note(text=f"call {name}({shown})")
        case ToolResult(name=name, content=content):
            yield Note(text=f"{'error' if event.is_error else 'result'} of {name}", is_failure=event.is_error)
            for block in content:
                yield from block_parts(as_shown(block), load=load, lines=extent.tool_lines)
        case _:
            assert_never(event)
