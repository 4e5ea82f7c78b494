"""Hypothesis strategies for threads: whatever an adapter may be asked to render, as a conversation grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import get_args

import msgspec
from hypothesis import strategies as st
from msgspec.structs import replace

from choices import Choices, choices
from jp.conversation.entries import JsonObject
from jp.conversation.resource import (
    AudioBlock,
    Block,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
)
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    Effort,
    Parameters,
    Thread,
    ToolCall,
    ToolDefinition,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)
from jp.provider.base import WireRequest
from jp.provider.errors import ProviderError
from jp.provider.transcript import IncrementalMessages, WireEvent

TEXTS = ("", "a", " ", "\n", "words and words", "é\u2028", "ends in space ")
BYTES = (b"", b"x", b"\0\xff", b"abc")
TOOLS = (
    ToolDefinition(name="look", description="", parameters={}),
    ToolDefinition(name="run", description="Run it.", parameters={"type": "object"}),
)

SCHEMAS: tuple[JsonObject | None, ...] = (
    None,
    {"type": "object", "properties": {"a": {"type": "string"}}},
    {"type": "object"},
)
"""None, one that the grammar holds, one that is said in words."""

_EFFORTS: tuple[Effort, ...] = get_args(Effort)


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """Whose requests are made: its id, names of models, and what it keeps with reasoning besides who made it.

    `marks_all` says that it keeps the same with messages, data and calls.
    """

    provider: str
    models: Sequence[str]
    opaque: Sequence[JsonObject] = ({},)
    marks_all: bool = False


class Speaker:
    """Says what may be said in a conversation."""

    def __init__(self, drawn: Choices, vendor: Vendor, model: str) -> None:
        self._drawn = drawn
        self._pick = drawn.pick
        self._vendor = vendor
        self._model = model

    def history(self) -> list[list[ViewEvent]]:
        """A conversation as it grows: after each step, a request is due."""
        steps: list[list[ViewEvent]] = []
        for turn in range(self._pick((1, 2, 3))):
            waiting = self._request(turn, f"r{turn}")
            for number in range(self._drawn.below(4)):
                steps.append(waiting)
                waiting = self._cycle(turn, f"t{turn}.{number}")
                waiting.append(UserText(text="continue", turn=turn, origin=f"c{turn}.{number}", synthetic=True))
            steps.append(waiting)
        return steps

    def _request(self, turn: int, origin: str) -> list[ViewEvent]:
        """A request with its attachments, in any order."""
        resources = [self._resource() for _ in range(self._drawn.below(3))]
        events: list[ViewEvent] = [UserResource(resource=resource, turn=turn, origin=origin) for resource in resources]
        events.append(UserText(text=self._pick(TEXTS), turn=turn, origin=origin, schema=self._pick(SCHEMAS)))
        return self._drawn.shuffled(events)

    def _cycle(self, turn: int, origin: str) -> list[ViewEvent]:
        """An answer, and the results of its calls in any order: mostly all of them."""
        events: list[ViewEvent] = []
        results: list[ViewEvent] = []
        for number in range(self._drawn.below(5)):
            identity = f"{origin}.{number}"
            kind = self._pick(("text", "reasoning", "data", "call"))
            made = self._metadata() if self._vendor.marks_all or kind == "reasoning" else None
            match kind:
                case "text":
                    events.append(AssistantText(text=self._pick(TEXTS), turn=turn, origin=identity, metadata=made))
                case "reasoning":
                    events.append(AssistantReasoning(text=self._pick(TEXTS), turn=turn, origin=identity, metadata=made))
                case "data":
                    events.append(AssistantData(text='{"a":1}', turn=turn, origin=identity, metadata=made))
                case _:
                    call = self._call(turn, identity, made)
                    events.append(call)
                    results += [self._result(call)] * self._pick((1, 1, 1, 0))
        return events + self._drawn.shuffled(results)

    def _metadata(self) -> JsonObject | None:
        """What reasoning comes with: mostly the model's own."""
        made: JsonObject = {
            "provider": self._pick((self._vendor.provider, self._vendor.provider, "another")),
            "model": self._pick((self._model, self._model, "claude-other")),
        }
        return self._pick((None, {**made, **self._pick(self._vendor.opaque)}))

    def _call(self, turn: int, origin: str, made: JsonObject | None) -> ToolCall:
        arguments: tuple[JsonObject | str, ...] = ({}, {"a": 1}, '{"broken')
        return ToolCall(
            call_id=self._pick(("call-1", "call-2", "", "odd id!", "long" * 30)),
            name=self._pick(("run", "run", "odd tool!")),
            arguments=self._pick(arguments),
            turn=turn,
            origin=origin,
            metadata=made,
        )

    def _result(self, call: ToolCall) -> ToolResult:
        return ToolResult(
            call=call.origin,
            call_id=call.call_id,
            name=call.name,
            content=tuple(self._block() for _ in range(self._drawn.below(4))),
            turn=call.turn,
            is_error=self._drawn.one_in(2),
        )

    def _block(self) -> Block:
        match self._pick(("text", "resource", "image", "audio", "link")):
            case "text":
                return TextBlock(text=self._pick(TEXTS))
            case "resource":
                return ResourceBlock(resource=self._resource())
            case "image":
                return ImageBlock(mime_type=self._pick(("image/png", "image/bmp")), blob=self._pick(BYTES))
            case "audio":
                return AudioBlock(mime_type="audio/wav", blob=b"x")
            case _:
                return ResourceLink(uri="u:4")

    def _resource(self) -> Resource:
        if self._drawn.one_in(2):
            mime_type = self._pick(("image/png", "application/pdf"))
            return Resource(uri="u:3", mime_type=mime_type, blob=self._pick(BYTES), name=self._pick((None, "three")))
        formatted = self._pick((None, self._pick(TEXTS)))
        return Resource(uri=self._pick(("u:1", "u:2")), text=self._pick(TEXTS), formatted=formatted)


