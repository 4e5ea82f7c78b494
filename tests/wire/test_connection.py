"""The way to a server: silence, refusals, TLS, proxies, and who ends a connection."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

import anthropic_wire as wire
from jp.config.model import AppConfig
from jp.conversation.thread import Thread, UserText
from jp.errors import AuthenticationError, ConfigurationError
from jp.provider.base import Finished, KeepAlive, Part, TextDelta
from jp.provider.errors import ProviderError
from jp.provider.registry import ModelId, create_provider
from jp.provider.transport import HttpRequest, Limits, post
from loopback import PATIENCE, Loopback, Received, Reply, sse
from provider_at import KEY, Ending, provider_at, receive

HI = Thread(model="claude-haiku-4-5", system=(), tools=(), events=(UserText(text="Hi", turn=0),))
HELLO = Reply(body=wire.message("Hello"))
CERTIFICATE = Path(__file__).with_name("loopback.pem")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *map(str.upper, PROXIES), "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


def asked(url: str, **request: Any) -> Ending:
    return anyio.run(receive, provider_at(url, **request), HI)


def failure(url: str, **request: Any) -> ProviderError:
    error = asked(url, **request).error
    assert error is not None
    return error


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.parametrize("reply", [Reply(headless=True, ends="hang"), Reply(ends="hang")])
def test_a_server_that_says_nothing_is_given_up(reply: Reply) -> None:
    with Loopback(reply) as server:
        error = failure(server.url, first_byte_timeout_secs=0.05, stream_idle_timeout_secs=PATIENCE)

        assert server.client_left.wait(PATIENCE)
    assert error.kind == "timeout"
    assert "did not respond in time" in error.message
    assert "first_byte_timeout_secs" in error.hint


def let_pass(seconds: float) -> None:
    """Set the clock of the running event loop forward."""
    loop = asyncio.get_running_loop()
    passed = loop.time
    loop.time = lambda: passed() + seconds


def test_the_wait_for_the_first_byte_is_not_bound_by_the_idle_timeout() -> None:
    """A slow model reads its prompt for longer than it may pause between two tokens."""
    gate = threading.Event()
    with Loopback(Reply(body=wire.message("Hello"), gates={0: gate})) as server:

        async def wait_and_open() -> None:
            await anyio.to_thread.run_sync(server.wait_for_requests, 1)
            let_pass(PATIENCE * 5)
            await anyio.lowlevel.checkpoint()
            gate.set()

        async def answered_late() -> Part:
            provider = provider_at(server.url, first_byte_timeout_secs=PATIENCE * 9, stream_idle_timeout_secs=PATIENCE)
            last: Part = KeepAlive()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait_and_open)
                async for part in provider.stream(provider.render(HI)):
                    last = part
            return last

        assert anyio.run(answered_late) == Finished("stop")


def test_a_server_that_falls_silent_is_given_up_after_what_it_said() -> None:
    body = sse(wire.start(), *wire.text(0, "Hel"))
    with Loopback(Reply(body=body, ends="hang")) as server:
        ending = asked(server.url, stream_idle_timeout_secs=0.2)

    assert TextDelta(0, "Hel") in ending.parts
    assert ending.error is not None
    assert ending.error.kind == "timeout"


def test_signs_of_life_count() -> None:
    """As long as there are pings, an answer is waited for longer than the idle timeout."""
    ping = sse(wire.PING)
    gates = {number * len(ping): threading.Event() for number in range(1, 30)}
    with Loopback(Reply(body=ping * 30 + wire.message("Hello"), gates=gates)) as server:

        async def ping_by_ping() -> Part:
            provider = provider_at(server.url, stream_idle_timeout_secs=PATIENCE * 2)
            last: Part = KeepAlive()
            waiting = list(gates.values())
            async for part in provider.stream(provider.render(HI)):
                last = part
                if waiting:  # all of them together take longer than the timeout
                    let_pass(PATIENCE)
                    waiting.pop(0).set()
            return last

        assert anyio.run(ping_by_ping) == Finished("stop")


@pytest.mark.parametrize("ends", ["close", "reset"])
def test_a_connection_that_is_dropped_before_an_answer_can_be_made_again(ends: str) -> None:
    reply = Reply(headless=True, ends="close") if ends == "close" else Reply(headless=True, ends="reset")
    with Loopback(reply) as server:
        error = failure(server.url)

    assert error.kind == "connect"
    assert error.is_retryable
    assert "broke off" in error.message


def test_a_refused_connection_says_so() -> None:
    port = closed_port()
    error = failure(f"http://127.0.0.1:{port}")

    assert error.kind == "connect"
    assert error.message == f"no connection to '127.0.0.1:{port}': Connection refused"


def test_a_connection_that_is_not_made_in_time_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = failure(f"https://127.0.0.1:{silent.getsockname()[1]}", connect_timeout_secs=0.05)

    assert error.kind == "connect"
    assert "connect_timeout_secs" in error.hint


def test_a_host_that_cannot_be_found_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = failure("http://nowhere.test")

    assert error.kind == "connect"
    assert error.message == "'nowhere.test' cannot be found: Name or service not known"


def test_a_server_without_tls_says_so() -> None:
    with Loopback() as server:
        error = failure(server.url.replace("http:", "https:"))

    assert error.kind == "other"
    assert "does not speak TLS" in error.message


@pytest.fixture
def tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


def test_an_untrusted_certificate_is_refused(tls: ssl.SSLContext) -> None:
    with Loopback(HELLO, tls=tls) as server:
        error = failure(server.url)

        assert not server.requests
    assert error.kind == "other"
    assert "is not trusted" in error.message
    assert "SSL_CERT_FILE" in error.hint


def test_a_certificate_authority_of_ones_own_is_trusted(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with Loopback(HELLO, tls=tls) as server:
        assert asked(server.url).error is None


def test_a_certificate_variable_that_names_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/at/all")

    with pytest.raises(ConfigurationError, match="SSL_CERT_FILE names '/nowhere/at/all'"):
        asked("https://127.0.0.1:9")


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback(HELLO) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        assert asked("http://models.test/base").error is None
        (request,) = proxy.wait_for_requests(1)

    assert request.target == "http://models.test/base/v1/messages"


def test_a_host_that_needs_no_proxy_is_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port()}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Loopback(HELLO) as server:
        assert asked(server.url).error is None


def test_a_proxy_that_refuses_a_tunnel_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback(Reply(status=407)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        error = failure("https://models.test")

        assert proxy.requests[0].method == "CONNECT"
    assert error.kind == "connect"
    assert "proxy on the way to 'models.test'" in error.message


@pytest.mark.parametrize("address", ["socks5://user:secret@127.0.0.1:9", "gopher://user:secret@127.0.0.1"])
def test_a_proxy_that_cannot_be_used_is_an_error_without_its_password(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", address)

    with pytest.raises(ConfigurationError, match="proxy of the environment") as caught:
        asked("http://models.test")

    assert "secret" not in str(caught.value) + caught.value.hint


def test_an_address_that_is_none_is_an_error() -> None:
    async def send() -> None:
        async with post(HttpRequest(url="http://[::", headers=(), body=b""), Limits()):
            pass

    with pytest.raises(ConfigurationError, match="cannot send a request") as caught:
        anyio.run(send)
    assert "base_url" in caught.value.hint


def test_the_connection_ends_with_the_answer() -> None:
    with Loopback(Reply(body=wire.message("Hello"), ends="hang")) as server:
        assert asked(server.url).parts[-1] == Finished("stop")
        assert server.client_left.wait(PATIENCE)


def test_the_connection_ends_with_its_reader() -> None:
    with Loopback(Reply(body=sse(wire.start(), wire.PING), ends="hang")) as server:

        async def read_one() -> None:
            provider = provider_at(server.url)
            async with aclosing(provider.stream(provider.render(HI))) as parts:
                await anext(parts)

        anyio.run(read_one)
        assert server.client_left.wait(PATIENCE)


@pytest.mark.parametrize("reply", [Reply(body=sse(wire.start()), ends="hang"), Reply(headless=True, ends="hang")])
def test_the_connection_ends_with_a_cancellation(reply: Reply) -> None:
    with Loopback(reply) as server:

        async def cancelled() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(receive, provider_at(server.url, stream_idle_timeout_secs=0), HI)
                await anyio.to_thread.run_sync(server.wait_for_requests, 1)
                group.cancel_scope.cancel()

        anyio.run(cancelled)
        assert server.client_left.wait(PATIENCE)


def test_a_large_request_arrives_whole() -> None:
    text = "word " * 400_000
    with Loopback(HELLO) as server:
        large = Thread(model="m", system=(), tools=(), events=(UserText(text=text, turn=0),))
        assert anyio.run(receive, provider_at(server.url), large).error is None
        (request,) = server.wait_for_requests(1)

    assert len(request.body) == int(request.headers["content-length"]) > 2_000_000
    assert request.body.count(b"word ") == 400_000


def test_requests_that_run_side_by_side_do_not_mix() -> None:
    def echo(request: Received) -> Reply:
        return Reply(body=wire.message(str(request.json()["model"])))

    with Loopback(otherwise=echo) as server:
        endings: dict[str, Ending] = {}

        async def ask(name: str) -> None:
            thread = Thread(model=name, system=(), tools=(), events=HI.events)
            endings[name] = await receive(provider_at(server.url), thread)

        async def ask_all() -> None:
            async with anyio.create_task_group() as group:
                for number in range(8):
                    group.start_soon(ask, f"m{number}")

        anyio.run(ask_all)

    assert all(TextDelta(0, name) in ending.parts for name, ending in endings.items())
    assert len(endings) == 8


def test_without_a_key_nothing_is_sent() -> None:
    with Loopback(HELLO) as server:
        config = AppConfig()
        model = ModelId("anthropic", "claude-haiku-4-5")
        provider = create_provider(config, model, environ={}, root=Path(), needs_key=False)
        with pytest.raises(AuthenticationError, match="'ANTHROPIC_API_KEY' is not set"):
            anyio.run(receive, provider, HI)

        assert not server.requests


def test_a_failure_does_not_show_the_key() -> None:
    with Loopback(Reply(headless=True, ends="close")) as server:
        error = failure(server.url)

    trail: BaseException | None = error
    while trail is not None:
        assert KEY not in repr(trail)
        trail = trail.__cause__ or trail.__context__


def test_of_an_error_body_no_more_is_waited_for_than_is_kept() -> None:
    async def body() -> bytes:
        with anyio.fail_after(PATIENCE), Loopback(Reply(status=500, body=b"x" * 70_000, ends="hang")) as server:
            async with post(HttpRequest(url=server.url, headers=(), body=b""), Limits(idle_timeout=None)) as response:
                return await response.error_body()

    assert anyio.run(body) == b"x" * 64 * 1024
