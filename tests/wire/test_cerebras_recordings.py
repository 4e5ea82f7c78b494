"""Recorded streams of Cerebras, served as they came and cut at random, and OpenAI's SDK's reading of the same bytes."""

from __future__ import annotations

import anyio
import pytest

from jp.conversation.thread import Thread, UserText
from loopback import Loopback
from openai_chat_oracle import assert_accepted, read_by_sdk
from provider_at import provider_at, receive
from recordings import Exchange, Recording, as_expected, comparable, recording_of, reply_to, streamed
from stories import Story, Told, told

NAMES = (
    "test_chat_completion_stream",
    "test_structured_output",
    "test_tool_call_auto",
    "test_tool_call_function",
    "test_tool_call_required_reasoning",
    "test_tool_call_stream",
    "test_unknown_model_auto_omits_effort",
)


@pytest.fixture(params=NAMES)
def recording(request: pytest.FixtureRequest) -> Recording:
    return recording_of("cerebras", request.param)


def read(url: str, exchange: Exchange) -> Story:
    asked = exchange["request"]["body"]
    schema = {"type": "object"} if "response_format" in asked else None
    thread = Thread(model=asked["model"], system=(), tools=(), events=(UserText(text="Hi", turn=0),), schema=schema)
    ending = anyio.run(receive, provider_at(f"{url}/v1", provider="cerebras"), thread)
    assert ending.error is None
    return told(ending.parts)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_recording_says_what_was_expected(recording: Recording, end: str) -> None:
    exchanges = streamed(recording)
    replies = (reply_to(exchange, f"{recording['case']} {i}", end=end) for i, exchange in enumerate(exchanges))
    with Loopback(*replies) as server:
        stories = [read(server.url, exchange) for exchange in exchanges]

    for story, exchange in zip(stories, exchanges, strict=True):
        decoded = exchange["decoded"]
        assert [comparable(block) for block in story.blocks] == [as_expected(each) for each in decoded["outcomes"]]
        assert story.finish == {"tool_calls": "tools"}.get(decoded["finish_native"], decoded["finish_native"])
        native = decoded["usage_native"] or {"prompt_tokens": 0, "completion_tokens": 0}
        assert story.usage.input + story.usage.cache_read == native["prompt_tokens"]
        assert story.usage.output == native["completion_tokens"]


def test_the_sdk_tells_the_same_story(recording: Recording) -> None:
    exchanges = streamed(recording)
    replies = [reply_to(exchange, f"sdk {i}") for i, exchange in enumerate(exchanges)]
    with Loopback(*(reply for reply in replies for _ in range(2))) as server:
        for exchange in exchanges:
            ours = read(server.url, exchange)
            theirs = read_by_sdk(f"{server.url}/v1")

            assert [plain(block) for block in ours.blocks] == [comparable(block) for block in theirs.blocks]
            assert ours.finish == theirs.finish


def plain(block: Told) -> Told:
    """A block as the SDK knows it: to it, data is a message."""
    return comparable(
        Told("message" if block.kind == "data" else block.kind, block.text, "", block.call_id, block.name)
    )


def test_the_sdk_accepts_the_requests_that_were_recorded(recording: Recording) -> None:
    """So what it says of ours means something."""
    for exchange in streamed(recording):
        assert_accepted(exchange["request"]["body"], own=("reasoning_format",), own_of_answers=("reasoning",))
