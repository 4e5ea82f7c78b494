from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from jp.cli.terminal.wording import worded
from jp.config.entries import ServerConfig
from jp.config.model import AppConfig, LlmConfig, RequestConfig
from jp.conversation.thread import Thread, UserText
from jp.errors import AuthenticationError, ConfigurationError, ExitCode
from jp.provider.anthropic.vendor import AnthropicAdapter
from jp.provider.registry import PROVIDERS, ModelId, create_provider, limits_for, misspelled_servers, parse_model_id

ALIASES = {"fast": "quick", "quick": "anthropic/claude-haiku-4-5", "a": "b", "b": "a", "lost": "nowhere"}
SETTINGS = LlmConfig(aliases=ALIASES, servers={"mine": ServerConfig(base_url="http://127.0.0.1:1/v1")})
HAIKU = ModelId("anthropic", "claude-haiku-4-5")


def parsed(text: str) -> str:
    return str(parse_model_id(text, SETTINGS))


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("anthropic/claude-haiku-4-5", "anthropic/claude-haiku-4-5"),
        ("anthropic/some/model", "anthropic/some/model"),
        ("script/demo", "script/demo"),
        ("quick", "anthropic/claude-haiku-4-5"),
        ("fast", "anthropic/claude-haiku-4-5"),
        ("mine/some/model", "mine/some/model"),
    ],
)
def test_a_model_is_a_provider_and_a_name_or_an_alias(text: str, model: str) -> None:
    assert parsed(text) == model


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("a", "the alias 'a' leads in a circle: a → b → a", "provider/name"),
        ("lost", "'nowhere' is neither a model nor an alias", "provider/name"),
        ("fasr", "'fasr' is neither a model nor an alias", "did you mean 'fast'?"),
        ("claude-opus-5-5", "'claude-opus-5-5' is neither", "did you mean 'anthropic/claude-opus-5-5'"),
        ("", "'' is neither a model nor an alias", "provider/name"),
        ("anthropic/", "'anthropic/' is not a model", "provider/name"),
        ("/x", "'/x' is not a model", "provider/name"),
        ("antropic/x", "there is no provider 'antropic'", "did you mean 'anthropic'?"),
        ("mien/x", "there is no provider 'mien'", "did you mean 'mine'?"),
        (
            "zzz/x",
            "there is no provider 'zzz'",
            "'mine'; declare another server: `jp config set --in user providers.llm.zzz.base_url=",
        ),
    ],
)
def test_what_is_no_model_is_told_what_would_be(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parsed(text)

    assert message in caught.value.message
    assert hint in worded(caught.value.hint)
    assert caught.value.exit_code is ExitCode.CONFIGURATION


def test_a_missing_key_is_named_before_anything_else() -> None:
    with pytest.raises(AuthenticationError, match="'ANTHROPIC_API_KEY' is not set") as caught:
        create_provider(AppConfig(), HAIKU, environ={"ANTHROPIC_API_KEY": " "}, root=Path())

    assert worded(caught.value.hint) == "store one with `jp keys set anthropic`, or export ANTHROPIC_API_KEY=…"
    assert caught.value.exit_code is ExitCode.AUTHENTICATION


def test_rendering_needs_no_key() -> None:
    provider = create_provider(AppConfig(), HAIKU, environ={}, root=Path(), needs_key=False)
    thread = Thread(model=HAIKU.name, system=(), tools=(), events=(UserText(text="Hi", turn=0),))

    assert provider.id == "anthropic"
    assert provider.renderer == AnthropicAdapter.renderer
    assert provider.render(thread).sections.messages == ((b'"user"', b'{"text":"Hi","type":"text"}'),)


@pytest.mark.parametrize("key", ["sk-ö", "sk-\x00", "sk-a\nsk-b"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(key: str) -> None:
    config = msgspec.convert({"providers": {"llm": {"anthropic": {"api_key_env": "MY_KEY"}}}}, AppConfig)

    with pytest.raises(ConfigurationError, match="the key in 'MY_KEY' has characters") as caught:
        create_provider(config, HAIKU, environ={"MY_KEY": key}, root=Path())

    assert "sk-" not in caught.value.message + caught.value.hint


def test_an_unknown_provider_cannot_be_created() -> None:
    with pytest.raises(ConfigurationError, match="there is no provider 'x'"):
        create_provider(AppConfig(), ModelId("x", "y"), environ={}, root=Path())


def test_a_scenario_is_looked_for_from_the_root(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"demo\.toml"):
        create_provider(AppConfig(), ModelId("script", "demo"), environ={}, root=tmp_path)


def test_every_provider_of_this_version_is_known_to_the_registry() -> None:
    assert {parse_model_id(f"{name}/x", LlmConfig()).provider for name in PROVIDERS} == set(PROVIDERS)


@pytest.mark.parametrize(
    ("kind", "seconds", "patience"),
    [("anthropic", 60, 60), ("ollama", 60, 600), ("llamacpp", 60, 600), ("ollama", 5, 5), ("ollama", 0, None)],
)
def test_a_server_at_home_gets_more_time_where_nothing_else_is_set(
    kind: str, seconds: int, patience: float | None
) -> None:
    limits = limits_for(kind, "https://api.test", RequestConfig(stream_idle_timeout_secs=seconds))

    assert limits.idle_timeout == patience


@pytest.mark.parametrize(
    ("kind", "base_url", "limit"),
    [
        ("anthropic", "https://api.anthropic.com", 120),
        ("openai-compatible", "http://10.0.0.7:8000/v1", 120),
        ("openai-compatible", "http://127.0.0.1.nip.test/v1", 120),
        ("openai-compatible", "http://[broken", 120),
        ("openai-compatible", "http://localhost:8000/v1", None),
        ("openai-compatible", "http://127.9.9.9:8000", None),
        ("openai-compatible", "http://[::1]:8000", None),
        ("ollama", "http://10.0.0.7:11434", None),
        ("llamacpp", "https://llama.test", None),
    ],
)
def test_only_servers_of_this_machine_may_take_any_time_for_the_first_byte(
    kind: str, base_url: str, limit: float | None
) -> None:
    assert limits_for(kind, base_url, RequestConfig()).first_byte_timeout == limit
    assert limits_for(kind, base_url, RequestConfig(first_byte_timeout_secs=7)).first_byte_timeout == 7
    assert limits_for(kind, base_url, RequestConfig(first_byte_timeout_secs=0)).first_byte_timeout is None


@pytest.mark.parametrize(
    ("name", "kind", "provider", "is_slip"),
    [
        ("anthropc", "openai-compatible", "anthropic", True),
        ("opneai", "openai-compatible", "openai", True),
        ("anthropc", "openai-compatible", "openai", False),
        ("anthropc", "anthropic", "anthropic", False),
        ("openai-eu", "openai-compatible", "openai", False),
        ("openai2", "openai-compatible", "openai", False),
        ("groq", "openai-compatible", "google", False),
        ("anthropc", "openai-compatible", "anthropc", False),
    ],
)
def test_a_server_that_is_named_like_a_provider_but_for_a_slip_is_found(
    name: str, kind: str, provider: str, *, is_slip: bool
) -> None:
    settings = msgspec.convert({"servers": {name: {"kind": kind, "base_url": "http://127.0.0.1:1"}}}, LlmConfig)

    assert misspelled_servers(settings, provider) == ((name,) if is_slip else ())
