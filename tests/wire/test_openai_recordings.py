"""Recorded streams, served as they came and cut at random, and the official SDK's reading of the same bytes."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from certificates import WITHOUT_CERTIFICATES
from jp.conversation.entries import JsonObject, Usage
from jp.conversation.thread import Thread, UserText
from jp.provider.base import BlockEnd, Part
from loopback import Loopback
from openai_oracle import assert_accepted
from provider_at import provider_at, receive
from recordings import Recording, as_expected, comparable, recording_of, reply_to, streamed
from stories import Story, Told, told

NAMES = (
    "test_gpt_5_6_cache_off_sends_explicit_optout",
    "test_gpt_5_6_pro_reasoning_and_explicit_caching",
    "test_image_attachment",
    "test_multi_turn_conversation",
    "test_tool_call_function",
    "test_tool_call_reasoning",
    "test_tool_call_required_no_reasoning",
)
ASKED = Thread(model="gpt-5.6", system=(), tools=(), events=(UserText(text="Hi", turn=0),))

Outcome = dict[str, Any]


@pytest.fixture(params=NAMES)
def recording(request: pytest.FixtureRequest) -> Recording:
    return recording_of("openai", request.param)


def is_told(outcome: Outcome) -> bool:
    """Reasoning of which nothing is shown, and nothing kept, is none."""
    return outcome["kind"] != "reasoning" or bool(outcome["text"] or outcome["opaque"]["encrypted_content"])


def metadata_of(parts: list[Part]) -> list[JsonObject | None]:
    ends = sorted((part for part in parts if isinstance(part, BlockEnd)), key=lambda part: part.index)
    return [part.metadata for part in ends]


def kept(outcome: Outcome) -> JsonObject | None:
    """The opaque metadata of an expected outcome, as entries have it."""
    given: JsonObject = outcome.get("metadata") or {}
    found = {name.removeprefix("openai_"): value for name, value in given.items()}
    return {"provider": "openai", "model": ASKED.model, **found} if found else None


def read(url: str) -> list[Part]:
    ending = anyio.run(receive, provider_at(url, provider="openai", model=ASKED.model), ASKED)
    assert ending.error is None
    return ending.parts


def story_of(parts: list[Part]) -> Story:
    story = told(parts)
    story.blocks = [comparable(block) for block in story.blocks]
    return story


def test_every_recording_says_what_was_expected(recording: Recording) -> None:
    exchanges = streamed(recording)
    with Loopback(*(reply_to(exchange, f"{recording['case']} {i}") for i, exchange in enumerate(exchanges))) as server:
        answers = [read(server.url) for _ in exchanges]

    for parts, exchange in zip(answers, exchanges, strict=True):
        decoded = exchange["decoded"]
        story = story_of(parts)
        outcomes = [outcome for outcome in decoded["outcomes"] if is_told(outcome)]
        assert story.blocks == [as_expected(outcome) for outcome in outcomes]
        assert story.finish == ("tools" if any(outcome["kind"] == "tool_call" for outcome in outcomes) else "stop")
        native = decoded["usage_native"]
        given = native["input_tokens_details"]
        write = given.get("cache_write_tokens", 0)
        assert story.usage == Usage(
            input=native["input_tokens"] - given["cached_tokens"] - write,
            output=native["output_tokens"],
            cache_read=given["cached_tokens"],
            cache_write=write,
            reasoning=native["output_tokens_details"]["reasoning_tokens"],
        )
    for turn in recording["expected"]["turns"]:
        number: int = turn["exchanges"][0]
        assert story_of(answers[number]).blocks == [as_expected(outcome) for outcome in turn["outcomes"]]
        assert metadata_of(answers[number]) == [kept(outcome) for outcome in turn["outcomes"]]


def read_by_sdk(url: str) -> Story:
    from openai import DefaultHttpxClient, OpenAI

    reaching = DefaultHttpxClient(verify=WITHOUT_CERTIFICATES)
    with OpenAI(api_key="test", base_url=f"{url}/v1", max_retries=0, http_client=reaching) as client:
        events = client.responses.create(model="gpt-5.6", input="Hi", stream=True)
        (response,) = [event.response for event in events if event.type == "response.completed"]
    blocks: list[Told] = []
    for item in response.output:
        match item.type:
            case "message":
                blocks.append(
                    Told("message", "".join(part.text for part in item.content if part.type == "output_text"))
                )
            case "reasoning":
                if item.summary or item.encrypted_content:
                    blocks.append(Told("reasoning", "\n\n".join(part.text for part in item.summary)))
            case "function_call":
                arguments = msgspec.json.encode(msgspec.json.decode(item.arguments)).decode()
                blocks.append(Told("tool_call", arguments, call_id=item.call_id, name=item.name))
            case other:
                pytest.fail(f"no recording has an item of type {other!r}")
    usage = response.usage
    assert usage is not None
    given = usage.input_tokens_details
    write = getattr(given, "cache_write_tokens", None) or 0
    counted = Usage(
        input=usage.input_tokens - given.cached_tokens - write,
        output=usage.output_tokens,
        cache_read=given.cached_tokens,
        cache_write=write,
        reasoning=usage.output_tokens_details.reasoning_tokens,
    )
    return Story(blocks, "tools" if any(block.kind == "tool_call" for block in blocks) else "stop", counted)


def test_the_official_sdk_tells_the_same_story(recording: Recording) -> None:
    exchanges = streamed(recording)
    replies = [reply_to(exchange, f"sdk {i}") for i, exchange in enumerate(exchanges)]
    with Loopback(*(reply for reply in replies for _ in range(2))) as server:
        for _ in exchanges:
            assert story_of(read(server.url)) == read_by_sdk(server.url)


def test_the_sdk_accepts_the_requests_that_were_recorded(recording: Recording) -> None:
    """So what it says of ours means something; of nothing it says that it is nothing."""
    for exchange in streamed(recording):
        body = {name: value for name, value in exchange["request"]["body"].items() if value is not None}
        body["input"] = [{name: value for name, value in item.items() if value is not None} for item in body["input"]]
        assert_accepted(body)
