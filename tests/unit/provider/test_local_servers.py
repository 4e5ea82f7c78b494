from __future__ import annotations

import threading

import msgspec
import pytest

from jp.config.model import LlmConfig
from jp.provider.discovery import Proposal, RunningServer, proposals, running_servers
from jp.provider.models import known_names
from jp.provider.registry import address_of, vendor_of, vendors
from jp.provider.vendor import LocalServer, Vendor
from loopback import JSON, Loopback, Reply

LISTED = b'{"object": "list", "data": [{"id": "small", "x": 1}, {"id": "large"}]}'
OLLAMA = LocalServer(port=11434, variable="OLLAMA_HOST")


@pytest.mark.parametrize(
    ("declared", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("box", "http://box:11434"),
        ("box:1", "http://box:1"),
        (":1", "http://127.0.0.1:1"),
        ("http://0.0.0.0", "http://127.0.0.1:11434"),
        ("[::1]:2", "http://[::1]:2"),
        ("https://box/path", "https://box:11434"),
        ("http://box:x", "http://127.0.0.1:11434"),
    ],
)
def test_a_server_is_asked_where_it_is_declared(declared: str, address: str) -> None:
    assert address_of(OLLAMA, {"OLLAMA_HOST": declared}) == address


def test_only_loopback_is_asked_where_nothing_is_declared() -> None:
    assert address_of(LocalServer(port=8080), {"": "box", "OLLAMA_HOST": "box"}) == "http://127.0.0.1:8080"


def found_at(url: str, *, patience_secs: float = 10) -> tuple[RunningServer, ...]:
    return running_servers({"ollama": OLLAMA}, {"OLLAMA_HOST": url}, patience_secs=patience_secs)


def test_a_server_that_answers_is_found_with_its_models() -> None:
    with Loopback(Reply(body=LISTED, headers=JSON)) as server:
        found = found_at(server.url)

    assert found == (RunningServer(provider="ollama", address=server.url, models=("small", "large")),)
    assert server.requests[0].target == "/v1/models"


@pytest.mark.parametrize(
    ("path", "target"), [("", "/v1/models"), ("/v1/", "/v1/models"), ("/box/v1", "/box/v1/models")]
)
def test_a_server_that_is_configured_is_asked_there_alone(path: str, target: str) -> None:
    with Loopback(Reply(body=LISTED, headers=JSON)) as server:
        configured = {"ollama": f"{server.url}{path}"}
        found = running_servers({"ollama": OLLAMA}, {"OLLAMA_HOST": "box"}, configured=configured, patience_secs=10)

        assert [each.models for each in found] == [("small", "large")]
        assert server.requests[0].target == target


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=404, body=LISTED, headers=JSON),
        Reply(body=b"<html>", headers=JSON),
        Reply(body=b'{"data": 1}', headers=JSON),
        Reply(ends="close", headless=True),
        Reply(status=301, headers=(("location", "http://example.com"), ("content-length", "0"))),
    ],
)
def test_what_answers_otherwise_is_no_server_of_models(reply: Reply) -> None:
    with Loopback(reply) as server:
        assert found_at(server.url) == ()


def test_a_server_that_does_not_answer_in_time_is_not_there() -> None:
    with Loopback(Reply(gates={0: threading.Event()}, body=LISTED, ends="hang", headless=True)) as server:
        assert found_at(server.url, patience_secs=0.05) == ()


def test_where_no_provider_has_a_server_nobody_is_asked() -> None:
    assert running_servers({}, {}) == ()


def test_what_can_be_used_is_proposed_in_the_order_of_the_providers() -> None:
    known = (
        Vendor(id="a", key_variables=("A_KEY", "A_TOKEN"), proposed="a/one"),
        Vendor(id="b", key_variables=("B_KEY",), proposed="b/one"),
        Vendor(id="c", key_variables=("C_KEY",), proposed="c/one"),
        Vendor(id="script"),
        Vendor(id="ollama", server=OLLAMA),
    )
    asked: list[str] = []

    def has_stored_key(provider: str) -> bool:
        asked.append(provider)
        return provider == "b"

    with Loopback(Reply(body=LISTED, headers=JSON)) as server:
        environ = {"A_TOKEN": "secret", "OLLAMA_HOST": server.url}
        found = proposals(LlmConfig(), environ, has_stored_key=has_stored_key, known=known)

    assert found[:2] == (
        Proposal(model="a/one", because="A_TOKEN is set"),
        Proposal(model="b/one", because="its key is stored"),
    )
    assert found[2:] in {(), (Proposal(model="ollama/small", because=f"a server responds at {server.url}"),)}
    assert asked == ["b", "c"]


def test_a_configured_variable_and_a_configured_server_count() -> None:
    listed = b'{"data": [{"id": "text-embedding"}, {"id": "Qwen3"}]}'
    with Loopback(otherwise=Reply(body=listed, headers=JSON)) as server:
        settings = msgspec.convert(
            {"openai": {"api_key_env": "MINE"}, "llamacpp": {"base_url": f"{server.url}/v1"}}, LlmConfig
        )
        known = (vendor_of("openai"), vendor_of("llamacpp"))

        def find() -> tuple[Proposal, ...]:
            return proposals(settings, {"MINE": "k"}, has_stored_key=lambda _: False, known=known)

        # A server has a third of a second, which a busy machine may not have.
        found = next((each for each in (find() for _ in range(20)) if len(each) > 1), find())

    assert found == (
        Proposal(model="openai/gpt-6.1-sol", because="MINE is set"),
        Proposal(model="llamacpp/Qwen3", because=f"a server responds at {server.url}/v1"),
    )


def test_what_is_proposed_is_in_the_table_of_its_provider() -> None:
    for facts in vendors():
        names = known_names(facts.id)
        assert not facts.proposed or not names or facts.proposed.removeprefix(f"{facts.id}/") in names, facts
