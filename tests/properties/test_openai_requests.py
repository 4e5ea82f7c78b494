"""What holds for the request of any thread, and for the requests of a thread that grows."""

from __future__ import annotations

import msgspec
from hypothesis import given
from msgspec.structs import replace

from choices import choices
from jp.conversation.entries import JsonObject
from jp.conversation.thread import AssistantData, AssistantReasoning, AssistantText, Thread
from jp.provider.base import WireRequest
from jp.provider.models import known_names
from jp.provider.openai.request import render
from openai_oracle import assert_accepted
from threads import Vendor, grown_threads, rendered_by, requests_by

OPENAI = Vendor(
    provider="openai",
    models=(*known_names("openai"), "gpt-7-nova", "o9", "qwen3"),
    opaque=(
        {"item_id": "rs_1", "encrypted_content": "sealed"},
        {"item_id": "rs_2", "encrypted_content": "sealed too"},
        {"item_id": "rs_3"},
        {},
    ),
)
LONGEST_NAME = 64


KEPT: tuple[JsonObject, ...] = ({}, {"item_id": "msg_1"}, {"item_id": "msg_1", "phase": "commentary"})
"""What OpenAI keeps with messages."""


def with_kept(grown: list[Thread], kept: JsonObject) -> list[Thread]:
    made: JsonObject = {"provider": "openai", "model": grown[0].model}
    return [
        replace(
            thread,
            events=tuple(
                replace(event, metadata={**made, **kept}) if isinstance(event, AssistantText | AssistantData) else event
                for event in thread.events
            ),
            conversation="jp-c1",
        )
        for thread in grown
    ]


marked = choices().map(lambda drawn: with_kept(grown_threads(drawn, OPENAI), drawn.pick(KEPT)))
"""Threads whose messages have ids and phases, too."""


def items_of(request: WireRequest) -> list[JsonObject]:
    return request.body["input"]


def check_calls(request: WireRequest) -> None:
    """Each call is answered before the user speaks again, and no id is used twice."""
    seen: list[str] = []
    due: list[str] = []
    for item in items_of(request):
        match item["type"]:
            case "function_call":
                due.append(item["call_id"])
            case "function_call_output":
                assert due.pop(0) == item["call_id"]
                seen.append(item["call_id"])
            case _:
                assert not due or item.get("role") != "user"
    assert not due
    assert len(seen) == len(set(seen))
    assert all(len(call_id) <= LONGEST_NAME for call_id in seen)


def check_reasoning(request: WireRequest) -> None:
    """Reasoning is followed by what it was for, and an id of a message stands only where its reasoning does."""
    items = items_of(request)
    has_reasoned = False
    for item, following in zip(items, [*items[1:], None], strict=True):
        has_reasoned = has_reasoned and not (item.get("role") == "user" or item["type"] == "function_call_output")
        if item["type"] == "reasoning":
            assert following is not None
            assert following["type"] in {"reasoning", "function_call"} or following.get("role") == "assistant"
            assert item["encrypted_content"]
            has_reasoned = True
        if item["type"] == "message" and "id" in item:
            assert has_reasoned


def check_content(request: WireRequest) -> None:
    """Nothing is empty."""
    for item in items_of(request):
        content: str | list[JsonObject] = item.get("content", "x")
        assert content
        for part in content if isinstance(content, list) else ():
            assert part.get("text", "x").strip()


def check_markers(request: WireRequest, thread: Thread) -> None:
    count = msgspec.json.encode(request.body).count(b'"prompt_cache_breakpoint":')

    assert count <= 2
    if thread.parameters.cache == "off":
        assert count == 0
        assert "prompt_cache_key" not in request.body


@given(marked)
def test_every_request_is_one_that_the_api_accepts(grown: list[Thread]) -> None:
    for request in requests_by(render, grown):
        check_calls(request)
        check_reasoning(request)
        check_content(request)
        check_markers(request, grown[0])
        assert request.body["store"] is False
        assert request.body["truncation"] == "disabled"


@given(marked)
def test_every_request_is_one_that_the_sdk_has_types_for(grown: list[Thread]) -> None:
    for request in requests_by(render, grown[-1:]):
        assert_accepted(request.body)


@given(marked)
def test_a_longer_thread_begins_with_the_items_of_a_shorter_one(grown: list[Thread]) -> None:
    before: list[bytes] = []
    for request in requests_by(render, grown):
        found = request.sections
        blocks = [message[0] + block for message in found.messages for block in message[1:]]
        whole = [*found.tools, *found.system, *blocks]

        assert whole[: len(before)] == before
        before = whole


@given(marked)
def test_own_reasoning_goes_back_byte_for_byte(grown: list[Thread]) -> None:
    thread = grown[-1]
    own = [
        event
        for event in thread.events
        if isinstance(event, AssistantReasoning) and (event.metadata or {}).get("encrypted_content")
    ]
    for request in requests_by(render, [thread]):
        for item in items_of(request):
            if item["type"] == "reasoning":
                text = "".join(part["text"] for part in item["summary"])
                assert any(
                    (event.text, event.metadata["item_id"], event.metadata["encrypted_content"])
                    == (text, item["id"], item["encrypted_content"])
                    for event in own
                    if event.metadata is not None and event.metadata["model"] == thread.model
                )


@given(marked)
def test_the_same_thread_gives_the_same_bytes(grown: list[Thread]) -> None:
    assert msgspec.json.encode(rendered_by(render, grown[-1])) == msgspec.json.encode(rendered_by(render, grown[-1]))
