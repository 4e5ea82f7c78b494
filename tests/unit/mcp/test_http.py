from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from jp.config.entries import McpServerConfig
from jp.conversation.resource import TextBlock
from jp.errors import ConfigurationError, JpError
from jp.mcp import transport
from jp.mcp.connection import Connection
from mcp_connections import Heard, calling, connected, with_server
from mcp_http import SESSION, HttpServer, serving


@pytest.fixture(autouse=True)
def _no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whom TLS trusts is no matter of these servers, so it must not be read."""
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/at/all")


def failure(config: McpServerConfig, tmp_path: Path) -> str:
    """Why a server cannot be used."""

    async def work(connection: Connection, heard: Heard) -> str:
        with pytest.raises(JpError) as error:
            await connection.listing()
        assert heard.failures == [error.value.message]
        return error.value.message

    return with_server(work, tmp_path, config)


def test_a_server_at_an_address_gets_its_headers_and_its_session_ends(tmp_path: Path) -> None:
    async def run(config: McpServerConfig) -> None:
        environment = {**os.environ, "NOTES_TOKEN": "Bearer secret\n"}
        async with connected(config, tmp_path, environment=environment) as (connection, _):
            assert (await connection.listing()).tool("echo") is not None
            called = await connection.call(calling("echo", text="hé"))
            assert called.content == (TextBlock(text="hé"),)
            (note,) = await connection.read("memo://note")
            assert (note.uri, note.text) == ("mcp+s+memo://note", "a note")

    with serving(HttpServer()) as server:
        anyio.run(
            run,
            McpServerConfig(url=server.url, headers={"x-team": "blue"}, headers_env={"authorization": "NOTES_TOKEN"}),
        )
        methods = [(kind, method) for kind, method, _ in server.requests]
        heard = [headers for _, _, headers in server.requests]

    assert ("POST", "initialize") in methods
    assert methods[-1] == ("DELETE", "")
    assert {headers["authorization"] for headers in heard} == {"Bearer secret"}
    assert {headers["x-team"] for headers in heard} == {"blue"}
    assert {headers["accept-encoding"] for headers in heard} == {"identity"}
    assert heard[-1]["mcp-session-id"] == SESSION


def test_a_header_whose_variable_is_not_set_is_named(tmp_path: Path) -> None:
    config = McpServerConfig(url="http://127.0.0.1:9/mcp", headers_env={"authorization": "NO_SUCH_TOKEN"})

    async def work(connection: Connection, _: Heard) -> None:
        with pytest.raises(ConfigurationError, match="'NO_SUCH_TOKEN', which is not set"):
            await connection.listing()

    with_server(work, tmp_path, config)


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (HttpServer(status=401), "answers with the status 401"),
        (HttpServer(status=500), "answers with the status 500"),
        (HttpServer(status=307), "Redirect to https://example.com/mcp not followed"),
        (HttpServer(padding=1_000_000), "more than 1,000,000 bytes"),
        (HttpServer(encoding="gzip"), "compressed"),
    ],
)
def test_a_server_that_refuses_or_sends_too_much_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: HttpServer, why: str
) -> None:
    monkeypatch.setattr(transport, "LONGEST_MESSAGE", 1_000_000)
    with serving(server):
        message = failure(McpServerConfig(url=server.url), tmp_path)

    assert message.startswith("the MCP server 's' ")
    assert why in message


def test_a_server_that_is_not_there_cannot_be_reached(tmp_path: Path) -> None:
    with serving(HttpServer()) as server:
        url = server.url

    assert failure(McpServerConfig(url=url), tmp_path).startswith("the MCP server 's' cannot be reached: ")


def test_what_is_too_much_over_http_fails_the_call_and_not_the_command(tmp_path: Path) -> None:
    async def work(connection: Connection, heard: Heard) -> None:
        with pytest.raises(JpError) as many:
            await connection.call(calling("blocks"))
        assert many.value.message == (
            "the MCP server 's' sent a result with 30,000 items in 'content': at most 1,000 are taken"
        )
        with pytest.raises(JpError) as stopped:
            await connection.call(calling("values"))
        assert stopped.value.message == (
            "the MCP server 's' was stopped: it sent a message of more than 100,000 values"
        )
        assert heard.failures == [stopped.value.message]

    with serving(HttpServer()) as server:
        with_server(work, tmp_path, McpServerConfig(url=server.url))