def _parameters(drawn: Choices) -> Parameters:
    return Parameters(
        max_tokens=drawn.pick((None, 1 + drawn.below(200_000))),
        temperature=drawn.pick((None, 0.5)),
        stop_words=drawn.pick(((), ("END", " "))),
        reasoning=drawn.pick((None, "off", "auto", *_EFFORTS, 1, 5000, 10**6)),
        tool_choice=drawn.pick(("auto", "none", "required", "run")),
        cache=drawn.pick(("off", "short", "long")),
    )


def grown_threads(drawn: Choices, vendor: Vendor) -> list[Thread]:
    """A thread after each of its steps."""
    whole = Thread(
        model=drawn.pick(vendor.models),
        system=tuple(drawn.some(TEXTS, most=2)),
        tools=drawn.pick(((), TOOLS)),
        events=(),
        parameters=_parameters(drawn),
        schema=drawn.pick(SCHEMAS),
    )
    events: list[ViewEvent] = []
    grown: list[Thread] = []
    for step in Speaker(drawn, vendor, whole.model).history():
        events += step
        grown.append(replace(whole, events=tuple(events)))
    return grown


def threads(vendor: Vendor) -> st.SearchStrategy[list[Thread]]:
    """What `grown_threads` makes of any choices."""
    return choices().map(lambda drawn: grown_threads(drawn, vendor))


def rendered_by(render: Callable[[Thread], WireRequest], thread: Thread) -> WireRequest | None:
    """The request for a thread, None where there is nothing to send, or nothing that may be."""
    try:
        return render(thread)
    except ProviderError as error:
        if error.kind not in {"invalid_request", "unsupported"}:
            raise
        return None


def requests_by(render: Callable[[Thread], WireRequest], grown: Sequence[Thread]) -> list[WireRequest]:
    """The requests of a conversation as it grows."""
    return [request for thread in grown if (request := rendered_by(render, thread)) is not None]


class _Wire:
    """Keeps the events that a builder of messages gets."""

    def __init__(self, events: Sequence[WireEvent] = ()) -> None:
        self.events = list(events)

    def add(self, event: WireEvent) -> None:
        self.events.append(event)

    def fork(self) -> _Wire:
        return _Wire(self.events)


def in_wire_order(events: Sequence[ViewEvent]) -> list[WireEvent]:
    """Return the events as builders of messages get them."""
    thread = Thread(model="m", system=(), tools=(), events=tuple(events))
    return IncrementalMessages[_Wire]().build(thread, _Wire).events
