"""Any recorded conversation goes on with any provider: with a valid request, and without what is another's secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, cast

import anyio
import msgspec
import pytest
from msgspec.structs import replace

import anthropic_oracle
import chat_oracle
import google_oracle
import ollama_oracle
import openai_oracle
from doubles import MemoryRecorder, Screen
from jp.compaction.status_lines import PlainStatusFormatter
from jp.conversation.entries import AnyEntry, ChatRequest, ChatResponse, ToolCallRequest, TurnStart
from jp.conversation.thread import Parameters, ToolDefinition
from jp.provider.base import Provider
from jp.provider.registry import PROVIDERS
from jp.turn.request import InlineLoader, RequestSettings, build_thread
from loopback import Loopback
from provider_at import provider_at
from recordings import recording_of, reply_to, streamed
from replays import CASES, file_of, play

MODELS = {
    "anthropic": ("claude-haiku-4-5", "claude-sonnet-5-5"),
    "cerebras": ("gpt-oss-120b",),
    "google": ("gemini-3-flash", "gemini-2.5-flash-lite"),
    "llamacpp": ("qwen3",),
    "ollama": ("qwen3",),
    "openai": ("gpt-5.6", "gpt-4.1"),
    "openrouter": ("anthropic/claude-opus-5", "minimax/minimax-m2"),
    "mine": ("some/model",),
}
SEARCH = ToolDefinition(
    name="search", description="Find.", parameters={"type": "object", "properties": {"for": {"type": "string"}}}
)

ACCEPTED: dict[str, Callable[[dict[str, Any]], None]] = {
    "anthropic": anthropic_oracle.assert_accepted,
    "google": google_oracle.assert_accepted,
    "ollama": ollama_oracle.assert_accepted,
    "openai": openai_oracle.assert_accepted,
}
"""Who says whether a request is valid: everybody else speaks Chat Completions."""


@cache
def played(provider: str, case: str) -> Sequence[AnyEntry]:
    """The log of a recorded conversation."""
    recording = recording_of(provider, file_of(case))
    recorder = MemoryRecorder()
    replies = [replace(reply_to(exchange, ""), cuts=()) for exchange in streamed(recording)]
    with Loopback(*replies) as server:
        anyio.run(lambda: play(recording, recorder, Screen(), url=server.url, root=Path(mkdtemp(prefix="jp-"))))
    return recorder.entries


def opaque_texts(value: object) -> Iterator[str]:
    """The long texts of an answer's metadata: signatures, encrypted reasoning. They are nobody else's business."""
    match value:
        case str() if len(value) > 40:
            yield value
        case dict():
            for name, below in cast("dict[str, object]", value).items():
                yield from () if name in {"text", "summary"} else opaque_texts(below)
        case list() | tuple():
            for below in cast("Sequence[object]", value):
                yield from opaque_texts(below)
        case _:
            pass


def rendered(
    provider: Provider, name: str, model: str, entries: Sequence[AnyEntry], **parameters: Any
) -> dict[str, Any]:
    """The body of the request that asks one more thing."""
    more = (*entries, TurnStart(id="t-next"), ChatRequest(id="r-next", content="And now?"))
    settings = RequestSettings(
        provider=name,
        model=model,
        renderer=provider.renderer,
        system=("Be brief.",),
        tools=(SEARCH,),
        parameters=Parameters(**parameters),
    )
    thread = build_thread(more, settings, loader=InlineLoader(), status_formatter=PlainStatusFormatter())
    return provider.render(thread).body


def check(name: str, body: dict[str, Any]) -> None:
    ACCEPTED.get(name, chat_oracle.assert_accepted)(msgspec.json.decode(msgspec.json.encode(body)))


@pytest.mark.parametrize(
    ("provider", "case"), [(provider, case) for provider, cases in CASES.items() for case in cases]
)
def test_a_recorded_conversation_goes_on_with_any_provider(provider: str, case: str) -> None:
    entries = played(provider, case)
    before = msgspec.json.encode(entries)
    answers = [entry for entry in entries if isinstance(entry, ChatResponse | ToolCallRequest)]
    secrets = {text for entry in answers for text in opaque_texts(entry.metadata)}
    calls = [entry for entry in entries if isinstance(entry, ToolCallRequest)]

    for name, models in MODELS.items():
        other = provider_at("http://127.0.0.1:1", provider=name)
        for model in models:
            for parameters in ({}, {"reasoning": "high"}, {"reasoning": "off", "tool_choice": "required"}):
                body = rendered(other, name, model, entries, **parameters)

                check(name, body)
                text = msgspec.json.encode(body).decode()
                assert [secret for secret in secrets if name != provider and secret in text] == []
                assert text.count("And now?") == 1
                assert all(f'"{call.name}"' in text for call in calls)
    assert msgspec.json.encode(entries) == before


def test_every_provider_is_asked_to_go_on() -> None:
    assert {*MODELS, "script"} == {*PROVIDERS, "mine"}
