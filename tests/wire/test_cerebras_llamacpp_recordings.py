"""Recorded streams of Cerebras and llama.cpp, cut at random, and what OpenAI's SDK reads of the same bytes."""

from __future__ import annotations

import anyio
import pytest

from chat_oracle import assert_accepted, story_of_sdk
from jp.conversation.thread import Thread, UserText
from loopback import Loopback
from provider_at import provider_at, receive
from recordings import Exchange, Recording, as_expected, comparable, recording_of, reply_to, streamed
from stories import Story, Told, told

NAMES = {
    "cerebras": (
        "test_chat_completion_stream",
        "test_structured_output",
        "test_tool_call_auto",
        "test_tool_call_function",
        "test_tool_call_required_reasoning",
        "test_tool_call_stream",
        "test_unknown_model_auto_omits_effort",
    ),
    "llamacpp": (
        "test_image_attachment",
        "test_multi_turn_conversation",
        "test_tool_call_function",
        "test_tool_call_reasoning",
        "test_tool_call_required_no_reasoning",
    ),
}
FOREIGN = {
    "cerebras": ("reasoning_format", "reasoning"),
    "llamacpp": ("reasoning_format", "chat_template_kwargs", "reasoning_content"),
}
_FINISHES = {"tool_calls": "tools"}


@pytest.fixture(params=[f"{provider}/{name}" for provider, names in NAMES.items() for name in names])
def recording(request: pytest.FixtureRequest) -> Recording:
    provider, _, name = request.param.partition("/")
    return recording_of(provider, name)


def read(url: str, provider: str, exchange: Exchange) -> Story:
    asked = exchange["request"]["body"]
    schema = {"type": "object"} if "response_format" in asked else None
    thread = Thread(model=asked["model"], system=(), tools=(), events=(UserText(text="Hi", turn=0),), schema=schema)
    ending = anyio.run(receive, provider_at(f"{url}/v1", provider=provider), thread)
    assert ending.error is None
    return told(ending.parts)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_recording_says_what_was_expected(recording: Recording, end: str) -> None:
    exchanges = streamed(recording)
    replies = (reply_to(exchange, f"{recording['case']} {i}", end=end) for i, exchange in enumerate(exchanges))
    with Loopback(*replies) as server:
        stories = [read(server.url, recording["provider"], exchange) for exchange in exchanges]

    for story, exchange in zip(stories, exchanges, strict=True):
        decoded = exchange["decoded"]
        assert [comparable(block) for block in story.blocks] == [as_expected(each) for each in decoded["outcomes"]]
        assert story.finish == _FINISHES.get(decoded["finish_native"], decoded["finish_native"])
        native = decoded["usage_native"] or {"prompt_tokens": 0, "completion_tokens": 0}
        assert story.usage.input + story.usage.cache_read == native["prompt_tokens"]
        assert story.usage.output == native["completion_tokens"]


def test_the_sdk_tells_the_same_story(recording: Recording) -> None:
    exchanges = streamed(recording)
    replies = [reply_to(exchange, f"sdk {i}") for i, exchange in enumerate(exchanges)]
    with Loopback(*(reply for reply in replies for _ in range(2))) as server:
        for exchange in exchanges:
            ours = read(server.url, recording["provider"], exchange)
            theirs = story_of_sdk(f"{server.url}/v1")

            assert [plain(block) for block in ours.blocks] == [comparable(block) for block in theirs.blocks]
            assert ours.finish == _FINISHES.get(theirs.finish, theirs.finish)
            assert ours.usage == theirs.usage


def plain(block: Told) -> Told:
    """A block as the SDK knows it: to it, data is a message."""
    return comparable(
        Told("message" if block.kind == "data" else block.kind, block.text, "", block.call_id, block.name)
    )


def test_the_sdk_accepts_the_requests_that_were_recorded(recording: Recording) -> None:
    """So what it says of ours means something."""
    for exchange in streamed(recording):
        assert_accepted(exchange["request"]["body"], foreign=FOREIGN[recording["provider"]])
