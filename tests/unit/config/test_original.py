from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jp.config.assignment import parse_cfg
from jp.config.layers import resolve
from jp.config.original import Spelling, adapt
from jp.config.sources import OriginalSettings, conversation_layers, in_jps_spelling
from jp.errors import ConfigurationError


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
        ({"assistant": 5, "conversation": {"tools": []}}, {"assistant": 5, "conversation": {"tools": []}}),
        ({}, {}),
    ],
)
def test_the_originals_forms_are_rewritten(raw: dict[str, Any], expected: dict[str, Any]) -> None:
    assert adapt(raw)[0] == expected


@pytest.mark.parametrize(
    ("original", "ours"),
    [
        ({"state": False, "allow_toggle": "any"}, False),
        ({"state": True, "allow_toggle": "if_named"}, True),
        ({"state": True, "allow_toggle": "never"}, "always"),
        ({"state": False, "allow_toggle": "never"}, False),
        ({"state": False, "allow_toggle": "if_named"}, "explicit"),
        ({"state": False, "allow_toggle": "if_named_or_group"}, "explicit"),
        ("on", True),
        ("off", False),
        ("always", "always"),
        ("explicit", "explicit"),
        (True, True),
    ],
)
def test_what_the_original_says_of_offering_a_tool(original: Any, ours: Any) -> None:
    raw = {"conversation": {"tools": {"a": {"enable": original}}}}

    assert adapt(raw) == ({"conversation": {"tools": {"a": {"enable": ours}}}}, ())


def attached(*declarations: Any, **form: Any) -> dict[str, Any]:
    """A configuration that declares attachments."""
    return {"conversation": {"attachments": {"value": list(declarations), **form} if form else list(declarations)}}


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("file:src/**/*.rs", "file:src/**/*.rs"),
        ("file:///docs/a.md", "file:docs/a.md"),
        ("file://docs/a.md?exclude=true", "file:docs/a.md?exclude=true"),
        ("cmd://date?arg=%2B%25Y", "cmd://date?arg=%2B%25Y"),
        ("bear://get/5", "bear://get/5"),
        (
            {"type": "cmd", "path": "rg", "params": {"args": ["--files", "a b"], "description": "All files"}},
            "cmd://rg?arg=--files&arg=a%20b&description=All%20files",
        ),
        ({"type": "file", "path": "docs/*.md"}, "file:docs/*.md"),
        ({"type": "gh", "path": "pull/5/diff", "params": {"no_defaults": True}}, "gh://pull/5/diff?no_defaults=true"),
        ({"type": "cmd", "path": "ls", "params": None}, "cmd://ls"),
        ({"kind": "cmd"}, {"kind": "cmd"}),
    ],
)
def test_attachments_become_declarations(declared: Any, expected: Any) -> None:
    spelled = Spelling().take(attached(declared))

    assert spelled == attached(expected)
    assert Spelling().take(spelled) == spelled


def test_a_list_keeps_its_strategy_and_nothing_that_only_the_original_knows() -> None:
    form = {"strategy": "replace", "dedup": True, "discard_when_merged": True}

    assert Spelling().take(attached("file:///a", **form, unknown=1)) == attached("file:a", **form)
    assert Spelling().take({"conversation": {"attachments": 5}}) == {"conversation": {"attachments": 5}}


def test_models_are_known_by_the_short_names_that_came_with_them() -> None:
    spelling = Spelling()
    aliases = {"quick": {"provider": "google", "name": "flash"}, "slow": "google/pro"}
    spelling.take({"providers": {"llm": {"aliases": aliases}}})

    def model(identity: Any) -> Any:
        return spelling.take({"assistant": {"model": {"id": identity}}})["assistant"]["model"]["id"]

    whole = {"provider": "a", "name": "b"}
    assert [model(name) for name in ("quick", "slow", "other", whole)] == ["google/flash", "google/pro", "other", whole]
    assert spelling.take({"providers": {"llm": {"aliases": []}}}) == {"providers": {"llm": {"aliases": []}}}


@pytest.mark.parametrize(
    ("base", "beside", "is_respelled"),
    [
        ({"inherit": True}, False, True),
        ({}, True, True),
        ({}, False, False),
    ],
)
def test_only_the_originals_base_configuration_is_spelled_anew(
    base: dict[str, Any],
    beside: Any,
    is_respelled: Any,
) -> None:
    raw = {**base, **attached("file:///a")}

    spelled = in_jps_spelling(raw, beside_original=beside)

    assert spelled == {**base, **attached("file:a" if is_respelled else "file:///a")}


def test_settings_follow_the_deltas() -> None:
    settings = OriginalSettings(attached("file:///a"))
    before = (settings.provider, settings.model, settings.attachments)
    settings.change({"assistant": {"model": {"id": {"provider": "anthropic", "name": "claude"}}}})
    settings.change(attached("file:///b"))
    settings.change({"assistant": {"name": "JP"}, "conversation": {"tools": {}}})
    settings.change({"conversation": {"attachments": {"7": "file:c"}}})  # there is no eighth
    after = (settings.provider, settings.model, settings.attachments)
    settings.change({"assistant": {"model": {"id": "unknown"}}})

    assert before == ("", "", ("file:a",))
    assert after == ("anthropic", "claude", ("file:a", "file:b"))
    assert (settings.provider, settings.model) == ("", "")


def test_what_the_original_stored_can_be_resolved() -> None:
    folder = os.environ.get("JP_TEST_DATA")
    if not folder:
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
        assert any(one.path[:2] == ("conversation", "tools") for layer in stored.layers for one in layer.unsupported)
        assert not stored.ignored


@pytest.mark.parametrize(
    "key",
    [
        "interrupt.streaming.action",
        "assistant.name",
        "conversation.compaction.rules",
        "conversation.tools.mine.format",
        "style.typewriter.text_delay",
        "providers.mcp.mine.type",
    ],
)
def test_a_setting_that_only_the_original_has_is_told_to_be_one(key: str) -> None:
    with pytest.raises(ConfigurationError, match="which the original JP has and jp has not; the nearest known") as told:
        parse_cfg(f"{key}=x")

    assert told.value.hint.startswith("Take it out. Known ")


@pytest.mark.parametrize("key", ["interupt", "style.name", "conversation.tools.mine.naem", "providers.mcp.a.b.type"])
def test_a_misspelt_key_is_not_taken_for_one_of_the_originals(key: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        parse_cfg(f"{key}=x")

    assert "original" not in told.value.message
