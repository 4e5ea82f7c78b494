"""Connections that the requests of a query share, over real sockets."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anthropic_wire as wire
from jp.conversation.thread import Thread, UserText
from jp.provider.base import Finished, TextDelta
from jp.provider.connection import Connection, Origin, address_of, decoded
from jp.provider.transport import Limits, connect, sharing_connections
from loopback import PATIENCE, SSE, Loopback, Reply, sse
from provider_at import Ending, provider_at, receive

HI = Thread(model="claude-haiku-4-5", system=(), tools=(), events=(UserText(text="Hi", turn=0),))
HELLO = Reply(body=wire.message("Hello"))
CERTIFICATE = Path(__file__).with_name("loopback.pem")


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def in_one_query(work: Callable[[], Awaitable[object]]) -> None:
    async def query() -> None:
        with sharing_connections():
            await work()

    anyio.run(query)


def asked(server: Loopback, times: int, *, between: Callable[[], object] = lambda: None) -> list[Ending]:
    """The endings of requests one after the other in one query."""
    endings: list[Ending] = []

    async def ask() -> None:
        for _ in range(times):
            endings.append(await receive(provider_at(server.url), HI))
            await anyio.to_thread.run_sync(between)

    in_one_query(ask)
    return endings


def test_twenty_requests_one_after_the_other_share_a_connection() -> None:
    with Loopback(otherwise=HELLO) as server:
        endings = asked(server, 20)

        assert server.connections == 1
        assert len(server.requests) == 20
    assert all(ending.parts[-1] == Finished("stop") for ending in endings)


def test_what_is_idle_is_closed_when_the_query_is_over() -> None:
    with Loopback(HELLO, Reply(body=wire.message("Hello"), ends="hang")) as server:
        asked(server, 2)

        assert server.client_left.wait(PATIENCE)


@pytest.mark.parametrize(
    "first",
    [
        Reply(status=503, headers=(("content-type", "application/json"), ("content-length", "2")), body=b"{}"),
        Reply(body=sse(wire.start()), ends="close"),
        Reply(body=sse(wire.start()), ends="reset"),
    ],
    ids=["error", "cut", "reset"],
)
def test_after_an_error_a_connection_is_not_used_again(first: Reply) -> None:
    with Loopback(first, HELLO) as server:
        failed, answered = asked(server, 2)

        assert server.connections == 2
    assert failed.error is not None
    assert answered.error is None


def test_requests_at_the_same_time_have_connections_of_their_own() -> None:
    gate = threading.Event()
    with Loopback(Reply(body=wire.message("Hello"), gates={0: gate}), HELLO, HELLO) as server:

        async def ask_both() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(receive, provider_at(server.url), HI)
                await anyio.to_thread.run_sync(server.wait_for_requests, 1)
                assert (await receive(provider_at(server.url), HI)).error is None
                gate.set()
            await receive(provider_at(server.url), HI)

        in_one_query(ask_both)
        assert server.connections == 2


def test_a_server_that_left_while_nothing_was_asked_is_connected_again() -> None:
    body = wire.message("Hello")
    whole = Reply(body=body, headers=(*SSE, ("content-length", str(len(body)))), ends="close")
    with Loopback(whole, HELLO) as server:
        assert all(ending.error is None for ending in asked(server, 2))
        assert server.connections == 2


def test_a_server_that_leaves_as_it_is_asked_again_is_asked_over_a_new_connection() -> None:
    with Loopback(HELLO, Reply(headless=True, ends="close"), HELLO) as server:
        assert all(ending.error is None for ending in asked(server, 2))

        assert (server.connections, len(server.requests)) == (2, 3)
        assert server.requests[1] == server.requests[2]


def test_a_server_that_breaks_off_within_its_answer_is_not_asked_again() -> None:
    with Loopback(HELLO, Reply(body=sse(wire.start()), ends="reset")) as server:
        first, second = asked(server, 2)

        assert len(server.requests) == 2
    assert first.error is None
    assert second.error is not None


class LateEnd(Loopback):
    """Ends its first response when it is told to: an answer is complete at its last event, which comes before."""

    def __init__(self, *replies: Reply) -> None:
        self.gate = threading.Event()
        self._sent = threading.Event()
        body = wire.message("Hello")
        super().__init__(Reply(body=body + b": the end\n\n", gates={len(body): self.gate}), *replies)

    def end(self) -> None:
        self.gate.set()
        assert self._sent.wait(PATIENCE)

    def _answer(self, connection: socket.socket, reply: Reply) -> bool:
        is_reusable = super()._answer(connection, reply)
        self._sent.set()
        return is_reusable


def test_the_end_of_a_response_that_nobody_waited_for_is_read_before_the_next_request() -> None:
    with LateEnd(HELLO) as server:
        assert all(ending.error is None for ending in asked(server, 2, between=server.end))

        assert server.connections == 1


def test_a_response_that_does_not_end_leaves_its_connection_to_itself() -> None:
    with LateEnd(HELLO) as server:
        assert all(ending.error is None for ending in asked(server, 2))

        server.gate.set()
        assert server.connections == 2


def test_the_end_of_an_earlier_response_is_no_answer_of_a_server_that_leaves() -> None:
    with LateEnd(Reply(headless=True, ends="close"), HELLO) as server:
        assert all(ending.error is None for ending in asked(server, 2, between=server.end))

        assert (server.connections, len(server.requests)) == (2, 3)


def test_what_follows_a_response_that_is_over_is_no_answer_to_the_next_request() -> None:
    body = wire.message("Hello")
    spurious = b"HTTP/1.1 200 Fine\r\ncontent-length: 0\r\n\r\n"
    reply = Reply(body=body + spurious, headers=(*SSE, ("content-length", str(len(body)))))
    with Loopback(reply, HELLO) as server:
        assert all(TextDelta(0, "Hello") in ending.parts for ending in asked(server, 2))
        assert server.connections == 2


def test_one_handshake_serves_all_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with Loopback(otherwise=HELLO, tls=context) as server:
        assert all(ending.error is None for ending in asked(server, 3))
        assert server.connections == 1


def test_a_connection_is_begun_before_its_request() -> None:
    with Loopback(HELLO) as server:

        async def connect_first() -> None:
            connect(server.url, Limits())
            connect(server.url, Limits())
            with anyio.fail_after(PATIENCE):
                while not server.connections:
                    await anyio.lowlevel.checkpoint()
            assert not server.requests
            assert (await receive(provider_at(server.url), HI)).error is None

        in_one_query(connect_first)
        assert server.connections == 1


def test_a_connection_that_no_request_needed_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)

        async def connect_only() -> None:
            connect(f"http://127.0.0.1:{listener.getsockname()[1]}", Limits())

        in_one_query(connect_only)
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE)
            assert connection.recv(1) == b""


def test_nothing_is_begun_outside_of_a_query() -> None:
    with Loopback() as server:
        connect(server.url, Limits())

        assert not server.connections


def test_a_connection_that_could_not_be_begun_is_an_error_of_the_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    async def ask() -> None:
        provider = provider_at(url)
        ending = await receive(provider, HI)
        assert ending.error is not None
        assert "Connection refused" in ending.error.message

    in_one_query(ask)


@pytest.mark.parametrize(
    ("url", "authority", "target"),
    [
        ("https://API.example.com", "api.example.com", "/"),
        ("https://api.example.com:443/v1/x?y=%20", "api.example.com", "/v1/x?y=%20"),
        ("http://[::1]:8080/v1", "[::1]:8080", "/v1"),
        ("http://127.0.0.1:80/a:b", "127.0.0.1", "/a:b"),
    ],
)
def test_a_usual_address_has_its_parts(url: str, authority: str, target: str) -> None:
    found = address_of(url)

    assert found is not None
    assert (found.authority, found.target) == (authority, target)


@pytest.mark.parametrize(
    "url",
    [
        "http://ada:secret@example.com/",
        "http://bücher.example/",
        "http://example.com/a b",
        "http://example.com/a#b",
        "http://example.com/../a",
        "http://example.com/\r\nx: y",
        "ftp://example.com/",
        "http://[::",
        "",
    ],
)
def test_an_unusual_address_is_left_to_httpx2(url: str) -> None:
    assert address_of(url) is None


@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "All_Proxy"])
def test_where_a_proxy_is_named_everything_is_left_to_httpx2(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert address_of("http://example.com/") is None

    monkeypatch.setenv(name, "")
    assert address_of("http://example.com/") is not None


RESPONSE = (
    b"HTTP/1.1 100 Continue\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
    b"5\r\nHello\r\n7;x=y\r\n, world\r\n0\r\n\r\n"
)


@given(st.sets(st.integers(1, len(RESPONSE) - 1)))
def test_a_response_is_the_same_wherever_it_is_cut(cuts: set[int]) -> None:
    here, there = socket.socketpair()
    here.settimeout(0)

    async def exchanged() -> bytes:
        import h11

        connection = Connection(Origin("http", "h", 80), here)
        request = h11.Request(method="GET", target="/", headers=[("host", "h")])
        await connection.send(request, h11.EndOfMessage())
        body = b""
        async with anyio.create_task_group() as group:

            async def send() -> None:
                edges = [0, *sorted(cuts), len(RESPONSE)]
                for start, end in pairwise(edges):
                    there.sendall(RESPONSE[start:end])
                    await anyio.lowlevel.checkpoint()

            group.start_soon(send)
            while not isinstance(await connection.receive(), h11.Response):
                pass
            async for chunk in connection.body():
                body += chunk
        connection.leave_idle()
        assert await connection.ready()
        return body

    with here, there:
        assert anyio.run(exchanged) == b"Hello, world"


@given(st.binary(max_size=2000), st.sets(st.integers(1, 60)), st.sampled_from(["gzip", "deflate", ""]))
def test_a_body_is_decompressed_wherever_it_is_cut(text: bytes, cuts: set[int], encoding: str) -> None:
    sent = {"gzip": gzip.compress, "deflate": zlib.compress, "": bytes}[encoding](text)

    async def read() -> bytes:
        async def pieces() -> AsyncIterator[bytes]:
            edges = [0, *sorted(cut for cut in cuts if cut < len(sent)), len(sent)]
            for start, end in pairwise(edges):
                yield sent[start:end]

        return b"".join([chunk async for chunk in decoded(pieces(), encoding)])

    assert anyio.run(read) == text


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"text", mtime=0)[:-3]),
        ("deflate", zlib.compress(b"text")[:-1]),
        ("gzip", b"text"),
        ("br", b"text"),
    ],
)
def test_a_body_that_is_cut_damaged_or_in_another_encoding_is_refused(encoding: str, body: bytes) -> None:
    async def read() -> None:
        async def pieces() -> AsyncIterator[bytes]:
            yield body

        async for _ in decoded(pieces(), encoding):
            pass

    with pytest.raises(zlib.error):
        anyio.run(read)
