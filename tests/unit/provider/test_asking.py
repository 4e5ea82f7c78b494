from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from jp.config.model import LlmConfig
from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters, Thread, UserText
from jp.provider.base import DataDelta, Finished, TextDelta
from jp.provider.parameters import object_at
from jp.provider.registry import create_adapter

ASKED = Thread(model="m", system=(), tools=(), events=(UserText(text="Hi", turn=0),))
GOOGLE = b'{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}'
OPENAI = (
    b'{"type":"response.completed","response":{"status":"completed","output":'
    b'[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}}'
)


def test_what_is_no_object_holds_nothing() -> None:
    body: JsonObject = {"a": {"b": 1}, "c": [], "d": None}

    assert [object_at(body, name) for name in "acde"] == [{"b": 1}, {}, {}, {}]


@pytest.mark.parametrize(
    ("provider", "model", "unmet"),
    [
        ("anthropic", "claude-haiku-4-5", []),
        ("openai", "gpt-6.1-sol", ["long"]),
        ("openai", "gpt-5.5", ["off"]),
        ("openai", "gpt-4o", ["off", "long"]),
        ("google", "gemini-3.8-flash", ["off", "long"]),
        ("openrouter", "anthropic/claude-haiku-4.5", []),
        ("openrouter", "google/gemini-2.5-pro", ["off", "long"]),
        ("openrouter", "openai/gpt-5.5", ["off", "long"]),
        ("cerebras", "gpt-oss-120b", ["off", "long"]),
        ("ollama", "qwen3", ["off", "long"]),
        ("llamacpp", "any", ["off", "long"]),
    ],
)
def test_a_policy_of_the_cache_that_nobody_obeys_is_said(provider: str, model: str, unmet: list[str]) -> None:
    adapter = create_adapter(LlmConfig(), provider, kind=provider)
    policies: list[Any] = ["short", "off", "long"]
    asked = {policy: replace(ASKED, model=model, parameters=Parameters(cache=policy)) for policy in policies}
    said = {policy: adapter.render(thread).omitted for policy, thread in asked.items()}

    assert [policy for policy in policies if said[policy]] == unmet
    assert all(said[policy][0].startswith(f"cache {policy!r} not sent: ") for policy in unmet)


@pytest.mark.parametrize(
    ("provider", "other", "answer"),
    [
        ("google", {"generationConfig": []}, GOOGLE),
        ("openai", {"text": "plain"}, OPENAI),
        ("openai", {"text": {"format": None}}, OPENAI),
        ("openai", {"text": {"format": {"name": "answer"}}}, OPENAI),
    ],
)
def test_an_answer_is_read_whatever_a_parameter_made_of_the_request(
    provider: str, other: dict[str, object], answer: bytes
) -> None:
    adapter = create_adapter(LlmConfig(), provider, kind=provider)
    decoder = adapter.decoder(adapter.render(replace(ASKED, parameters=Parameters(other=other))))
    parts = [*decoder.feed("", answer), *decoder.close()]

    assert parts[-1] == Finished("stop")
    assert {TextDelta(0, "Hi"), DataDelta(0, "Hi")} & {
        part for part in parts if isinstance(part, TextDelta | DataDelta)
    }
