"""Recorded streams, served as they came and cut at random, and the official SDK's reading of the same bytes."""

from __future__ import annotations

from typing import Any

import anthropic
import anyio
import msgspec
import pytest

from anthropic_oracle import assert_accepted
from certificates import WITHOUT_CERTIFICATES
from jp.conversation.entries import Usage
from jp.conversation.thread import Thread, UserText
from loopback import Loopback
from provider_at import provider_at, receive
from recordings import Recording, as_expected, comparable, recording_of, reply_to, streamed
from stories import Story, Told, told

NAMES = (
    "test_chat_completion_stream",
    "test_image_attachment",
    "test_opus_4_6_adaptive_thinking",
    "test_request_chaining",
    "test_tool_call_auto",
    "test_tool_call_function",
    "test_tool_call_reasoning",
    "test_tool_call_stream",
)
ASKED = Thread(model="claude-haiku-4-5", system=(), tools=(), events=(UserText(text="Hi", turn=0),))
FINISHES = {"end_turn": "stop", "tool_use": "tools", "max_tokens": "length"}


@pytest.fixture(params=NAMES)
def recording(request: pytest.FixtureRequest) -> Recording:
    return recording_of("anthropic", request.param)


def read(url: str) -> Story:
    ending = anyio.run(receive, provider_at(url), ASKED)
    assert ending.error is None
    return told(ending.parts)


def signed(outcome: dict[str, Any]) -> Told:
    """An outcome with the opaque part that belongs to it."""
    expected = as_expected(outcome)
    opaque: dict[str, str] = outcome.get("opaque", outcome.get("metadata") or {})
    expected.opaque = next(iter(opaque.values()), "")
    return expected


def test_every_recording_says_what_was_expected(recording: Recording) -> None:
    exchanges = streamed(recording)
    with Loopback(*(reply_to(exchange, f"{recording['case']} {i}") for i, exchange in enumerate(exchanges))) as server:
        stories = [read(server.url) for _ in exchanges]

    for story, exchange in zip(stories, exchanges, strict=True):
        decoded = exchange["decoded"]
        assert [comparable(block) for block in story.blocks] == [signed(outcome) for outcome in decoded["outcomes"]]
        assert story.finish == FINISHES[decoded["finish_native"]]
        native = decoded["usage_native"]
        assert story.usage == Usage(
            input=native["input_tokens"],
            output=native["output_tokens"],
            cache_read=native["cache_read_input_tokens"],
            cache_write=native["cache_creation_input_tokens"],
        )
    for turn in recording["expected"]["turns"]:
        if len(turn["exchanges"]) == 1:
            number: int = turn["exchanges"][0]
            assert [comparable(block) for block in stories[number].blocks] == [
                signed(outcome) for outcome in turn["outcomes"]
            ]


def read_by_sdk(url: str) -> Story:
    reaching = anthropic.DefaultHttpxClient(verify=WITHOUT_CERTIFICATES)
    with (
        anthropic.Anthropic(api_key="test", base_url=url, max_retries=0, http_client=reaching) as client,
        client.messages.stream(
            model="claude-haiku-4-5", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
        ) as stream,
    ):
        message = stream.get_final_message()
    blocks: list[Told] = []
    for block in message.content:
        match block.type:
            case "text":
                blocks.append(Told("message", block.text))
            case "thinking":
                blocks.append(Told("reasoning", block.thinking, block.signature))
            case "tool_use":
                arguments = msgspec.json.encode(block.input).decode()
                blocks.append(Told("tool_call", arguments, call_id=block.id, name=block.name))
            case other:
                pytest.fail(f"no recording has a block of type {other!r}")
    usage = Usage(
        input=message.usage.input_tokens,
        output=message.usage.output_tokens,
        cache_read=message.usage.cache_read_input_tokens or 0,
        cache_write=message.usage.cache_creation_input_tokens or 0,
    )
    return Story(blocks, FINISHES[message.stop_reason or ""], usage)


def test_the_official_sdk_tells_the_same_story(recording: Recording) -> None:
    exchanges = streamed(recording)
    replies = [reply_to(exchange, f"sdk {i}") for i, exchange in enumerate(exchanges)]
    with Loopback(*(reply for reply in replies for _ in range(2))) as server:
        for _ in exchanges:
            ours = read(server.url)
            ours.blocks = [comparable(block) for block in ours.blocks]

            assert ours == read_by_sdk(server.url)


def test_the_sdk_accepts_the_requests_that_were_recorded(recording: Recording) -> None:
    """So what it says of ours means something."""
    for exchange in streamed(recording):
        body = exchange["request"]["body"]
        assert_accepted(body)
