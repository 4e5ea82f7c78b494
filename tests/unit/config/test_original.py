from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jp.config.layers import resolve
from jp.config.original import adapted
from jp.config.stored import conversation_layers


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            {"assistant": {"model": {"id": {"provider": "anthropic", "name": "claude"}}}},
            {"assistant": {"model": {"id": "anthropic/claude"}}},
        ),
        ({"assistant": {"model": {"id": "google"}}}, {"assistant": {"model": {"id": "google"}}}),
        (
            {"assistant": {"model": {"parameters": {"reasoning": {"effort": "high", "exclude": False}}}}},
            {"assistant": {"model": {"parameters": {"reasoning": "high"}}}},
        ),
        (
            {"assistant": {"model": {"parameters": {"reasoning": "off"}}}},
            {"assistant": {"model": {"parameters": {"reasoning": "off"}}}},
        ),
        ({"assistant": {"request": {"cache": True}}}, {"assistant": {"request": {"cache": "short"}}}),
        ({"assistant": {"request": {"cache": False}}}, {"assistant": {"request": {"cache": "off"}}}),
        ({"assistant": {"request": {"cache": "long"}}}, {"assistant": {"request": {"cache": "long"}}}),
        (
            {"conversation": {"tools": {"a": {"enable": {"state": False, "allow_toggle": "any"}}}}},
            {"conversation": {"tools": {"a": {"enable": False}}}},
        ),
        (
            {
                "conversation": {
                    "tools": {"a": {"enable": "always"}, "b": {"enable": "explicit"}, "c": {"enable": True}}
                }
            },
            {"conversation": {"tools": {"a": {"enable": True}, "b": {"enable": False}, "c": {"enable": True}}}},
        ),
        ({"assistant": 5, "conversation": {"tools": []}}, {"assistant": 5, "conversation": {"tools": []}}),
        ({}, {}),
    ],
)
def test_the_originals_forms_are_rewritten(raw: dict[str, Any], expected: dict[str, Any]) -> None:
    assert adapted(raw) == expected


def test_what_the_original_stored_can_be_resolved() -> None:
    folder = os.environ.get("JP_TEST_DATA")
    if folder is None:
        pytest.skip("JP_TEST_DATA is not set")
    bases = sorted(Path(folder).glob("jp_conversations/*/base_config.json"))
    assert bases

    for path in bases:
        stored = conversation_layers(json.loads(path.read_text(encoding="utf-8")))
        config = resolve(stored.layers).config

        assert config.assistant.model.id is not None
        assert config.assistant.model.id.startswith("anthropic/claude-")
        assert config.assistant.instructions
        assert config.assistant.system_prompt_sections
        assert config.assistant.request.cache == "short"
        assert config.conversation.tools["*"].run is not None
        assert any(error.path[:2] == ("conversation", "tools") for error in stored.ignored)
