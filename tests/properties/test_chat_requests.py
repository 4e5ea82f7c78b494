"""What holds for the Chat Completions request of any thread to any server, and for those of a thread that grows."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import msgspec
from hypothesis import given
from msgspec.structs import replace

from chat_oracle import assert_accepted
from choices import Choices, choices
from jp.config.entries import OpenrouterConfig, ServerConfig
from jp.conversation.entries import JsonObject
from jp.conversation.thread import Thread
from jp.provider.base import WireRequest
from jp.provider.chat.request import ChatAdapter
from jp.provider.chat.request import create as create_compatible
from jp.provider.openrouter.vendor import create as create_openrouter
from threads import Vendor, grown_threads, rendered_by, requests_by

DETAILS: tuple[JsonObject, ...] = (
    {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "s"}]},
    {},
)
OPENROUTER = Vendor(
    provider="openrouter",
    models=(
        "anthropic/claude-haiku-4.5",
        "anthropic/claude-opus-5.5",
        "openai/gpt-5-mini",
        "google/gemini-2.5-pro",
        "mistralai/mistral-medium-3.1",
        "z",
    ),
    opaque=DETAILS,
)
MINE = Vendor(provider="mine", models=("m",))
Case = tuple[ChatAdapter, list[Thread]]


def server(drawn: Choices) -> ServerConfig:
    return ServerConfig(
        base_url="http://127.0.0.1/v1",
        max_tokens_name=drawn.pick(("max_tokens", "max_completion_tokens")),
        system_role=drawn.pick(("system", "developer", "user")),
        reasoning=drawn.pick(("none", "effort", "enable_thinking")),
        return_reasoning=drawn.pick(("none", "reasoning_content", "reasoning", "text")),
        structured=drawn.pick(("json_schema", "json_object_schema", "json_object", "none")),
        tool_choice=drawn.one_in(2),
        images=drawn.one_in(2),
        stream_usage=drawn.one_in(2),
        call_ids=drawn.pick(("any", "short")),
        user_after_tool=drawn.one_in(2),
    )


def case(drawn: Choices) -> Case:
    if drawn.one_in(2):
        return create_openrouter(OpenrouterConfig()), grown_threads(drawn, OPENROUTER)
    return create_compatible(server(drawn), "mine"), grown_threads(drawn, MINE)


cases = choices().map(case)


def check_roles(messages: list[JsonObject]) -> None:
    """After the system prompt the user speaks; an answer follows the user or a tool, and nobody speaks twice."""
    roles = [message["role"] for message in messages]
    if roles[0] in {"system", "developer"}:
        roles = roles[1:]

    assert roles[0] == "user"
    assert not {("user", "user"), ("assistant", "assistant"), ("user", "tool")}.intersection(pairwise(roles))


def check_calls(messages: list[JsonObject]) -> None:
    """Each call is answered directly after it, in order, and no id is used twice."""
    seen: list[str] = []
    due: list[str] = []
    for message in messages:
        if due:
            assert message["tool_call_id"] == due.pop(0)
        else:
            assert message["role"] != "tool"
        calls: list[JsonObject] = message.get("tool_calls", [])
        due += [call["id"] for call in calls]
        seen += [call["id"] for call in calls]
        for number, call in enumerate(calls):
            assert call["type"] == "function"
            assert call.get("index", number) == number
            assert isinstance(msgspec.json.decode(call["function"]["arguments"]), dict)
    assert not due
    assert len(set(seen)) == len(seen)


def check_content(messages: list[JsonObject]) -> None:
    """Everybody says something; reasoning alone is nothing."""
    for message in messages:
        content = message.get("content")
        assert content or message.get("tool_calls")
        parts = cast("list[JsonObject]", content) if isinstance(content, list) else list[JsonObject]()
        assert all(part["type"] != "text" or part["text"].strip() for part in parts)
        assert not isinstance(content, str) or content.strip()


def check_markers(request: WireRequest, thread: Thread) -> None:
    count = msgspec.json.encode(request.body).count(b'"cache_control":')
    marks = thread.model.startswith(("anthropic/", "google/")) and thread.parameters.cache != "off"

    assert (1 <= count <= 4) if marks else (count == 0)


@given(cases)
def test_every_request_is_one_that_any_server_accepts(case: Case) -> None:
    adapter, grown = case
    for request in requests_by(adapter.render, grown):
        check_roles(request.body["messages"])
        check_calls(request.body["messages"])
        check_content(request.body["messages"])
        check_markers(request, grown[0])


@given(cases)
def test_every_request_is_one_that_the_sdk_has_types_for(case: Case) -> None:
    adapter, grown = case
    for request in requests_by(adapter.render, grown[-1:]):
        assert_accepted(request.body)


@given(cases)
def test_a_longer_thread_begins_with_the_parts_of_a_shorter_one(case: Case) -> None:
    # A plea for a tool belongs to one request only, and is a change of parameters.
    adapter, grown = case
    grown = [replace(thread, parameters=replace(thread.parameters, tool_choice="auto")) for thread in grown]
    before: list[bytes] = []
    for request in requests_by(adapter.render, grown):
        found = request.sections
        parts = [message[0] + part for message in found.messages for part in message[1:]]
        whole = [*found.tools, *found.system, *parts]

        assert whole[: len(before)] == before
        before = whole


@given(cases)
def test_the_same_thread_gives_the_same_bytes(case: Case) -> None:
    adapter, grown = case

    assert msgspec.json.encode(rendered_by(adapter.render, grown[-1])) == msgspec.json.encode(
        rendered_by(adapter.render, grown[-1])
    )
