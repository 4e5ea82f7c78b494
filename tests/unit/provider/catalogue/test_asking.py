from __future__ import annotations

import pytest
from msgspec.structs import replace

from jp.config.model import LlmConfig
from jp.provider.discovery import list_path
from jp.provider.listing import server_root
from jp.provider.registry import create_account, vendor_of


@pytest.mark.parametrize(
    ("kind", "cursor", "path"),
    [
        ("anthropic", "", "/v1/models?limit=1000"),
        ("anthropic", "claude x&y", "/v1/models?limit=1000&after_id=claude%20x%26y"),
        ("google", "a/b=", "/v1beta/models?pageSize=1000&pageToken=a%2Fb%3D"),
        ("openrouter", "", "/v1/models"),
        ("ollama", "", "/api/tags"),
        ("openai-compatible", "", "/models"),
    ],
)
def test_a_list_is_asked_for_where_it_is(kind: str, cursor: str, path: str) -> None:
    assert list_path(vendor_of(kind).models, cursor) == path


def test_a_key_goes_into_the_header_that_the_server_looks_at() -> None:
    def key_headers(kind: str, key: str | None) -> tuple[tuple[str, str], ...]:
        account = create_account(LlmConfig(), kind, environ={}, needs_key=False)
        return replace(account, key=key).key_headers

    assert key_headers("anthropic", "k") == (("x-api-key", "k"),)
    assert key_headers("google", "k") == (("x-goog-api-key", "k"),)
    assert key_headers("llamacpp", "k") == (("authorization", "Bearer k"),)
    assert (key_headers("anthropic", None), key_headers("llamacpp", None)) == ((), ())
    assert vendor_of("anthropic").models.headers == (("anthropic-version", "2023-06-01"),)


def test_the_root_of_a_server_has_no_version() -> None:
    assert [server_root(url) for url in ("http://a", "http://a/", "http://a/v1/", "http://a/b/v1")] == [
        "http://a",
        "http://a",
        "http://a",
        "http://a/b",
    ]
