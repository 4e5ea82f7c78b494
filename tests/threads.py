"""Hypothesis strategies for threads: whatever an adapter may be asked to render, as a conversation grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from hypothesis import strategies as st
from msgspec.structs import replace

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
    EFFORTS,
    AssistantData,
    AssistantReasoning,
    AssistantText,
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

TEXTS = st.sampled_from(["", " ", "\n", "a", "words and words", "é\u2028", "ends in space "])
TOOLS = (
    ToolDefinition(name="look", description="", parameters={}),
    ToolDefinition(name="run", description="Run it.", parameters={"type": "object"}),
)

RESOURCES = st.one_of(
    st.builds(Resource, uri=st.sampled_from(["u:1", "u:2"]), text=TEXTS, formatted=st.none() | TEXTS),
    st.builds(
        Resource,
        uri=st.just("u:3"),
        mime_type=st.sampled_from(["image/png", "application/pdf"]),
        blob=st.binary(max_size=3),
        name=st.none() | st.just("three"),
    ),
)
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    st.builds(TextBlock, text=TEXTS),
    st.builds(ResourceBlock, resource=RESOURCES),
    st.builds(ImageBlock, mime_type=st.sampled_from(["image/png", "image/bmp"]), blob=st.binary(max_size=3)),
    st.builds(AudioBlock, mime_type=st.just("audio/wav"), blob=st.just(b"x")),
    st.builds(ResourceLink, uri=st.just("u:4")),
)


SCHEMAS = st.sampled_from([None, {"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object"}])
"""None, one that the grammar holds, one that is said in words."""


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """Whose requests are made: its id, names of models, and what it keeps with reasoning besides who made it.

    `marks_all` says that it keeps the same with messages, data and calls.
    """

    provider: str
    models: Sequence[str]
    opaque: Sequence[JsonObject] = ({},)
    marks_all: bool = False


@st.composite
def metadata(draw: st.DrawFn, vendor: Vendor, model: str) -> JsonObject | None:
    """What reasoning comes with: mostly the model's own."""
    provider = draw(st.sampled_from([vendor.provider, vendor.provider, "another"]))
    made: JsonObject = {"provider": provider, "model": draw(st.sampled_from([model, model, "claude-other"]))}
    kept: JsonObject = draw(st.sampled_from(list(vendor.opaque)))
    return draw(st.sampled_from([None, {**made, **kept}]))


ARGUMENTS: st.SearchStrategy[JsonObject | str] = st.sampled_from([{}, {"a": 1}, '{"broken'])


@st.composite
def requests_of_user(draw: st.DrawFn, turn: int, origin: str) -> list[ViewEvent]:
    """A request with its attachments, in any order."""
    resources = draw(st.lists(RESOURCES, max_size=2))
    events: list[ViewEvent] = [UserResource(resource=resource, turn=turn, origin=origin) for resource in resources]
    events.append(UserText(text=draw(TEXTS), turn=turn, origin=origin, schema=draw(SCHEMAS)))
    return draw(st.permutations(events))


@st.composite
def cycles(draw: st.DrawFn, vendor: Vendor, turn: int, origin: str, *, model: str) -> list[ViewEvent]:
    """An answer, and the results of its calls in any order: mostly all of them."""
    events: list[ViewEvent] = []
    results: list[ViewEvent] = []
    for number in range(draw(st.integers(0, 4))):
        identity = f"{origin}.{number}"
        kind = draw(st.sampled_from(["text", "reasoning", "data", "call"]))
        made = draw(metadata(vendor, model)) if vendor.marks_all or kind == "reasoning" else None
        if kind == "text":
            events.append(AssistantText(text=draw(TEXTS), turn=turn, origin=identity, metadata=made))
        elif kind == "reasoning":
            events.append(AssistantReasoning(text=draw(TEXTS), turn=turn, origin=identity, metadata=made))
        elif kind == "data":
            events.append(AssistantData(text='{"a":1}', turn=turn, origin=identity, metadata=made))
        else:
            call_id = draw(st.sampled_from(["call-1", "call-2", "", "odd id!", "long" * 30]))
            name = draw(st.sampled_from(["run", "run", "odd tool!"]))
            arguments = draw(ARGUMENTS)
            call = ToolCall(call_id=call_id, name=name, arguments=arguments, turn=turn, origin=identity, metadata=made)
            events.append(call)
            content = tuple(draw(st.lists(BLOCKS, max_size=3)))
            is_error = draw(st.booleans())
            result = ToolResult(
                call=identity, call_id=call_id, name=name, content=content, turn=turn, is_error=is_error
            )
            results += [result] * draw(st.sampled_from([1, 1, 1, 0]))
    return events + draw(st.permutations(results))


@st.composite
def histories(draw: st.DrawFn, vendor: Vendor, model: str) -> list[list[ViewEvent]]:
    """A conversation as it grows: after each step, a request is due."""
    steps: list[list[ViewEvent]] = []
    for turn in range(draw(st.integers(1, 3))):
        waiting = draw(requests_of_user(turn, f"r{turn}"))
        for number in range(draw(st.integers(0, 3))):
            steps.append(waiting)
            waiting = draw(cycles(vendor, turn, f"t{turn}.{number}", model=model))
            waiting.append(UserText(text="continue", turn=turn, origin=f"c{turn}.{number}", synthetic=True))
        steps.append(waiting)
    return steps


PARAMETERS = st.builds(
    Parameters,
    max_tokens=st.none() | st.integers(1, 200_000),
    temperature=st.none() | st.just(0.5),
    stop_words=st.sampled_from([(), ("END", " ")]),
    reasoning=st.sampled_from([None, "off", "auto", *EFFORTS, 1, 5000, 10**6]),
    tool_choice=st.sampled_from(["auto", "none", "required", "run"]),
    cache=st.sampled_from(["off", "short", "long"]),
)


@st.composite
def threads(draw: st.DrawFn, vendor: Vendor) -> list[Thread]:
    """A thread after each of its steps."""
    whole = Thread(
        model=draw(st.sampled_from(list(vendor.models))),
        system=tuple(draw(st.lists(TEXTS, max_size=2))),
        tools=draw(st.sampled_from([(), TOOLS])),
        events=(),
        parameters=draw(PARAMETERS),
        schema=draw(SCHEMAS),
    )
    events: list[ViewEvent] = []
    grown: list[Thread] = []
    for step in draw(histories(vendor, whole.model)):
        events += step
        grown.append(replace(whole, events=tuple(events)))
    return grown


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
