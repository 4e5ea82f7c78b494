"""Recorded streams of Gemini, served as they came and cut at random, and the official SDK's reading of the bytes."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from google_oracle import assert_accepted, told_by_sdk
from jp.conversation.entries import Usage
from jp.conversation.thread import Thread, UserText
from loopback import Loopback
from provider_at import provider_at, receive
from recordings import Recording, as_expected, comparable, recording_of, reply_to, streamed
from stories import Story, Told, told

NAMES = (
    "test_gemini_3_reasoning",
    "test_multi_turn_conversation",
    "test_structured_output",
    "test_tool_call_reasoning",
    "test_tool_call_required_no_reasoning",
    "test_tool_call_required_reasoning",
)
MODEL = "gemini-2.5-flash-lite"
SCHEMA = {"type": "object", "properties": {"titles": {"type": "array"}}}


@pytest.fixture(params=NAMES)
def recording(request: pytest.FixtureRequest) -> Recording:
    return recording_of("google", request.param)


def asked(exchange: dict[str, Any]) -> Thread:
    """A thread whose answer comes in the form of the recorded one."""
    is_structured = "responseMimeType" in exchange["request"]["body"]["generationConfig"]
    return Thread(
        model=MODEL,
        system=(),
        tools=(),
        events=(UserText(text="Hi", turn=0),),
        schema=SCHEMA if is_structured else None,
    )


def read(url: str, exchange: dict[str, Any]) -> Story:
    ending = anyio.run(receive, provider_at(url, provider="google", model=MODEL), asked(exchange))
    assert ending.error is None
    return told(ending.parts)


def signed(outcome: dict[str, Any], exchange: dict[str, Any]) -> Told:
    """An outcome with the opaque part that belongs to it; calls without an id get one."""
    expected = as_expected(outcome)
    expected.opaque = outcome.get("opaque", {}).get("thoughtSignature", "")
    if expected.kind == "tool_call" and not expected.call_id:
        number = exchange["decoded"]["outcomes"].index(outcome)
        expected.call_id = f"call_{exchange['decoded']['ids']['response']}_{number}"
    if asked(exchange).schema is not None:
        expected.kind = "data"
    return expected


def counted(native: dict[str, Any]) -> Usage:
    thoughts = native.get("thoughtsTokenCount", 0)
    return Usage(
        input=native["promptTokenCount"], output=native.get("candidatesTokenCount", 0) + thoughts, reasoning=thoughts
    )


def test_every_recording_says_what_was_expected(recording: Recording) -> None:
    exchanges = streamed(recording)
    replies = [reply_to(each, f"{recording['case']} {i}", end="\r\n") for i, each in enumerate(exchanges)]
    with Loopback(*replies) as server:
        stories = [read(server.url, exchange) for exchange in exchanges]

    for story, exchange in zip(stories, exchanges, strict=True):
        decoded = exchange["decoded"]
        assert decoded["finish_native"] == "STOP"
        assert [comparable(block) for block in story.blocks] == [
            signed(outcome, exchange) for outcome in decoded["outcomes"]
        ]
        has_calls = any(outcome["kind"] == "tool_call" for outcome in decoded["outcomes"])
        assert story.finish == ("tools" if has_calls else "stop")
        assert story.usage == counted(decoded["usage_native"])
    for turn in recording["expected"]["turns"]:
        if len(turn["exchanges"]) == 1 and turn.get("structured") is None:
            story = stories[int(turn["exchanges"][0])]
            assert "".join(block.text for block in story.blocks if block.kind == "message") == turn["message_text"]
        elif turn.get("structured") is not None:
            (data,) = stories[int(turn["exchanges"][0])].blocks
            assert msgspec.json.decode(data.text) == turn["structured"]


def test_the_official_sdk_tells_the_same_story(recording: Recording) -> None:
    exchanges = streamed(recording)
    replies = [reply_to(exchange, f"sdk {i}", end="\r\n") for i, exchange in enumerate(exchanges)]
    with Loopback(*(reply for reply in replies for _ in range(2))) as server:
        for exchange in exchanges:
            ours = read(server.url, exchange)
            theirs = told_by_sdk(server.url, MODEL)
            for block in ours.blocks:
                block.call_id = ""
                block.kind = "message" if block.kind == "data" else block.kind
                block.text = comparable(block).text

            assert ours == theirs


def test_the_sdk_accepts_the_requests_that_were_recorded(recording: Recording) -> None:
    """So what it says of ours means something."""
    for exchange in streamed(recording):
        body = dict(exchange["request"]["body"])
        config = dict(body["generationConfig"])
        if "_responseJsonSchema" in config:
            config["responseJsonSchema"] = config.pop("_responseJsonSchema")
        assert_accepted({**body, "generationConfig": config})
