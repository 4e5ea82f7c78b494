"""Asking servers for their models: all pages, with and without the vendor's SDK, and every way that it fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from certificates import one_authority
from jp.cli.terminal.wording import worded
from jp.provider import discovery
from jp.provider import discovery as asked_server
from jp.provider.discovery import FetchedModels, Server, fetch_models
from jp.provider.errors import ErrorKind, ProviderError
from jp.provider.http import Account
from jp.provider.listing import ListedModel
from jp.provider.registry import vendor_of
from jp.provider.transport import Limits
from loopback import HTML, JSON, Loopback, Received, Reply
from recordings import Recording, recording_of

KEY = "sk-test-0123456789"
VENDORS = ("anthropic", "google", "openai")
VERSIONS = {"anthropic": "", "google": "/v1beta", "ollama": ""}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return one_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, authority: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))


def answer(body: object, *, status: int = 200) -> Reply:
    return Reply(status=status, body=msgspec.json.encode(body), headers=JSON)


def server_at(url: str, kind: str, *, provider: str = "", limits: Limits | None = None, **account: Any) -> Server:
    vendor = vendor_of(kind)
    base_url = f"{url}{VERSIONS.get(kind, '/v1')}"
    where = Account(
        base_url=base_url,
        base_url_setting="the.setting",
        key=KEY,
        key_variable="K",
        key_header=vendor.key_header,
        **account,
    )
    return Server(provider or kind, vendor, where, limits or Limits())


def fetch(server: Server, *, with_sdk: bool = False, patience_secs: float = 20.0) -> FetchedModels:
    async def run() -> FetchedModels:
        return await fetch_models(server, sdk=with_sdk, patience_secs=patience_secs)

    return anyio.run(run)


def played(recording: Recording, *, listed_at: str = "") -> Callable[[Received], Reply]:
    """A server that answers as it did then; `listed_at` is where a single model is listed."""
    replies = {exchange["request"]["path"]: exchange["response"] for exchange in recording["exchanges"]}

    def reply(request: Received) -> Reply:
        path = request.target.partition("?")[0]
        if path == listed_at:
            (response,) = replies.values()
            return Reply(body=f'{{"data": [{response["body"]}]}}'.encode(), headers=JSON)
        found = replies.get(path)
        if found is None:
            return answer({"error": {"message": "not found"}}, status=404)
        return Reply(body=found["body"].encode(), headers=tuple(found["headers"].items()))

    return reply


def expected_of(recording: Recording, case: str) -> list[dict[str, Any]]:
    expected: list[dict[str, Any]] = recording["expected"]["models" if case == "test_models" else "model_details"]
    return expected


def compare(model: ListedModel, expected: dict[str, Any]) -> None:
    """Where both say something, they say the same; what only the expectation says is from its own tables."""
    assert model.id.rpartition("/")[2] == expected["id"]
    pairs = (
        (model.title or None, expected["display_name"]),
        (model.context_window, expected["context_window"]),
        (model.max_output, expected["max_output_tokens"]),
        (model.structured, expected["structured_output"]),
        (model.thinks, None if expected["reasoning"] is None else expected["reasoning"] != "Unsupported"),
    )
    assert [ours for ours, theirs in pairs if None not in {ours, theirs}] == [
        theirs for ours, theirs in pairs if None not in {ours, theirs}
    ]


@pytest.mark.parametrize("case", ["test_models", "test_model_details"])
@pytest.mark.parametrize("kind", ["anthropic", "google", "llamacpp", "ollama", "openai"])
def test_recorded_lists_say_what_is_expected_of_them(kind: str, case: str) -> None:
    recording = recording_of(kind, case)
    single = "/v1/models" if case == "test_model_details" and kind in {"anthropic", "openai"} else ""

    with Loopback(otherwise=played(recording, listed_at=single)) as server:
        fetched = fetch(server_at(server.url, kind))

    found = {model.id.rpartition("/")[2]: model for model in fetched.models}
    expected = expected_of(recording, case)
    assert fetched.skipped == 0
    assert len(found) == len(recording["expected"]["wire"])
    for model in expected:
        # Of a model that the server does not list, nothing is expected but its name.
        compare(found.get(model["id"], ListedModel(id=model["id"])), model)
    assert {model["id"] for model in expected} - set(found) <= {"qwen3.5:9b"}


def pages_of(kind: str) -> list[Reply]:
    """A list in three pages, with entries that cannot be used where the SDK lets them pass."""
    if kind == "anthropic":
        first = {"data": [{"id": "a", "max_input_tokens": 5}, {"id": "~x"}], "has_more": True, "last_id": "a b"}
        second = {"data": [{"id": "b"}], "has_more": True, "last_id": "c"}
        return [answer(first), answer(second), answer({"data": [{"id": "c"}, {"id": "a"}], "has_more": False})]
    first = {"models": [{"name": "models/a", "inputTokenLimit": 5}, {"name": "~x"}], "nextPageToken": "a b"}
    second = {"models": [{"name": "models/b"}], "nextPageToken": "c"}
    return [answer(first), answer(second), answer({"models": [{"name": "models/c"}, {"name": "models/a"}]})]


@pytest.mark.parametrize("with_sdk", [False, True])
@pytest.mark.parametrize(
    ("kind", "queries"),
    [
        ("anthropic", ["limit=1000", "limit=1000&after_id=a%20b", "limit=1000&after_id=c"]),
        ("google", ["pageSize=1000", "pageSize=1000&pageToken=a%20b", "pageSize=1000&pageToken=c"]),
    ],
)
def test_all_pages_are_read(kind: str, queries: list[str], *, with_sdk: bool) -> None:
    with Loopback(*pages_of(kind)) as server:
        fetched = fetch(server_at(server.url, kind), with_sdk=with_sdk)
        requests = server.requests

    assert [model.id for model in fetched.models] == ["a", "b", "c"]
    assert (fetched.models[0].context_window, fetched.skipped) == (5, 1)
    asked = [sorted(request.target.partition("?")[2].replace("+", "%20").split("&")) for request in requests]
    assert asked == [sorted(query.split("&")) for query in queries]


@pytest.mark.parametrize("kind", VENDORS)
def test_an_sdk_lists_what_we_list_and_sends_what_we_send(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "other")
    monkeypatch.setenv("GEMINI_API_KEY", "another")
    recording = recording_of(kind, "test_models")

    with Loopback(otherwise=played(recording)) as server:
        asked = server_at(server.url, kind)
        assert discovery.has_sdk(asked)
        ours, theirs = fetch(asked), fetch(asked, with_sdk=True)
        first, second = server.requests

    assert ours == theirs
    assert (first.method, first.target, first.headers) == (second.method, second.target, second.headers)
    assert KEY in "".join(second.headers.values())
    assert second.headers["user-agent"].startswith("jp/")


@pytest.mark.parametrize("kind", VENDORS)
def test_an_sdk_lets_our_errors_through(kind: str) -> None:
    with Loopback(answer({"error": {"message": f"bad key {KEY}"}}, status=401)) as server:
        with pytest.raises(ProviderError, match=f"{kind} answered 401") as caught:
            fetch(server_at(server.url, kind, key_hint="mend it"), with_sdk=True)
        assert len(server.requests) == 1

    assert (caught.value.kind, caught.value.hint) == ("authentication", "mend it")
    assert KEY not in caught.value.message


def test_where_an_sdk_fails_we_ask_ourselves() -> None:
    body = answer({"models": [{"name": 3}, {"name": "models/a"}]})

    with Loopback(body, body) as server:
        fetched = fetch(server_at(server.url, "google"), with_sdk=True)

        assert len(server.requests) == 2
    assert fetched == FetchedModels(models=(ListedModel(id="a"),), skipped=1)


def test_an_sdk_is_for_its_own_provider() -> None:
    def has(kind: str, provider: str = "") -> bool:
        return discovery.has_sdk(server_at("http://127.0.0.1:1", kind, provider=provider))

    assert [has(kind) for kind in (*VENDORS, "ollama")] == [True, True, True, False]
    assert not has("openai", "mine")


def test_old_servers_of_ollama_are_asked_for_each_model() -> None:
    tags = {"models": [{"name": "a:latest"}, {"name": "b"}, {"name": "gone"}]}
    shown: dict[str, object] = {
        "a:latest": {"model_info": {"llama.context_length": 8192}, "capabilities": ["completion", "vision"]},
        "b": {"model_info": {}, "capabilities": ["embedding"]},
    }

    def reply(request: Received) -> Reply:
        if request.method == "GET":
            return answer(tags)
        found = shown.get(str(request.json()["model"]))
        return answer({"error": "model not found"}, status=404) if found is None else answer(found)

    with Loopback(otherwise=reply) as server:
        fetched = fetch(server_at(server.url, "ollama"))
        targets = sorted(f"{request.method} {request.target}" for request in server.requests)

    assert targets == ["GET /api/tags", *["POST /api/show"] * 3]
    assert [(model.id, model.context_window, model.images, model.answers) for model in fetched.models] == [
        ("a:latest", 8192, True, True),
        ("b", None, False, False),
        ("gone", None, None, None),
    ]


def test_llamacpp_lists_its_model_without_telling_of_itself_too() -> None:
    listed = {"data": [{"id": "m", "meta": {"n_ctx_train": 9}}]}

    with Loopback(answer(listed), answer({}, status=403)) as server:
        fetched = fetch(server_at(server.url, "llamacpp"))

        assert [request.target for request in server.requests] == ["/v1/models", "/props"]
    assert fetched.models == (ListedModel(id="m", context_window=9),)


def test_cerebras_tells_everybody_what_its_models_cost_and_can_do() -> None:
    public = {
        "id": "m",
        "name": "M",
        "pricing": {"prompt": "0.00000035", "completion": "0.00000075"},
        "capabilities": {"tools": True, "vision": False, "structured_outputs": True, "reasoning": True},
        "limits": {"max_context_length": 131_072, "max_completion_tokens": 40_960},
    }
    known = ListedModel(
        id="m",
        title="M",
        context_window=131_072,
        max_output=40_960,
        input_price=0.35,
        output_price=0.75,
        tools=True,
        images=False,
        structured=True,
        thinks=True,
    )

    with Loopback(answer({"data": [{"id": "m"}, {"id": "mine"}]}), answer({"data": [public, "odd"]})) as server:
        fetched = fetch(server_at(server.url, "cerebras"))
        targets = [request.target for request in server.requests]
    with Loopback(answer({"data": [{"id": "m"}]}), answer({}, status=404)) as server:
        without = fetch(server_at(server.url, "cerebras"))

    assert targets == ["/v1/models", "/public/v1/models"]
    assert fetched.models == (known, ListedModel(id="mine"))
    assert without.models == (ListedModel(id="m"),)


def test_a_compatible_server_is_asked_below_its_own_address_with_its_headers() -> None:
    with Loopback(answer({"data": [{"id": "m"}]})) as server:
        account = Account(
            base_url=f"{server.url}/paas/v4", base_url_setting="", key=None, key_variable="", headers=(("x-team", "a"),)
        )
        fetched = fetch(Server("mine", vendor_of("openai-compatible"), account, Limits()))
        (request,) = server.requests

    assert [model.id for model in fetched.models] == ["m"]
    assert (request.target, request.headers["x-team"]) == ("/paas/v4/models", "a")
    assert "authorization" not in request.headers


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (answer({"error": {"message": "slow down"}}, status=429), "rate_limit", "429: slow down"),
        (answer({"error": {"message": "no such thing"}}, status=404), "invalid_request", "check `the.setting`"),
        (Reply(status=302, headers=(("location", "http://evil"), ("content-length", "0"))), "other", "redirect"),
        (Reply(body=b"<title>Log in</title>", headers=HTML), "other", "login page"),
        (Reply(body=b'{"data": [', headers=JSON), "other", "check `the.setting`"),
        (answer({"object": "list"}), "other", "did not respond with a list of models"),
        (Reply(body=b"[" * 100_000, headers=JSON), "other", "did not respond with a list of models"),
        (Reply(body=b'{"data', headers=JSON, ends="close"), "cut", "broke off"),
        (Reply(body=b" " * 100_000, headers=JSON, times=40), "output_limit", "longer than"),
    ],
)
def test_what_comes_instead_of_a_list_is_told(
    reply: Reply, kind: ErrorKind, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked_server, "_MOST_BYTES", 1_000_000)
    with Loopback(reply) as server, pytest.raises(ProviderError) as caught:
        fetch(server_at(server.url, "openai"))

    assert caught.value.kind == kind
    assert words in f"{caught.value.message} {worded(caught.value.hint)}"


def test_a_server_that_is_not_there_is_looked_for_where_it_is_said_to_be() -> None:
    with Loopback() as server:
        url = server.url

    with pytest.raises(ProviderError) as caught:
        fetch(server_at(url, "ollama", reach_hint="is it running?"))

    assert (caught.value.kind, caught.value.hint) == ("connect", "is it running?")


def test_a_list_that_does_not_come_is_not_waited_for_without_end() -> None:
    with Loopback(Reply(ends="hang", headless=True)) as server, pytest.raises(ProviderError, match="within 0 s"):
        fetch(server_at(server.url, "openai"), patience_secs=0)


def test_a_list_whose_pages_lead_in_a_circle_comes_to_an_end() -> None:
    page = answer({"data": [{"id": "a"}], "has_more": True, "last_id": "a"})

    with Loopback(otherwise=page) as server:
        fetched = fetch(server_at(server.url, "anthropic"))

        assert len(server.requests) == 2
    assert [model.id for model in fetched.models] == ["a"]
