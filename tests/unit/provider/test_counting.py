from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import pytest

from jp.conversation.thread import Thread, ToolDefinition, UserText
from jp.provider.anthropic.vendor import AnthropicAdapter
from jp.provider.base import WireRequest
from jp.provider.errors import ProviderError
from jp.provider.google.vendor import GoogleAdapter
from jp.provider.openai.vendor import OpenaiAdapter
from jp.provider.registry import vendor_of, vendors
from jp.provider.vendor import read_token_count

LOOK = ToolDefinition(name="look", description="Look.", parameters={"type": "object", "properties": {}})


def thread(model: str) -> Thread:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    return Thread(
        model=model, system=("Be brief.",), tools=(LOOK,), events=(UserText(text="Hi", turn=0),), schema=schema
    )


def counting(kind: str, request: WireRequest, **where: str) -> WireRequest:
    count = vendor_of(kind).count
    assert count is not None
    return count(request, where.get("platform"))


@cache
def sent_by(vendor: str) -> Any:
    """The SDK of a vendor with a transport that keeps what it is to send; the second value is that."""
    import anthropic
    import httpx2
    import openai

    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json={"input_tokens": 7, "object": "response.input_tokens"}, request=request)

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    sdk: Any = {"anthropic": anthropic.Anthropic, "openai": openai.OpenAI}[vendor]
    return sdk(api_key="k", http_client=client, max_retries=0), seen


def test_the_official_sdk_of_anthropic_asks_the_same() -> None:
    asking = counting("anthropic", AnthropicAdapter().render(thread("claude-opus-4-6")))
    sdk, seen = sent_by("anthropic")

    assert sdk.messages.count_tokens(**asking.body).input_tokens == 7
    assert (seen[-1].url.path, msgspec.json.decode(seen[-1].content)) == (asking.path, asking.body)
    assert {"model", "messages", "system", "tools", "output_config"} <= set(asking.body)
    assert not {"max_tokens", "stream"} & set(asking.body)


def test_the_official_sdk_of_openai_asks_the_same() -> None:
    asking = counting("openai", OpenaiAdapter().render(thread("gpt-5.6")))
    sdk, seen = sent_by("openai")

    assert sdk.responses.input_tokens.count(**asking.body).input_tokens == 7
    assert (seen[-1].url.path, msgspec.json.decode(seen[-1].content)) == (asking.path, asking.body)
    assert {"model", "input", "tools", "text"} <= set(asking.body)
    assert not {"stream", "store", "include"} & set(asking.body)


def test_google_counts_the_whole_request() -> None:
    request = GoogleAdapter().render(thread("gemini-3.8-flash"))
    asking = counting("google", request)

    assert asking.path == "/models/gemini-3.8-flash:countTokens"
    assert asking.body == {"generateContentRequest": {"model": "models/gemini-3.8-flash", **request.body}}


def test_google_s_cloud_counts_what_it_has_a_name_for() -> None:
    request = GoogleAdapter().render(thread("gemini-3.8-flash"))
    asking = counting("google", request, platform="vertex")

    assert set(asking.body) <= {"contents", "systemInstruction", "tools", "generationConfig"}
    assert asking.body["contents"] == request.body["contents"]


def test_others_do_not_count() -> None:
    counting = {vendor.id for vendor in vendors() if vendor.count is not None}
    clouds = {cloud for vendor in vendors() for cloud, offer in vendor.clouds.items() if offer.counts}

    assert counting == {"anthropic", "openai", "google"}
    assert clouds == {"vertex", "foundry", "azure"}


def test_a_count_is_read() -> None:
    assert read_token_count("p", b'{"input_tokens": 0}') == 0
    assert read_token_count("p", b'{"totalTokens": 12, "more": []}') == 12


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b"{}", b'{"input_tokens": "3"}'])
def test_what_is_no_count_is_an_error(body: bytes) -> None:
    with pytest.raises(ProviderError, match="did not return a token count") as raised:
        read_token_count("p", body)

    assert raised.value.is_retryable
