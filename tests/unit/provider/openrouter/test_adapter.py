from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chat_oracle import assert_accepted
from jp.config.entries import OpenrouterConfig
from jp.conversation.entries import JsonObject
from jp.conversation.resource import Resource
from jp.conversation.thread import (
    AssistantReasoning,
    AssistantText,
    Parameters,
    Thread,
    ToolCall,
    ToolDefinition,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)
from jp.provider.base import WireRequest
from jp.provider.openrouter.vendor import create

CLAUDE, MINI = "anthropic/claude-haiku-4.5", "openai/gpt-5-mini"
HI = Thread(model=CLAUDE, system=("Be brief.",), tools=(), events=(UserText(text="Hi", turn=0),), conversation="jp-c1")
RUN = ToolDefinition(name="run", description="", parameters={"type": "object"})


def request(thread: Thread = HI, model: str = CLAUDE, **parameters: Any) -> WireRequest:
    given = replace(thread, model=model, parameters=Parameters(**parameters))
    return create(OpenrouterConfig()).render(given)


def test_a_request_says_where_a_conversation_belongs_and_what_is_kept() -> None:
    marker = {"cache_control": {"type": "ephemeral"}}

    assert request().body == {
        "model": CLAUDE,
        "stream": True,
        "session_id": "jp-c1",
        "provider": {"data_collection": "deny"},
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Be brief.", **marker}]},
            {"role": "user", "content": [{"type": "text", "text": "Hi", **marker}]},
        ],
    }


@pytest.mark.parametrize(
    ("model", "policy", "marker"),
    [
        (CLAUDE, "short", {"type": "ephemeral"}),
        (CLAUDE, "long", {"type": "ephemeral", "ttl": "1h"}),
        (CLAUDE, "off", None),
        ("google/gemini-2.5-pro", "long", {"type": "ephemeral"}),
        (MINI, "long", None),
    ],
)
def test_who_wants_to_be_told_what_to_keep_is(model: str, policy: Any, marker: JsonObject | None) -> None:
    body = request(model=model, cache=policy).body

    assert body["messages"][-1]["content"][-1].get("cache_control") == marker
    assert body.get("session_id") == (None if policy == "off" else "jp-c1")


def test_an_app_is_named_where_it_has_a_name() -> None:
    settings = OpenrouterConfig(app_name="docs bot", app_referrer="https://example.org")

    assert create(settings).render(HI).headers == (("x-title", "docs bot"), ("http-referer", "https://example.org"))
    assert request().headers == ()


@pytest.mark.parametrize(
    ("model", "reasoning", "sent", "omitted"),
    [
        (CLAUDE, None, True, ()),
        (CLAUDE, "low", False, (f"'temperature' not sent: {CLAUDE!r} takes none while it reasons",)),
        (MINI, None, False, (f"'temperature' not sent: {MINI!r} takes none",)),
        ("acme/one", "low", True, ()),
    ],
)
def test_a_temperature_is_sent_to_who_takes_it(
    model: str,
    reasoning: Any,
    *,
    sent: bool,
    omitted: tuple[str, ...],
) -> None:
    found = request(model=model, reasoning=reasoning, temperature=0.5, max_tokens=50)

    assert ("temperature" in found.body) is sent
    assert found.omitted == omitted
    assert found.body["max_tokens"] == 50


def test_a_call_is_forced_without_reasoning_or_asked_for_in_words() -> None:
    offered = replace(HI, tools=(RUN,))
    forced = request(offered, reasoning="high", tool_choice="run").body
    asked = request(offered, "anthropic/claude-opus-5.5", reasoning="high", tool_choice="run").body

    assert (forced["tool_choice"]["function"]["name"], forced["reasoning"]) == ("run", {"enabled": False})
    assert ("tool_choice" in asked, asked["reasoning"]) == (False, {"effort": "high"})
    assert asked["messages"][-1]["content"][-1]["text"] == "Call the tool 'run' now."


DETAILS: list[JsonObject] = [
    {"type": "reasoning.summary", "summary": "hm", "format": "openai-responses-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "format": "openai-responses-v1", "index": 0},
]


def answered(metadata: JsonObject | None) -> list[ViewEvent]:
    return [
        UserText(text="q", turn=0),
        AssistantReasoning(text="hm", turn=0, metadata=metadata),
        AssistantText(text="I look.", turn=0),
        ToolCall(call_id="c1", name="run", arguments={}, turn=0, origin="c1"),
        ToolCall(call_id="c2", name="run", arguments={}, turn=0, origin="c2"),
        ToolResult(call="c1", call_id="c1", name="run", content=(), turn=0),
        ToolResult(call="c2", call_id="c2", name="run", content=(), turn=0),
    ]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (
            {"provider": "openrouter", "model": MINI, "reasoning_details": DETAILS},
            {"content": "I look.", "reasoning_details": DETAILS},
        ),
        (
            {"provider": "openrouter", "model": "openai/gpt-5-mini-2025-08-07", "reasoning_details": DETAILS},
            {"content": "I look.", "reasoning_details": DETAILS},
        ),
        ({"provider": "openrouter", "model": MINI}, {"content": "I look.", "reasoning": "hm"}),
        (
            {"provider": "openrouter", "model": CLAUDE, "reasoning_details": DETAILS},
            {"content": "I look."},
        ),
        ({"provider": "openai", "model": MINI, "item_id": "rs"}, {"content": "I look."}),
        (None, {"content": "I look."}),
    ],
)
def test_reasoning_goes_back_to_who_made_it_as_it_came(metadata: JsonObject | None, expected: JsonObject) -> None:
    body = request(replace(HI, events=tuple(answered(metadata))), MINI).body
    assert_accepted(body)
    answer: JsonObject = body["messages"][2]

    assert {name: value for name, value in answer.items() if name not in {"role", "tool_calls"}} == expected
    assert [(call["id"], call["index"], call["type"]) for call in answer["tool_calls"]] == [
        ("c1", 0, "function"),
        ("c2", 1, "function"),
    ]


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("application/pdf", "file"),
        ("image/webp", "image_url"),
        ("audio/wav", "input_audio"),
        ("video/mp4", "video_url"),
    ],
)
def test_files_of_many_types_are_sent(media_type: str, kind: str) -> None:
    resource = Resource(uri="u:1", mime_type=media_type, blob=b"x")
    attached = replace(HI, events=(UserResource(resource=resource, turn=0), *HI.events))
    parts = request(attached, "google/gemini-2.5-flash").body["messages"][1]["content"]

    assert [part["type"] for part in parts] == ["text", kind, "text"]


def test_where_it_is_allowed_a_request_may_go_to_vendors_that_keep_it() -> None:
    assert "provider" not in create(OpenrouterConfig(store=True)).render(HI).body
    kept = request(other={"provider": {"order": ["a"], "data_collection": "allow"}}).body
    assert kept["provider"] == {"order": ["a"], "data_collection": "deny"}
