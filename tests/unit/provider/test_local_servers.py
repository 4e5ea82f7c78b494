from __future__ import annotations

import threading

import pytest

from jp.provider.local_servers import RunningServer, running_servers
from jp.provider.proposals import Proposal, proposals
from jp.provider.registry import ProviderFacts
from jp.provider.server_address import LocalServer, address_of
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
        ProviderFacts(id="a", key_variables=("A_KEY", "A_TOKEN"), proposed="a/one"),
        ProviderFacts(id="b", key_variables=("B_KEY",), proposed="b/one"),
        ProviderFacts(id="c", key_variables=("C_KEY",), proposed="c/one"),
        ProviderFacts(id="script"),
        ProviderFacts(id="ollama", server=OLLAMA),
    )
    asked: list[str] = []

    def has_stored_key(provider: str) -> bool:
        asked.append(provider)
        return provider == "b"

    with Loopback(Reply(body=LISTED, headers=JSON)) as server:
        environ = {"A_TOKEN": "secret", "OLLAMA_HOST": server.url}
        found = proposals(environ, has_stored_key=has_stored_key, known=known)

    assert found[:2] == (
        Proposal(model="a/one", because="A_TOKEN is set"),
        Proposal(model="b/one", because="its key is stored"),
    )
    assert found[2:] in {(), (Proposal(model="ollama/small", because=f"a server answers at {server.url}"),)}
    assert asked == ["b", "c"]
