"""Recorded streams of OpenRouter, served as they came and cut at random, and the official SDK's reading of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from chat_oracle import assert_accepted, story_of_sdk
from jp.conversation.entries import JsonObject, Usage
from jp.conversation.thread import AssistantReasoning, AssistantText, Thread, UserText
from jp.provider.base import BlockEnd
from loopback import Loopback
from provider_at import Ending, provider_at, receive
from recordings import Exchange, Recording, as_expected, comparable, recording_of, reply_to, streamed
from stories import Story, Told, told

NAMES = (
    "anthropic_test_sub_provider_event_metadata",
    "minimax_test_sub_provider_event_metadata",
    "test_anthropic_opus_5_parallel_tool_round_trip",
    "test_chat_completion_stream",
    "test_multi_turn_conversation",
    "test_structured_output",
    "test_tool_call_auto",
    "test_tool_call_required_no_reasoning",
    "test_tool_call_required_reasoning",
    "test_tool_call_stream",
)
FINISHES = {"stop": "stop", "tool_calls": "tools"}


@pytest.fixture(params=NAMES)
def recording(request: pytest.FixtureRequest) -> Recording:
    return recording_of("openrouter", request.param)


def thread_for(exchange: Exchange) -> Thread:
    """Something to ask the model that answered; the schema is the recorded one."""
    body = exchange["request"]["body"]
    schema: JsonObject | None = body.get("response_format", {}).get("json_schema", {}).get("schema")
    asked = UserText(text="Hi", turn=0, schema=schema)
    return Thread(model=body["model"], system=(), tools=(), events=(asked,), schema=schema)


def received(exchanges: list[Exchange], case: str) -> list[Ending]:
    replies = [reply_to(exchange, f"{case} {number}") for number, exchange in enumerate(exchanges)]
    with Loopback(*replies) as server:
        provider = provider_at(server.url, provider="openrouter")
        endings = [anyio.run(receive, provider, thread_for(exchange)) for exchange in exchanges]
    assert [ending.error for ending in endings] == [None] * len(exchanges)
    return endings


def plain(blocks: list[Told]) -> list[Told]:
    """Blocks as the recording words them: it does not know data from a message, and opaque items are compared apart."""
    kinds = {"data": "message"}
    return [replace(comparable(block), kind=kinds.get(block.kind, block.kind), opaque="") for block in blocks]


def usage_of(native: dict[str, Any]) -> Usage:
    prompt, output = native["prompt_tokens_details"], native["completion_tokens_details"]
    cached = prompt["cached_tokens"] + prompt.get("cache_write_tokens", 0)
    return Usage(
        input=native["prompt_tokens"] - cached,
        output=native["completion_tokens"],
        cache_read=prompt["cached_tokens"],
        cache_write=prompt.get("cache_write_tokens", 0),
        reasoning=min(output["reasoning_tokens"], native["completion_tokens"]),
    )


def test_every_recording_says_what_was_expected(recording: Recording) -> None:
    exchanges = streamed(recording)
    stories = [told(ending.parts) for ending in received(exchanges, recording["case"])]

    for story, exchange in zip(stories, exchanges, strict=True):
        decoded = exchange["decoded"]
        assert plain(story.blocks) == [as_expected(outcome) for outcome in decoded["outcomes"]]
        assert story.finish == FINISHES[decoded["finish_native"]]
        assert story.usage == usage_of(decoded["usage_native"])
    for turn in recording["expected"]["turns"]:
        if turn.get("structured") is not None:
            last = stories[int(turn["exchanges"][0])].blocks[-1]
            assert (last.kind, msgspec.json.decode(last.text)) == ("data", turn["structured"])


def details_in(exchange: Exchange) -> list[JsonObject]:
    """The items of reasoning that a stream holds, put together without our reader."""
    items: dict[tuple[object, object], JsonObject] = {}
    for piece in pieces_in(exchange):
        item = items.setdefault((piece["type"], piece["index"]), {})
        for name, value in piece.items():
            grows = name in {"text", "summary"}
            item[name] = item.get(name, "") + value if grows else value or item.get(name, value)
    return list(items.values())


def pieces_in(exchange: Exchange) -> Iterator[JsonObject]:
    lines = [line for line in exchange["response"]["body"].splitlines() if line.startswith("data: {")]
    for chunk in (msgspec.json.decode(line.removeprefix("data: "), type=JsonObject) for line in lines):
        for choice in chunk["choices"]:
            yield from choice["delta"].get("reasoning_details") or ()


def test_details_of_reasoning_are_kept_whole_and_go_back_as_they_came(recording: Recording) -> None:
    exchanges = streamed(recording)

    for ending, exchange in zip(received(exchanges, recording["case"]), exchanges, strict=True):
        kept = [part.metadata for part in ending.parts if isinstance(part, BlockEnd) and part.metadata is not None]
        details, thread = details_in(exchange), thread_for(exchange)
        made: JsonObject = {"provider": "openrouter", "model": thread.model}
        assert kept == ([{**made, "reasoning_details": details}] if details else [])
        for metadata in kept:
            stored = msgspec.json.decode(msgspec.json.encode(metadata))
            events = (
                *thread.events,
                AssistantReasoning(text="hm", turn=0, metadata=stored),
                AssistantText(text="a", turn=0),
                UserText(text="and?", turn=1, origin="b"),
            )
            body = provider_at("http://127.0.0.1", provider="openrouter").render(replace(thread, events=events)).body
            assert msgspec.json.encode(body["messages"][1]["reasoning_details"]) == msgspec.json.encode(details)


def test_the_official_sdk_tells_the_same_story(recording: Recording) -> None:
    exchanges = streamed(recording)
    endings = received(exchanges, recording["case"])
    with Loopback(*(reply_to(exchange, f"sdk {number}") for number, exchange in enumerate(exchanges))) as server:
        for ending in endings:
            ours = told(ending.parts)
            theirs = story_of_sdk(server.url)
            blocks = [block for block in plain(ours.blocks) if block.text or block.kind != "reasoning"]

            assert Story(blocks, ours.finish, ours.usage) == Story(theirs.blocks, FINISHES[theirs.finish], theirs.usage)


def test_the_sdk_accepts_the_requests_that_were_recorded(recording: Recording) -> None:
    """So what it says of ours means something. Empty descriptions aside, which those lack."""
    for exchange in streamed(recording):
        assert_accepted(exchange["request"]["body"])
