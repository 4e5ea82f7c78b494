from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from jp.attachment.base import AttachmentError, Declaration, MissingSourceError, Resolution, ResolveContext
from jp.attachment.mcp import McpHandler
from jp.conversation.resource import Resource
from jp.mcp.definitions import RefusalError, ServerError

CONTEXT = ResolveContext(root=Path("/srv"), cwd=Path("/srv"), max_bytes=100)
PDF = b"%PDF-1.7"


class Shelf:
    """A server that has what it was given."""

    def __init__(self, *resources: Resource, silent: bool = False) -> None:
        self.asked: list[tuple[str, str]] = []
        self._resources = resources
        self._silent = silent

    async def read(self, server: str, uri: str) -> tuple[Resource, ...]:
        self.asked.append((server, uri))
        if uri == "memo://gone":
            raise RefusalError("the MCP server 's' says: gone")
        if uri == "memo://down":
            raise ServerError("the MCP server 's' has ended", hint="start it")
        return self._resources

    async def listed_resources(self, server: str) -> tuple[str, ...]:
        if self._silent:
            raise ServerError(f"the MCP server {server!r} has ended")
        return ("mcp+s+memo://a",)


def of(uri: str = "mcp+s+memo://a", *, exclude: bool = False) -> Declaration:
    return Declaration(uri=uri, written=f"!{uri}" if exclude else uri, exclude=exclude)


def resolved(shelf: Shelf, declaration: Declaration, *excludes: Declaration) -> Resolution:
    async def run() -> Resolution:
        return await McpHandler(shelf).resolve(declaration, CONTEXT, excludes=excludes)

    return anyio.run(run)


def test_a_server_and_what_it_calls_a_resource_are_a_uri() -> None:
    handler = McpHandler(Shelf())

    assert handler.canonical("MCP+my_notes+memo://a b", CONTEXT) == "mcp+my_notes+memo://a%20b"
    for wrong in ("mcp:x", "mcp+s:x", "mcp+s+"):
        with pytest.raises(AttachmentError, match="names no resource"):
            handler.canonical(wrong, CONTEXT)


@pytest.mark.parametrize(
    ("given", "mime_type", "content"),
    [
        (Resource(uri="mcp+s+memo://a", text="words"), "text/plain", "words"),
        (Resource(uri="mcp+s+memo://a", mime_type="text/html", text="<p>"), "text/html", "<p>"),
        (Resource(uri="mcp+s+memo://a", mime_type="text/plain", blob=PDF), "application/pdf", PDF),
        (Resource(uri="mcp+s+memo://a.py", blob=b"pass"), "text/x-python", "pass"),
    ],
)
def test_a_resource_is_what_its_content_is(given: Resource, mime_type: str, content: str | bytes) -> None:
    shelf = Shelf(given)

    (resource,) = resolved(shelf, of()).resources

    assert shelf.asked == [("s", "memo://a")]
    assert (resource.uri, resource.mime_type) == (given.uri, mime_type)
    assert resource.name == given.uri.removeprefix("mcp+s+")
    assert (resource.blob if resource.text is None else resource.text) == content


def test_what_is_excluded_is_not_read() -> None:
    shelf = Shelf()

    resolution = resolved(shelf, of(), of(exclude=True))

    assert (resolution.resources, shelf.asked) == ((), [])
    assert resolution.notices == ("'mcp+s+memo://a' attaches nothing: '!mcp+s+memo://a' excludes it",)


@pytest.mark.parametrize(
    ("uri", "given", "kind", "words"),
    [
        ("mcp+s+memo://gone", (), MissingSourceError, ("says: gone", "It has, for example: mcp+s+memo://a.")),
        ("mcp+s+memo://down", (), AttachmentError, ("'s' has ended", "start it")),
        ("mcp+s+memo://a", (), AttachmentError, ("'s' gives nothing for it", "for example")),
        ("mcp+s+memo://a", (Resource(uri="u", text="x" * 101),), AttachmentError, ("at most 100", "is the limit")),
        ("mcp+s+memo://a", (Resource(uri="u", blob=b"a\0b"),), AttachmentError, ("is binary", "can be attached")),
        ("file:a", (), AttachmentError, ("names no resource", "mcp+SERVER+URI")),
    ],
)
def test_what_cannot_be_attached_is_an_error_with_a_hint(
    uri: str, given: tuple[Resource, ...], kind: type[AttachmentError], words: tuple[str, str]
) -> None:
    message, hint = words

    with pytest.raises(kind, match=message) as error:
        resolved(Shelf(*given), of(uri))

    assert repr(uri) in error.value.message
    assert hint in error.value.hint


def test_a_server_that_does_not_say_what_it_has_gives_no_hint() -> None:
    with pytest.raises(MissingSourceError) as error:
        resolved(Shelf(silent=True), of("mcp+s+memo://gone"))

    assert error.value.hint == ""
