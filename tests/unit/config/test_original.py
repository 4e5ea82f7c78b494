from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from jp.config.assignment import parse_cfg
from jp.config.files import read_spelled
from jp.config.layers import UnsupportedSetting, resolve
from jp.config.original import Spelling, adapt, summary_of
from jp.config.schema import FILE, InvalidValueError, is_only_originals
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

    assert adapt(raw)[0] == {"conversation": {"tools": {"a": {"enable": ours}}}}


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
    with pytest.raises(
        ConfigurationError, match=r"is a JP \(Rust\) setting that jp does not support; the nearest known"
    ) as told:
        parse_cfg(f"{key}=x")

    assert told.value.hint.startswith("remove it; known ")


@pytest.mark.parametrize("key", ["interupt", "style.name", "conversation.tools.mine.naem", "providers.mcp.a.b.type"])
def test_a_misspelt_key_is_not_taken_for_one_of_the_originals(key: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        parse_cfg(f"{key}=x")

    assert "original" not in told.value.message


def tool(**settings: Any) -> dict[str, Any]:
    """A configuration of one tool."""
    return {"conversation": {"tools": {"t": settings}}}


def at(key: str, value: Any) -> dict[str, Any]:
    """A configuration that sets one key; its names have no dots."""
    for name in reversed(key.split(".")):
        value = {name: value}
    return value


@pytest.mark.parametrize(
    ("key", "original", "ours"),
    [
        ("assistant.model.id", {"provider": "a", "name": "b"}, "a/b"),
        ("assistant.model.parameters.reasoning", {"effort": "2048"}, 2048),
        ("assistant.model.parameters.reasoning", False, "off"),
        ("assistant.model.parameters.reasoning", True, "auto"),
        ("assistant.model.parameters.reasoning", {"effort": "low", "budget": 1}, {"effort": "low", "budget": 1}),
        ("assistant.request.cache", "soon", "soon"),
        ("assistant.request.cache", 5, 5),
        ("assistant.instructions", ["Be brief"], [{"title": "Be brief"}]),
        (
            "assistant.instructions",
            {"value": ["a"], "strategy": "prepend"},
            {"value": [{"title": "a"}], "strategy": "prepend"},
        ),
        ("assistant.instructions", "a", "a"),
        (
            "assistant.system_prompt_sections",
            ["Be brief", {"content": "x"}],
            [{"content": "Be brief"}, {"content": "x"}],
        ),
        ("conversation.title.generate.model", {"id": "haiku"}, "haiku"),
        ("conversation.title.generate.model", {"id": {"provider": "a", "name": "b"}}, "a/b"),
        ("conversation.title.generate.model", {"id": {"id": {"id": "x"}}}, {"id": {"id": {"id": "x"}}}),
        ("conversation.title.generate.model", 5, 5),
        (
            "conversation.attachments",
            [{"type": "cmd", "path": "ls"}, {"kind": "file", "path": "a b"}],
            ["cmd://ls", "file:a%20b"],
        ),
        ("providers.llm.aliases", {"x": {"provider": "a", "name": "b"}, "y": "x"}, {"x": "a/b", "y": "x"}),
        ("providers.mcp", {"s": {"type": "stdio", "command": "x"}}, {"s": {"command": "x"}}),
        ("editor", {"env_vars": ["VISUAL"]}, {"envs": ["VISUAL"]}),
        (
            "conversation.compaction",
            {"rules": [{"keep_last": "2", "tool_calls": "sres"}]},
            {"keep_last": 2, "profiles": {"default": {"tool_calls": "strip-responses"}}},
        ),
        (
            "conversation.compaction",
            {"rules": {"value": [{"keep_first": 1, "reasoning": "strip"}]}, "profiles": {"a": {}}},
            {"keep_first": 1, "profiles": {"a": {}, "default": {"reasoning": "strip"}}},
        ),
        (
            "conversation.compaction",
            {"rules": [{"keep_last": "5h", "summary": {"model": {"id": "m"}, "instructions": "x"}}]},
            {
                "keep_last": "5h",
                "profiles": {"default": {"summary": {"policy": "summarize", "instructions": "x", "model": "m"}}},
            },
        ),
        ("conversation.compaction", 5, 5),
        ("assistant.instructions", {"value": [], "dedup": "true"}, {"value": [], "dedup": True}),
        ("assistant.model.parameters.stop_words", {"value": ["x"], "dedup": "false"}, {"value": ["x"], "dedup": False}),
        ("style.reasoning.display", True, "full"),
        ("style.reasoning.display", False, "hidden"),
        ("style.reasoning.display", "loud", "loud"),
        ("assistant.request.max_response_bytes", "512 KB", 512 * 1024),
        ("assistant.request.max_response_bytes", "1MiB", 1024**2),
        ("assistant.request.max_response_bytes", "2g", 2 * 1024**3),
        ("assistant.request.max_response_bytes", "900", 900),
        ("assistant.request.max_response_bytes", "1 mile", "1 mile"),
        (
            "template.values",
            {"value": {"a": {"b": 1}}, "strategy": "deep_merge", "discard_when_merged": False},
            {"value": {"a": {"b": 1}}, "strategy": "merge"},
        ),
        (
            "conversation.tools",
            {"value": {"t": {"enable": "on"}}, "strategy": "replace", "*": {"run": "ask"}},
            {"value": {"t": {"enable": True}, "*": {"run": "ask"}}, "strategy": "replace"},
        ),
        (
            "conversation.tools.t.questions",
            {"value": {"q": {"target": "user"}}, "strategy": "deep_merge"},
            {"value": {"q": {"target": "user"}}, "strategy": "merge"},
        ),
        (
            "providers.llm.aliases",
            {"value": {"x": {"provider": "a", "name": "b"}}, "strategy": "merge"},
            {"value": {"x": "a/b"}, "strategy": "merge"},
        ),
        ("template.values", {"value": {"a": 1}, "strategy": "soon"}, {"value": {"a": 1}, "strategy": "soon"}),
        ("editor.cmd", {"program": "vi", "args": ["-c", "set tw=80"]}, "vi -c 'set tw=80'"),
        ("editor.cmd", {"program": "tee -a", "shell": True}, """sh -c 'tee -a "$@"' sh"""),
        ("editor.cmd", {"arguments": []}, {"arguments": []}),
        ("providers.llm.google", {"auth": ["api_key"], "api_key_env": ["A"]}, {"api_key_env": "A"}),
        (
            "providers.llm.mine",
            {"api_key_env": {"work": ["A"]}, "base_url": "u"},
            {"api_key_env": "A", "base_url": "u"},
        ),
        (
            "conversation.tools.t",
            {"access": {"env": [{"name": "A_1", "read": True}], "local_network": False}, "environment": ["B"]},
            {"access": {"local_network": False}, "environment": ["B", "A_1"]},
        ),
        ("conversation.tools.t", {"access": {"env": "all"}}, {"access": {"env": "all"}}),
    ],
)
def test_what_jp_has_in_another_spelling_is_accepted(key: str, original: Any, ours: Any) -> None:
    assert adapt(at(key, original)) == (at(key, ours), ())


@pytest.mark.parametrize(
    ("original", "ours"),
    [
        (True, "full"),
        (False, "off"),
        ("10", 10),
        ("0", "off"),
        ({"truncate": {"lines": 7}}, 7),
        ({"truncate": {"lines": 0}}, "off"),
        ("full", "full"),
        ("", ""),
    ],
)
def test_results_are_shown_as_the_original_shows_them(original: Any, ours: Any) -> None:
    assert adapt(tool(style={"inline_results": original})) == (tool(style={"inline_results": ours}), ())


IGNORED: tuple[tuple[str, Any], ...] = (
    ("assistant.name", "Somebody"),
    ("plugins", {"command": {"x": {"run": "deny"}}}),
    ("interrupt", {"streaming": {"action": "stop"}}),
    ("conversation.default_id", "last"),
    ("conversation.inquiry", {"assistant": {}}),
    ("conversation.labels", {"a": {"value": {"cmd": "date"}}}),
    ("editor.inline", {"edit_mode": "vi"}),
    ("style.typewriter", {"text_delay": "1ms"}),
    ("style.code.copy_link", "osc8"),
    ("style.reasoning.background", 236),
    ("conversation.tools.t.style.results_file_link", "off"),
    ("conversation.tools.t.style.parameters", "a-command"),
    ("conversation.tools.t.cancellation_response", "x"),
    ("conversation.tools.t.style.joins_reasoning", True),
    ("conversation.tools.t.style.print_stderr", True),
    ("loader", {"reset": "none"}),
    ("providers.llm.anthropic.subscription_flow", "acp"),
    ("providers.llm.openai.codex_base_url", "https://codex.example.com"),
    ("assistant.request.max_response_bytes", "disabled"),
    ("assistant.request.max_response_bytes", False),
    ("assistant.model.parameters.service_tier", "flex"),
    ("providers.llm.openai.base_url_env", "OPENAI_BASE_URL"),
)


@pytest.mark.parametrize(("key", "value"), IGNORED)
def test_what_only_the_original_has_is_ignored_and_listed(key: str, value: Any) -> None:
    adapted, unsupported = adapt(at(key, value))

    assert [(".".join(one.path), one.value, one.reading) for one in unsupported] == [(key, value, "")]
    assert read_spelled(at(key, value), FILE).unsupported == unsupported
    assert adapted == (at(key.rpartition(".")[0], {}) if "." in key else {})


@pytest.mark.parametrize(
    ("key", "original", "ours", "reading"),
    [
        ("style.reasoning.display", "timer", "hidden", "`hidden`"),
        ("style.reasoning.display", "summary", "full", "`full`"),
        ("style.reasoning.display", "80", "full", "`full`"),
        ("assistant.request.cache", "5m", "short", "`short`"),
        ("assistant.request.cache", "2 hours", "long", "`long`"),
        ("assistant.model.parameters", {"seed": 5}, {"other": {"seed": 5}}, "`assistant.model.parameters.other.seed`"),
        ("assistant.model.parameters", {"seed": 5, "other": {"seed": 6, "x": 1}},
         {"other": {"seed": 6, "x": 1}}, "`assistant.model.parameters.other.seed`"),
        ("conversation.tools.t.questions.q.target", {"model": {}}, "assistant", "`assistant`"),
        ("style.reasoning.display", {"truncate": {"characters": 80}}, "full", "`full`"),
        ("providers.llm.google", {"api_key_env": ["A", "B"]}, {"api_key_env": "A"}, "`A`"),
        ("providers.llm.openai", {"api_key_env": {"a": "A", "b": ["B", "C"]}, "auth": ["api_key:b"]},
         {"api_key_env": "B"}, "`B`"),
    ],
)  # fmt: skip
def test_what_jp_reads_as_something_else_is_listed(key: str, original: Any, ours: Any, reading: str) -> None:
    adapted, unsupported = adapt(at(key, original))

    assert adapted == at(key, ours)
    assert [one.reading for one in unsupported] == [reading]


@pytest.mark.parametrize(
    ("raw", "lost"),
    [
        (at("conversation.title.generate.model", {"id": "m", "parameters": {"a": 1}}), "parameters"),
        (at("conversation.title.generate.model", {"parameters": {"a": 1}}), "parameters"),
        (at("providers.llm.aliases", {"x": {"id": "a/b", "parameters": {"a": 1}}}), "parameters"),
        (at("assistant.model.parameters.reasoning", {"effort": "low", "exclude": True}), "exclude"),
        (at("assistant.model.parameters.reasoning", {"exclude": True}), "exclude"),
        (at("conversation.compaction", {"rules": [{}, {}]}), "rules"),
        (at("conversation.compaction", {"rules": [{"keep_first": "last"}]}), "rules"),
        (at("conversation.compaction", {"rules": [{"keep": 1}]}), "rules"),
        (at("conversation.compaction", {"rules": [{}], "profiles": {"default": {}}}), "rules"),
        (at("conversation.compaction", {"rules": [{"summary": {"context": 1}}]}), "context"),
        (at("editor", {"env_vars": ["A"], "envs": ["B"]}), "env_vars"),
        (at("assistant.system_prompt", {"value": "x", "strategy": "append", "dedup": "block"}), "dedup"),
        (at("conversation.compaction", {"rules": [{"reasoning": {"over": "1MB", "policy": "strip"}}]}), "rules"),
        (at("conversation.compaction", {"rules": [{"summary": {"text": "done"}}]}), "rules"),
        (at("conversation.tools.t.enable", {"allow_toggle": "never"}), "allow_toggle"),
        (at("conversation.tools.t.enable", {"state": False, "allow_toggle": "never"}), "allow_toggle"),
        (at("conversation.tools.t.access.env", [{"name": "AWS_*", "read": True}]), "0"),
        (at("conversation.tools.t.access.env", [{"name": "A", "read": True}, {"name": "B"}]), "1"),
        (at("providers.llm.aliases", {"value": {"a": "b/c"}, "strategy": "keep"}), "strategy"),
        (
            at("providers.llm.aliases", {"value": {"a": "b/c"}, "strategy": "merge", "discard_when_merged": True}),
            "discard_when_merged",
        ),
        (at("providers.llm.anthropic.auth", ["subscription", "api_key:work"]), "auth"),
    ],
)
def test_a_part_that_jp_does_not_have_is_ignored_and_the_rest_is_read(raw: dict[str, Any], lost: str) -> None:
    read = read_spelled(raw, FILE)

    assert [one.path[-1] for one in read.unsupported] == [lost]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (at("providers.mcp.s.checksum", {"value": "x"}), "cannot verify a program"),
        (at("providers.llm.openai.base_url_env", "MY_PROXY"), "takes no address from a variable"),
        (at("providers.mcp.s.type", "sse"), "expects 'stdio', got 'sse'"),
        (at("assistant.model.parameters", {"temprature": 1}), "unknown key 'assistant.model.parameters.temprature'"),
        (at("assistant.model.parameters", 1), "expects a table"),
        (at("conversation.tools.t.rnu", "ask"), "unknown key"),
        (at("conversation.tools.t.run", "always"), "expects one of"),
        (at("conversation.tools.t.access.fs", [{"path": "a", "raed": True}]), "unknown key"),
        (at("style.name", "x"), "unknown key 'style.name'"),
        (at("providers.llm.anthropic.auth", ["subscription"]), "allows no API key"),
        (at("conversation.tools", {"value": {}, "strategy": "keep"}), "strategy = 'keep' is a setting of the original"),
        (
            at("providers.mcp", {"value": {}, "strategy": "merge", "discard_when_merged": True}),
            "discard_when_merged = true is a setting of the original",
        ),
        (
            {
                **tool(access={"fs": [{"path": "src", "write": False}, {"path": ".", "write": True}]}),
                "assistant": {"name": "x"},
            },
            "jp takes the last rule that matches",
        ),
    ],
)
def test_what_must_not_be_ignored_is_an_error(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read_spelled(raw, FILE)


@pytest.mark.parametrize(
    ("key", "original", "ours", "refused"),
    [
        ("providers.mcp.s", {"checksum": 1, "command": "x"}, {"command": "x"}, "checksum"),
        ("providers.llm.openai", {"base_url_env": "A", "store": False}, {"store": False}, "base_url_env"),
        ("providers.llm.openai", {"auth": ["subscription"], "store": False}, {"store": False}, "auth"),
    ],
)
def test_a_conversation_goes_on_without_what_must_not_be_ignored(
    key: str, original: Any, ours: Any, refused: str
) -> None:
    errors: list[InvalidValueError] = []

    adapted, _ = adapt(at(key, original), refuse=errors.append)

    assert adapted == at(key, ours)
    assert [error.path[-1] for error in errors] == [refused]


@pytest.mark.parametrize(
    ("original", "ours"),
    [
        ([{"path": "a", "read": True}], [{"path": "a", "read": True}]),
        ([{"path": "a", "write": True, "execute": True}], [{"path": "a", "write": True}]),
        ([{"path": "a", "create": True, "update": True, "delete": True}], [{"path": "a", "write": True}]),
        ([{"path": "a", "create": True}], [{"path": "a", "write": False}]),
        ([{"path": "a", "write": True, "delete": False}], [{"path": "a", "write": False}]),
        ([{"path": "a/b", "external": True}, {"path": "./"}, 5], [{"path": "./"}, 5, {"path": "a/b"}]),
        (
            {"value": [{"path": "a", "execute": True}], "strategy": "replace"},
            {"value": [{"path": "a"}], "strategy": "replace"},
        ),
    ],
)
def test_rules_for_files_allow_no_more_than_the_originals(original: Any, ours: Any) -> None:
    assert adapt(tool(access={"fs": original}))[0] == tool(access={"fs": ours})


def test_a_table_that_replaces_all_is_read_like_any_other() -> None:
    raw = {"conversation": {"tools": {"value": {"t": {"enable": "on", "format": "ask"}}, "strategy": "replace"}}}

    adapted, unsupported = adapt(raw)

    assert adapted == {"conversation": {"tools": {"value": {"t": {"enable": True}}, "strategy": "replace"}}}
    assert [one.path for one in unsupported] == [("conversation", "tools", "t", "format")]


def test_what_is_unset_stays_unset() -> None:
    raw = at("conversation.title.generate.model", None)

    assert adapt(raw) == (raw, ())


def test_settings_are_named_by_their_kind_and_number() -> None:
    raw: dict[str, Any] = {
        "assistant": {"name": "x", "model": {"parameters": {"seed": 5}}},
        "conversation": {
            "tools": {name: {"style": {"results_file_link": "off"}} for name in ("a", "b")},
            "title": {"generate": {"model": {"id": "m", "parameters": {}}}},
        },
    }
    one, two, unknown = (
        UnsupportedSetting(path=(*path,), value="f.toml") for path in (("extends", "0"), ("extends", "1"), ("x",))
    )
    two = UnsupportedSetting(path=two.path, value="g.toml")

    assert summary_of(adapt(raw)[1]) == (
        "assistant.model.parameters.seed, assistant.name, conversation.title.generate.model.parameters, "
        "conversation.tools.*.style.results_file_link (2)"
    )
    aliases: dict[str, Any] = {name: {"id": "a/b", "parameters": {}} for name in ("a", "b")}
    assert summary_of(adapt(at("providers.llm.aliases", aliases))[1]) == "providers.llm.aliases.*.parameters (2)"
    many = [UnsupportedSetting(path=(f"k{number:02}",), value=1) for number in range(50)]
    assert summary_of(many).endswith(", k38, k39, 10 more kinds")
    assert summary_of([one, unknown]) == "x, the missing file 'f.toml'"
    assert summary_of([one, one, two]) == "2 missing files"


PAGE = (Path(__file__).parents[3] / "docs" / "from-jp.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(.*?)` \| `(.*?)` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("original", "ours"), ROWS)
def test_the_page_says_what_becomes_of_a_setting(original: str, ours: str) -> None:
    read = read_spelled(tomllib.loads(original), FILE)

    assert len(ROWS) > 20
    assert read.data == tomllib.loads(ours)


def test_the_page_names_settings_that_jp_ignores() -> None:
    (sentence,) = re.findall(r"^What jp does not have is ignored: (.*)$", PAGE, re.MULTILINE)
    named = re.findall(r"`(.*?)`", sentence)

    assert len(named) > 5
    assert [key for key in named if not is_only_originals((*key.split("."),))] == []
