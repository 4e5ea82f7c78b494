from __future__ import annotations

from typing import Any

import pytest

from jp.cli.terminal.wording import worded
from jp.config.entries import Platform
from jp.errors import ConfigurationError, JpError
from jp.provider.clouds import key_hint, preparation_error
from jp.provider.errors import ProviderError
from jp.provider.registry import vendor_of
from jp.provider.vendor import Cloud


def cloud(platform: Platform = "bedrock") -> Cloud:
    kind = "openai" if platform == "azure" else "anthropic"
    return Cloud(provider="work", vendor=vendor_of(kind), platform=platform)


def raised_in(module: str, name: str, said: str, *above: str) -> Exception:
    """An error of a library, with the classes that are above it."""
    made: Any = Exception
    for one in (*reversed(above), name):
        made = type(one, (made,), {"__module__": module})
    return made(said)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            raised_in("botocore.exceptions", "TokenRetrievalError", "the token has expired"),
            "authentication",
            "no credentials for Bedrock: the token has expired",
        ),
        (
            raised_in("botocore.exceptions", "EndpointConnectionError", "no way", "ConnectionError"),
            "connect",
            "cannot get Bedrock's credentials: no way",
        ),
        (
            raised_in("google.auth.exceptions", "TransportError", "no way"),
            "connect",
            "cannot get Bedrock's credentials: no way",
        ),
        (
            RuntimeError("Could not resolve API token from the environment"),
            "authentication",
            "no credentials for Bedrock: Could not resolve API token from the environment",
        ),
        (KeyError(), "other", "cannot prepare a request for Bedrock: KeyError"),
    ],
)
def test_what_goes_wrong_in_an_sdk_has_a_kind(error: Exception, kind: str, message: str) -> None:
    found = preparation_error(error, cloud())

    assert isinstance(found, ProviderError)
    assert (found.kind, found.message) == (kind, message)


@pytest.mark.parametrize(
    ("platform", "names"),
    [
        ("bedrock", ("region", "profile")),
        ("vertex", ("project", "region")),
        ("azure", ("endpoint",)),
        ("foundry", ("endpoint",)),
    ],
)
def test_what_is_not_set_is_a_matter_of_configuration(platform: Platform, names: tuple[str, ...]) -> None:
    found = preparation_error(ValueError("No AWS region was provided.\n  Set one."), cloud(platform))

    assert isinstance(found, ConfigurationError)
    assert found.message.endswith("No AWS region was provided. Set one.")
    assert all(f"`providers.llm.work.{name}`" in str(found.hint) for name in names)


def test_a_package_that_is_missing_below_another_is_named() -> None:
    outer = RuntimeError("missing")
    outer.__cause__ = ModuleNotFoundError("No module named 'boto3'", name="boto3")
    found = preparation_error(outer, cloud())

    assert found.message == "Bedrock needs the package 'boto3', which is not installed"
    assert "pip install 'jp[clouds]'" in str(found.hint)
    assert "'?'" in preparation_error(ModuleNotFoundError(), cloud()).message


def test_without_microsoft_s_package_there_is_no_sign_in() -> None:
    found = preparation_error(ModuleNotFoundError("No module named 'azure'", name="azure"), cloud("azure"))

    assert isinstance(found, ProviderError)
    assert found.kind == "authentication"
    assert "jp keys set work" in worded(found.hint)
    assert "azure-identity" in str(found.hint)


def test_our_own_error_comes_through() -> None:
    own = JpError("mine")
    outer = RuntimeError("theirs")
    outer.__context__ = own

    assert preparation_error(outer, cloud()) is own


def test_a_long_message_is_cut_and_shows_no_key() -> None:
    found = preparation_error(ValueError("sk-ant-0123456789 " + "x" * 1000), cloud())

    assert "sk-ant" not in found.message
    assert len(found.message) < 400


def test_every_cloud_says_what_mends_its_credentials() -> None:
    assert "gcloud" in key_hint(cloud("vertex"))
    assert "ANTHROPIC_FOUNDRY_API_KEY" in key_hint(cloud("foundry"))
