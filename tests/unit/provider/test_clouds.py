from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jp.config.assignment import read_partial
from jp.config.entries import AnthropicConfig, CloudAccount, ServerConfig
from jp.config.layers import config_of
from jp.config.model import AppConfig
from jp.errors import ConfigurationError
from jp.provider.catalogue import model_facts
from jp.provider.clouds import create_cloud, with_environment
from jp.provider.keys import FoundKey
from jp.provider.registry import ModelId, cloud_of, create_account, create_provider, key_variables, vendor_of, vendors
from jp.provider.vendor import Cloud

PAGE = Path(__file__, "../../../../docs/providers.md").resolve()
SECTION = PAGE.read_text(encoding="utf-8").partition("\n## Clouds\n")[2]


@pytest.mark.parametrize("example", re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL))
def test_every_example_of_the_page_is_a_cloud(example: str) -> None:
    settings = config_of(read_partial(tomllib.loads(example)))
    ((name, _),) = settings.providers.llm.servers.items()
    provider = create_provider(settings, ModelId(name, "m"), environ={"AZURE_OPENAI_API_KEY": "k"}, root=Path())

    assert provider.id == name


def account(**settings: Any) -> CloudAccount:
    return msgspec.convert({"transport": "sdk", **settings}, CloudAccount)


def config(**accounts: dict[str, Any]) -> AppConfig:
    return config_of(read_partial({"providers": {"llm": accounts}}))


@pytest.mark.parametrize(("kind", "platform"), [(vendor.id, one) for vendor in vendors() for one in vendor.clouds])
def test_a_kind_is_where_its_sdk_knows_it_to_be(kind: str, platform: str) -> None:
    assert create_cloud(account(platform=platform), "work", vendor=vendor_of(kind)).platform == platform


def test_a_kind_that_is_in_one_cloud_need_not_say_which() -> None:
    assert create_cloud(account(), "work", vendor=vendor_of("openai")).platform == "azure"
    assert create_cloud(account(), "work", vendor=vendor_of("google")).platform == "vertex"


