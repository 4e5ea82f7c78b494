from __future__ import annotations

import msgspec
import pytest

from jp.config.model import AppConfig, FileConfig


def test_every_key_has_a_default() -> None:
    assert msgspec.convert({}, AppConfig) == AppConfig()
    assert msgspec.convert({}, FileConfig).extends == ()


def test_no_model_is_chosen_by_default() -> None:
    assert AppConfig().assistant.model.id is None


@pytest.mark.parametrize(
    "url", ["http://localhost:1", "https://a.example/v1", "http://[::1]:65535/", "https://user:key@a.example"]
)
def test_an_address_is_one_that_requests_can_go_to(url: str) -> None:
    raw = {"providers": {"llm": {"anthropic": {"base_url": url}}}}

    assert msgspec.convert(raw, AppConfig).providers.llm.anthropic.base_url == url


@pytest.mark.parametrize(
    "section",
    [
        {"base_url": "file:///etc/passwd"},
        {"base_url": "https://a b"},
        {"base_url": ""},
        {"base_url": "https://"},
        {"base_url": "http://[::1"},
        {"base_url": "http://localhost:65536"},
        {"base_url": "http://localhost:x"},
        {"base_url": "http://a.example/?key=1"},
        {"base_url": "http://a.example/#x"},
        {"base_url": "http://a.example/\n"},
        {"api_key_env": "A B"},
        {"api_key_env": "A\n"},
    ],
)
def test_an_address_or_a_variable_that_is_none_is_refused(section: dict[str, str]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"providers": {"llm": {"anthropic": section}}}, AppConfig)
