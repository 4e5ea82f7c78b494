"""The log of requests that `-v` writes to stderr."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthropic_wire import ending, start, text
from forked import run_jp
from jp.cli.options import GlobalOptions
from jp.provider.transport import HttpRequest, Limits, get, sharing_connections
from loopback import JSON, Loopback, Reply, sse
from stage import make_workspace

KEY = "sk-ant-test-0123456789"
HELLO = Reply(body=sse(start(), *text(0, "Hello"), *ending()))
BUSY = Reply(status=529, headers=JSON, body=b'{"error": {"type": "overloaded_error", "message": "busy"}}')


def logged(server: Loopback, root: Path, *options: str) -> list[str]:
    base = f"providers.llm.anthropic.base_url={server.url}"
    waits = "assistant.request.base_backoff_ms=0"
    arguments = ["query", "--cfg", base, "--cfg", waits, "--model", "anthropic/claude-sonnet-5-5", *options, "hello"]
    result = run_jp(*arguments, cwd=root, env={"ANTHROPIC_API_KEY": KEY})
    assert (result.code, result.stdout) == (0, "Hello\n"), result
    assert KEY not in result.stderr
    lines = [line for line in result.stderr.splitlines() if "POST" in line]
    return [re.sub(r"\d+\.\d\d s|\d[\d,]* bytes", "N", line.replace(server.url, "HERE")) for line in lines]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


def test_it_says_where_a_request_goes_and_what_comes_of_it(root: Path) -> None:
    with Loopback(HELLO) as server:
        assert logged(server, root, "-v") == [
            "log: POST HERE/v1/messages: N",
            "log: POST HERE/v1/messages: responds 200 after N",
            "log: POST HERE/v1/messages: used 10 tokens in, 5 out",
            "log: POST HERE/v1/messages: has ended after N",
        ]


def test_tokens_from_the_cache_are_counted_apart(root: Path) -> None:
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 1200, "cache_creation_input_tokens": 40}
    with Loopback(Reply(body=sse(start(usage=usage), *text(0, "Hello"), *ending()))) as server:
        assert "log: POST HERE/v1/messages: used 1,250 tokens in, of these 1,200 cached, 5 out" in logged(
            server, root, "-v"
        )


def test_each_attempt_is_a_request(root: Path) -> None:
    with Loopback(BUSY, HELLO) as server:
        assert [line.partition(": ")[2].partition("messages: ")[2] for line in logged(server, root, "-v")] == [
            "N",
            "responds 529 after N",
            "failed: anthropic answered 529: busy after N",
            "N",
            "responds 200 after N",
            "used 10 tokens in, 5 out",
            "has ended after N",
        ]


def test_without_the_option_nothing_is_said(root: Path) -> None:
    with Loopback(HELLO) as server:
        assert logged(server, root) == []


SECRETS = st.text("abcXYZ019-_.", min_size=8, max_size=20).map("SECRET{}".format)


@given(SECRETS, SECRETS, SECRETS)
def test_nothing_but_the_address_and_the_path_is_said(user: str, password: str, key: str) -> None:
    said: list[str] = []

    async def ask(port: int) -> None:
        request = HttpRequest(
            url=f"http://{user}:{password}@127.0.0.1:{port}/models?key={key}#{key}", headers=(), body=b""
        )
        with sharing_connections(said.append):
            try:
                async with get(request, Limits(connect_timeout=5)):
                    pass
            except Exception as error:  # noqa: BLE001 - a response is no matter here
                said.append(type(error).__name__)

    with Loopback(otherwise=lambda _: Reply(headers=JSON, body=b"{}")) as server:
        anyio.run(ask, int(server.url.rpartition(":")[2]))

    assert any("/models" in line for line in said)
    assert not any("SECRET" in line for line in said)


class OddError(Exception):
    """An error that nobody knows, with the `text` that a server may have sent."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_asked = False

    def __str__(self) -> str:
        self.is_asked = True
        return self.text


def fail(error: OddError, said: list[str] | None) -> None:
    """Let a request fail, heard by `said`."""

    async def ask() -> None:
        with sharing_connections(None if said is None else said.append):
            async with get(HttpRequest(url=server.url, headers=()), Limits(connect_timeout=5)):
                raise error

    with Loopback(otherwise=Reply(headers=JSON, body=b"{}")) as server, pytest.raises(OddError):
        anyio.run(ask)


@given(st.text())
def test_an_unknown_error_is_one_line_without_control_characters(text: str) -> None:
    said: list[str] = []

    fail(OddError(f"<{text}>"), said)

    assert all(line.isprintable() for line in said)
    assert "failed: <" in said[-1]
    assert "".join(filter(str.isprintable, text)).replace(" ", "") in said[-1].replace(" ", "")


def test_nothing_is_composed_where_nobody_listens() -> None:
    error = OddError("a secret")

    fail(error, None)

    assert not error.is_asked
    assert not GlobalOptions().is_verbose
    assert GlobalOptions(verbosity=1).is_verbose


def test_the_log_ends_with_the_sharing_of_connections() -> None:
    said: list[str] = []

    async def ask() -> None:
        with sharing_connections(said.append), sharing_connections():
            pass
        async with get(HttpRequest(url=server.url, headers=()), Limits(connect_timeout=5)):
            pass

    with Loopback(otherwise=Reply(headers=JSON, body=b"{}")) as server:
        anyio.run(ask)

    assert said == []
