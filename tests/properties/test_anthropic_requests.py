"""What holds for the request of any thread, and for the requests of a thread that grows."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from hypothesis import given
from msgspec.structs import replace

from anthropic_oracle import assert_accepted
from jp.conversation.entries import JsonObject
from jp.conversation.thread import Thread
from jp.provider.anthropic.request import render
from jp.provider.base import WireRequest
from jp.provider.models import known_names
from threads import Vendor, rendered_by, requests_by, threads

ANTHROPIC = Vendor(
    provider="anthropic",
    models=(*known_names("anthropic"), "claude-next-1", "qwen3"),
    opaque=({"signature": "sig"}, {"redacted": "opaque"}, {}),
)


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


@given(threads(ANTHROPIC))
def test_every_request_is_one_that_the_api_accepts(grown: list[Thread]) -> None:
    for request in requests_by(render, grown):
        check_roles(request)
        check_calls(request)
        check_markers(request, grown[0])
        check_blocks(request)
        check_thinking(request)


@given(threads(ANTHROPIC))
def test_every_request_is_one_that_the_sdk_has_types_for(grown: list[Thread]) -> None:
    for request in requests_by(render, grown[-1:]):
        assert_accepted(request.body)


@given(threads(ANTHROPIC))
def test_a_longer_thread_begins_with_the_blocks_of_a_shorter_one(grown: list[Thread]) -> None:
    # A plea for a tool belongs to one request only, and is a change of parameters.
    grown = [replace(thread, parameters=replace(thread.parameters, tool_choice="auto")) for thread in grown]
    before: list[bytes] = []
    for request in requests_by(render, grown):
        found = request.sections
        blocks = [message[0] + block for message in found.messages for block in message[1:]]
        whole = [*found.tools, *found.system, *blocks]

        assert whole[: len(before)] == before
        before = whole


@given(threads(ANTHROPIC))
def test_the_same_thread_gives_the_same_bytes(grown: list[Thread]) -> None:
    assert msgspec.json.encode(rendered_by(render, grown[-1])) == msgspec.json.encode(rendered_by(render, grown[-1]))
