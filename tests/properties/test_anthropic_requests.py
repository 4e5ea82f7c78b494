"""What holds for the request of any thread, and for the requests of a thread that grows."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from anthropic_oracle import assert_accepted
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
from jp.provider.anthropic.request import render, sections
from jp.provider.base import WireRequest
from jp.provider.errors import ProviderError
from jp.provider.models import known_names

TEXTS = st.sampled_from(["", " ", "\n", "a", "words and words", "é\u2028", "ends in space "])
MODELS = st.sampled_from([*known_names("anthropic"), "claude-next-1", "qwen3"])
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


@st.composite
def metadata(draw: st.DrawFn, model: str) -> JsonObject | None:
    provider = draw(st.sampled_from(["anthropic", "anthropic", "openai"]))
    made: JsonObject = {"provider": provider, "model": draw(st.sampled_from([model, model, "claude-other"]))}
    kept: JsonObject = draw(st.sampled_from([{"signature": "sig"}, {"redacted": "opaque"}, {}]))
    return draw(st.sampled_from([None, {**made, **kept}]))


ARGUMENTS: st.SearchStrategy[JsonObject | str] = st.sampled_from([{}, {"a": 1}, '{"broken'])


@st.composite
def requests_of_user(draw: st.DrawFn, turn: int, origin: str) -> list[ViewEvent]:
    resources = draw(st.lists(RESOURCES, max_size=2))
    events: list[ViewEvent] = [UserResource(resource=resource, turn=turn, origin=origin) for resource in resources]
    events.append(UserText(text=draw(TEXTS), turn=turn, origin=origin, schema=draw(SCHEMAS)))
    return draw(st.permutations(events))


@st.composite
def cycles(draw: st.DrawFn, model: str, turn: int, origin: str) -> list[ViewEvent]:
    """An answer, and the results of its calls in any order: mostly all of them."""
    events: list[ViewEvent] = []
    results: list[ViewEvent] = []
    for number in range(draw(st.integers(0, 4))):
        identity = f"{origin}.{number}"
        kind = draw(st.sampled_from(["text", "reasoning", "data", "call"]))
        if kind == "text":
            events.append(AssistantText(text=draw(TEXTS), turn=turn, origin=identity))
        elif kind == "reasoning":
            made = draw(metadata(model))
            events.append(AssistantReasoning(text=draw(TEXTS), turn=turn, origin=identity, metadata=made))
        elif kind == "data":
            events.append(AssistantData(text='{"a":1}', turn=turn, origin=identity))
        else:
            call_id = draw(st.sampled_from(["call-1", "call-2", "", "odd id!"]))
            arguments = draw(ARGUMENTS)
            events.append(ToolCall(call_id=call_id, name="run", arguments=arguments, turn=turn, origin=identity))
            content = tuple(draw(st.lists(BLOCKS, max_size=3)))
            is_error = draw(st.booleans())
            result = ToolResult(
                call=identity, call_id=call_id, name="run", content=content, turn=turn, is_error=is_error
            )
            results += [result] * draw(st.sampled_from([1, 1, 1, 0]))
    return events + draw(st.permutations(results))


@st.composite
def histories(draw: st.DrawFn, model: str) -> list[list[ViewEvent]]:
    """A conversation as it grows: after each step, a request is due."""
    steps: list[list[ViewEvent]] = []
    for turn in range(draw(st.integers(1, 3))):
        waiting = draw(requests_of_user(turn, f"r{turn}"))
        for number in range(draw(st.integers(0, 3))):
            steps.append(waiting)
            waiting = draw(cycles(model, turn, f"t{turn}.{number}"))
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
def threads(draw: st.DrawFn) -> list[Thread]:
    """A thread after each of its steps."""
    whole = Thread(
        model=draw(MODELS),
        system=tuple(draw(st.lists(TEXTS, max_size=2))),
        tools=draw(st.sampled_from([(), TOOLS])),
        events=(),
        parameters=draw(PARAMETERS),
        schema=draw(SCHEMAS),
    )
    events: list[ViewEvent] = []
    grown: list[Thread] = []
    for step in draw(histories(whole.model)):
        events += step
        grown.append(replace(whole, events=tuple(events)))
    return grown


def rendered(thread: Thread) -> WireRequest | None:
    """None where there is nothing to send."""
    try:
        return render(thread)
    except ProviderError as error:
        assert error.kind in {"invalid_request", "unsupported"}  # noqa: PT017 - other errors are raised as they are
        return None


def requests(grown: list[Thread]) -> list[WireRequest]:
    return [request for thread in grown if (request := rendered(thread)) is not None]


def blocks_of(request: WireRequest) -> Iterator[JsonObject]:
    """Every content block, inside tool results too."""
    for message in request.body["messages"]:
        for block in message["content"]:
            yield block
            yield from block.get("content", ()) if block["type"] == "tool_result" else ()
    yield from request.body.get("system", ())


def check_roles(request: WireRequest) -> None:
    roles = [message["role"] for message in request.body["messages"]]

    assert roles == (["user", "assistant"] * len(roles))[: len(roles)]


def check_calls(request: WireRequest) -> None:
    """Each call is answered directly after it, before anything else, and no id is used twice."""
    seen: list[str] = []
    due: list[str] = []
    for message in request.body["messages"]:
        answers: list[str | None] = [block.get("tool_use_id") for block in message["content"]]
        assert answers[: len(due)] == due
        assert not any(answers[len(due) :])
        due = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        seen += due
    assert not due
    assert len(seen) == len(set(seen))


def check_markers(request: WireRequest, thread: Thread) -> None:
    count = msgspec.json.encode(request.body).count(b'"cache_control":')

    assert (count == 0) if thread.parameters.cache == "off" else (1 <= count <= 4)


def check_blocks(request: WireRequest) -> None:
    """Nothing is empty, and no answer ends with a thought."""
    for block in blocks_of(request):
        assert block["type"] != "text" or block["text"].strip()
    for message in request.body["messages"]:
        assert message["content"]
        assert message["content"][-1]["type"] not in {"thinking", "redacted_thinking"}


def check_thinking(request: WireRequest) -> None:
    """A budget leaves room for an answer, and no temperature is sent with it."""
    thinking = request.body.get("thinking", {})
    if thinking.get("type") == "enabled":
        assert 1024 <= thinking["budget_tokens"] < request.body["max_tokens"]
        assert "temperature" not in request.body


@given(threads())
def test_every_request_is_one_that_the_api_accepts(grown: list[Thread]) -> None:
    for request in requests(grown):
        check_roles(request)
        check_calls(request)
        check_markers(request, grown[0])
        check_blocks(request)
        check_thinking(request)


@given(threads())
def test_every_request_is_one_that_the_sdk_has_types_for(grown: list[Thread]) -> None:
    for request in requests(grown[-1:]):
        assert_accepted(request.body)


@given(threads())
def test_a_longer_thread_begins_with_the_blocks_of_a_shorter_one(grown: list[Thread]) -> None:
    # A plea for a tool belongs to one request only, and is a change of parameters.
    grown = [replace(thread, parameters=replace(thread.parameters, tool_choice="auto")) for thread in grown]
    before: list[bytes] = []
    for request in requests(grown):
        found = sections(request)
        blocks = [message[0] + block for message in found.messages for block in message[1:]]
        whole = [*found.tools, *found.system, *blocks]

        assert whole[: len(before)] == before
        before = whole


@given(threads())
def test_the_same_thread_gives_the_same_bytes(grown: list[Thread]) -> None:
    assert msgspec.json.encode(rendered(grown[-1])) == msgspec.json.encode(rendered(grown[-1]))
