"""Recorded streams of Ollama, served as they came and cut at random."""

from __future__ import annotations

import anyio
import pytest

from jp.conversation.entries import Usage
from jp.conversation.thread import Thread, UserText
from loopback import Loopback
from provider_at import provider_at, receive
from recordings import Recording, as_expected, comparable, recording_of, reply_to, streamed
from stories import Story, told

NAMES = (
    "test_chat_completion_stream",
    "test_image_attachment",
    "test_tool_call_auto",
    "test_tool_call_function",
    "test_tool_call_reasoning",
    "test_tool_call_stream",
)
ASKED = Thread(model="qwen3.5:9b", system=(), tools=(), events=(UserText(text="Hi", turn=0),))


@pytest.fixture(params=NAMES)
def recording(request: pytest.FixtureRequest) -> Recording:
    return recording_of("ollama", request.param)


def read(url: str) -> Story:
    ending = anyio.run(receive, provider_at(url, provider="ollama"), ASKED)
    assert ending.error is None
    return told(ending.parts)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_recording_says_what_was_expected(recording: Recording, end: str) -> None:
    exchanges = streamed(recording)
    replies = (reply_to(exchange, f"{recording['case']} {i}", end=end) for i, exchange in enumerate(exchanges))
    with Loopback(*replies) as server:
        stories = [read(server.url) for _ in exchanges]

    for story, exchange in zip(stories, exchanges, strict=True):
        decoded = exchange["decoded"]
        native = decoded["usage_native"]
        has_calls = any(outcome["kind"] == "tool_call" for outcome in decoded["outcomes"])
        assert [comparable(block) for block in story.blocks] == [as_expected(each) for each in decoded["outcomes"]]
        assert story.usage == Usage(input=native["prompt_eval_count"], output=native["eval_count"])
        assert story.finish == ("tools" if has_calls else decoded["finish_native"])
    for turn in recording["expected"]["turns"]:
        if len(turn["exchanges"]) == 1:
            number: int = turn["exchanges"][0]
            assert (
                "".join(block.text for block in stories[number].blocks if block.kind == "message")
                == turn["message_text"]
            )
