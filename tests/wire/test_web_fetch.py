"""`web_fetch` against a server: what comes, and where it does not go."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from jp.app.toolset import AttachmentWeb
from jp.config.entries import AccessConfig, ToolConfig
from jp.conversation.entries import Facts
from jp.conversation.resource import ResourceBlock, TextBlock
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.web_fetch import WebFetch
from loopback import HTML, Loopback, Reply

LOCAL = ToolConfig(access=AccessConfig(local_network=True))


def fetch(url: str, settings: ToolConfig = LOCAL) -> ToolOutput:
    invocation = ToolInvocation(arguments={"url": url}, root=Path("/nowhere"), settings=settings)
    return anyio.run(WebFetch(AttachmentWeb()).run, invocation)


def said(output: ToolOutput) -> str:
    assert output.is_error
    (block,) = output.content
    assert isinstance(block, TextBlock)
    return block.text or ""


def test_a_page_is_a_resource_of_markdown_with_its_canonical_address() -> None:
    page = b"<html><title>Pie</title><nav>menu</nav><main><h1>Pie</h1><p>Eat <b>it</b>.</p></main></html>"
    with Loopback(Reply(status=302, headers=(("location", "/pie"),)), Reply(headers=HTML, body=page)) as server:
        output = fetch(f"{server.url}/start#top".replace("http://", "HTTP://"))

    (block,) = output.content
    assert isinstance(block, ResourceBlock)
    assert (block.resource.uri, block.resource.mime_type) == (f"{server.url}/start", "text/markdown")
    assert block.resource.text == "# Pie\n\nEat **it**."
    assert output.facts == Facts(kind="web", url=f"{server.url}/start", title="Pie", status=200)
    assert not output.is_error


def test_what_a_page_lacks_is_told() -> None:
    with Loopback(Reply(headers=HTML, body=b"<title>Only this</title><script>write()</script>")) as server:
        output = fetch(server.url)

    assert output.content[1] == TextBlock(text=f"Note: the page at '{server.url}/' has no text; its title is attached.")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "127.1", "169.254.169.254", "192.168.0.1"])
def test_the_users_own_network_is_not_reached(host: str) -> None:
    assert said(fetch(f"http://{host}/x", ToolConfig())) == (
        f"'http://{host}/x' lies in the user's own network, which must not be reached"
    )


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://example.com", "'ftp://example.com' is not a web address"),
        ("file:///etc/passwd", "'file:///etc/passwd' is not a web address"),
        ("http://me:secret@example.com/", "'http://example.com/' was given with a name and a password"),
    ],
)
def test_what_is_no_address_for_a_model_is_refused(url: str, words: str) -> None:
    assert said(fetch(url)).startswith(words)


def test_a_failure_of_the_server_is_told() -> None:
    with Loopback(Reply(status=404, headers=HTML)) as server:
        output = fetch(f"{server.url}/x")

    assert said(output) == f"'{server.url}/x' answered 404 Not Found"
    assert output.facts == Facts(kind="web", url=f"{server.url}/x", status=404, first_error=said(output))


def test_of_what_no_server_answered_only_the_address_and_what_is_wrong_are_known() -> None:
    output = fetch("ftp://example.com")

    assert output.facts == Facts(kind="web", url="ftp://example.com", first_error=said(output))