@pytest.mark.parametrize(
    ("kind", "settings", "message", "hint"),
    [
        ("anthropic", {}, "'providers.llm.work.platform' is not set", "'bedrock' or 'vertex' or 'foundry'"),
        ("anthropic", {"platform": "azure"}, "'providers.llm.work.platform' is 'azure'", "'bedrock' or"),
        ("google", {"platform": "bedrock"}, "no models of kind 'google'", "set it to 'vertex'"),
        ("openai-compatible", {}, "no cloud has models of kind 'openai-compatible'", "work.kind"),
    ],
)
def test_a_cloud_that_cannot_be_is_an_error(kind: str, settings: dict[str, str], message: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        create_cloud(account(**settings), "work", vendor=vendor_of(kind))

    assert message in raised.value.message
    assert hint in str(raised.value.hint)


@pytest.mark.parametrize("settings", [AnthropicConfig, ServerConfig])
def test_an_address_of_the_vendor_s_is_none_of_a_cloud(settings: type[CloudAccount]) -> None:
    given = {"transport": "sdk", "platform": "bedrock", "base_url": "https://a.example"}

    with pytest.raises(ConfigurationError, match=r"'providers.llm.work.base_url' is set") as raised:
        create_cloud(msgspec.convert(given, settings), "work", vendor=vendor_of("anthropic"))

    assert "`providers.llm.work.endpoint`" in str(raised.value.hint)


def cloud(kind: str, platform: str, **settings: str) -> Cloud:
    return create_cloud(account(platform=platform, **settings), "work", vendor=vendor_of(kind))


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        (cloud("anthropic", "bedrock"), {"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}, {"region": "a"}),
        (cloud("anthropic", "bedrock"), {"AWS_DEFAULT_REGION": "b"}, {"region": "b"}),
        (cloud("anthropic", "bedrock"), {}, {"region": None, "endpoint": None}),
        (cloud("anthropic", "bedrock", region="own"), {"AWS_REGION": "a"}, {"region": "own"}),
        (
            cloud("anthropic", "vertex"),
            {"CLOUD_ML_REGION": "global", "ANTHROPIC_VERTEX_PROJECT_ID": "p"},
            {"region": "global", "project": "p"},
        ),
        (
            cloud("anthropic", "foundry"),
            {"ANTHROPIC_FOUNDRY_RESOURCE": "r"},
            {"endpoint": "https://r.services.ai.azure.com"},
        ),
        (
            cloud("anthropic", "foundry"),
            {"ANTHROPIC_FOUNDRY_RESOURCE": "r", "ANTHROPIC_FOUNDRY_BASE_URL": "https://f.example/anthropic/"},
            {"endpoint": "https://f.example/anthropic"},
        ),
        (
            cloud("openai", "azure"),
            {"AZURE_OPENAI_ENDPOINT": "https://r.example/", "OPENAI_API_VERSION": "2025-04-01-preview"},
            {"endpoint": "https://r.example", "api_version": "2025-04-01-preview"},
        ),
        (cloud("google", "vertex"), {"GOOGLE_CLOUD_PROJECT": "p"}, {"region": "global", "project": "p"}),
        (cloud("google", "vertex"), {"GOOGLE_CLOUD_LOCATION": "europe-west1"}, {"region": "europe-west1"}),
    ],
)
def test_the_environment_says_what_the_settings_do_not(
    given: Cloud, environ: dict[str, str], expected: dict[str, str | None]
) -> None:
    found = with_environment(given, environ)

    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("given", "environ", "setting"),
    [
        (cloud("openai", "azure"), {}, "endpoint"),
        (cloud("anthropic", "foundry"), {"AZURE_OPENAI_ENDPOINT": "https://r.example"}, "endpoint"),
        (cloud("anthropic", "vertex"), {}, "region"),
        (cloud("google", "vertex", endpoint="https://proxy.example"), {}, "project"),
    ],
)
def test_what_neither_says_is_an_error(given: Cloud, environ: dict[str, str], setting: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'providers.llm.work.{setting}' is not set"):
        with_environment(given, environ)


def test_two_ways_to_sign_in_are_one_too_many() -> None:
    with pytest.raises(ConfigurationError, match="AWS_BEARER_TOKEN_BEDROCK"):
        with_environment(cloud("anthropic", "bedrock", profile="dev"), {"AWS_BEARER_TOKEN_BEDROCK": "k"})


def test_an_account_is_in_a_cloud_where_it_says_so() -> None:
    settings = config(work={"kind": "anthropic", "transport": "sdk", "platform": "bedrock"}).providers.llm

    found = cloud_of(settings, "work")
    assert found is not None
    assert (found.provider, found.vendor.id, found.title) == ("work", "anthropic", "Bedrock")
    assert cloud_of(settings, "anthropic") is None
    assert cloud_of(settings, "ollama") is None
    assert cloud_of(settings, "nobody") is None


@pytest.mark.parametrize(
    ("name", "settings", "variables"),
    [
        ("openai", {}, ("AZURE_OPENAI_API_KEY",)),
        ("openai", {"api_key_env": "TEAM_KEY"}, ("TEAM_KEY", "AZURE_OPENAI_API_KEY")),
        ("anthropic", {"platform": "foundry"}, ("ANTHROPIC_FOUNDRY_API_KEY",)),
        ("anthropic", {"platform": "bedrock"}, ()),
        ("google", {}, ()),
        ("work", {"kind": "openai", "api_key_env": "WORK_KEY"}, ("WORK_KEY", "AZURE_OPENAI_API_KEY")),
    ],
)
def test_the_vendor_s_own_key_is_not_for_the_cloud(
    name: str, settings: dict[str, str], variables: tuple[str, ...]
) -> None:
    assert key_variables(config(**{name: {"transport": "sdk", **settings}}).providers.llm, name) == variables


class Stored:
    """A store that holds a key of everybody, and says whom it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def find(self, provider: str) -> FoundKey | None:
        self.asked.append(provider)
        return FoundKey("stored-key", "file", "keys.json")

    def may_have(self, provider: str) -> bool:
        return True


def test_a_stored_key_is_for_the_clouds_that_take_keys() -> None:
    stored = Stored()
    settings = config(
        anthropic={"transport": "sdk", "platform": "bedrock"},
        work={"kind": "openai", "transport": "sdk", "endpoint": "https://r.example"},
    )
    for provider in ("anthropic", "work"):
        create_provider(settings, ModelId(provider, "m"), environ={}, root=Path(), stored=stored)

    assert stored.asked == ["work"]


def test_only_to_render_nothing_has_to_be_there() -> None:
    settings = config(openai={"transport": "sdk"})
    provider = create_provider(settings, ModelId("openai", "m"), environ={}, root=Path(), needs_key=False)

    assert provider.id == "openai"


def test_a_cloud_is_not_asked_for_its_models() -> None:
    settings = config(openai={"transport": "sdk"}).providers.llm

    with pytest.raises(ConfigurationError, match=r"'openai' is in a cloud \(Azure\)"):
        create_account(settings, "openai", environ={"OPENAI_API_KEY": "k"})


def test_what_a_model_costs_in_a_cloud_is_what_the_user_says() -> None:
    name = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
    told = {"models": {name: {"input_price": 1.1}}}
    for more, price in (({}, None), (told, 1.1)):
        settings = config(anthropic={"transport": "sdk", "platform": "bedrock", **more}).providers.llm
        known = model_facts(settings, ModelId("anthropic", name))

        assert known.in_table
        assert known.details.context_window == 200_000
        assert (known.details.input_price, known.details.output_price) == (price, None)
