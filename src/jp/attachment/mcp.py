"""The `mcp+SERVER+URI` scheme: resources of MCP servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, assert_never

from msgspec.structs import replace

from jp.attachment.base import AttachmentError, Declaration, MissingSourceError, Resolution, ResolveContext, format_size
from jp.attachment.media import BinaryMedia, TextMedia, UnsupportedMedia, identify
from jp.conversation.resource import Resource, size_in_bytes
from jp.errors import JpError
from jp.mcp.definitions import RefusalError, canonical_uri, split_uri

_FORM = "It is written mcp+SERVER+URI, as in 'mcp+notes+memo://today'."


class ResourceReader(Protocol):
    """Has servers read resources. A server is started where it does not run."""

    async def read(self, server: str, uri: str) -> tuple[Resource, ...]:
        """Return what `server` has under its `uri`.

        Raises:
            JpError: there is no such server, it does not start, or it has no such resource.
        """
        ...

    async def listed_resources(self, server: str) -> tuple[str, ...]:
        """Some URIs that `server` lists, as jp knows them.

        Raises:
            JpError: there is no such server, it does not start, or it does not say.
        """
        ...


class McpHandler:
    """`mcp`: the texts, pictures and PDF documents that a server gives for a URI."""

    def __init__(self, reader: ResourceReader) -> None:
        self._reader = reader

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Return the URI as it is: what follows the server's name is the server's own.

        Raises:
            AttachmentError: it names no server, or nothing that it has.
        """
        del context
        parts = split_uri(uri)
        if parts is None:
            raise AttachmentError(f"{uri!r} names no resource of an MCP server", hint=_FORM)
        return canonical_uri(*parts)

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Have the server read it.

        Raises:
            AttachmentError: see the port; the message names the server.
        """
        exclude = next((exclude for exclude in excludes if exclude.uri == declaration.uri), None)
        if exclude is not None:
            notice = f"{declaration.written!r} attaches nothing: {exclude.written!r} excludes it"
            return Resolution(resources=(), notices=(notice,))
        parts = split_uri(declaration.uri)
        if parts is None:
            raise AttachmentError(f"{declaration.written!r} names no resource of an MCP server", hint=_FORM)
        server, uri = parts
        try:
            found = await self._reader.read(server, uri)
        except JpError as error:
            failure = MissingSourceError if isinstance(error, RefusalError) else AttachmentError
            raise failure(
                f"{declaration.written!r} cannot be read: {error.message}",
                hint=error.hint or await self._hint(server),
            ) from error
        if not found:
            message = f"{declaration.written!r}: the MCP server {server!r} gives nothing for it"
            raise AttachmentError(message, hint=await self._hint(server))
        return Resolution(resources=tuple(_checked(item, declaration, context) for item in found))

    async def _hint(self, server: str) -> str:
        """Return what the server has, if it says."""
        try:
            uris = await self._reader.listed_resources(server)
        except JpError:
            return ""
        return f"It has, for example: {', '.join(uris)}." if uris else ""


def _checked(resource: Resource, declaration: Declaration, context: ResolveContext) -> Resource:
    """Return a resource that can be attached, of the type that its content has where it is of another one."""
    name = resource.uri.split("+", 2)[-1]
    size = size_in_bytes(resource)
    if size > context.max_bytes:
        limit = format_size(context.max_bytes)
        message = f"{declaration.written!r} has {format_size(size)}; an attachment has at most {limit}"
        raise AttachmentError(message, hint="`conversation.max_attachment_bytes` is the limit")
    if resource.blob is None:
        return replace(resource, name=name, mime_type=resource.mime_type or "text/plain")
    media = identify(resource.blob, name)
    match media:
        case TextMedia(text=text, mime_type=mime_type):
            return replace(resource, name=name, mime_type=resource.mime_type or mime_type, text=text, blob=None)
        case BinaryMedia(mime_type=mime_type):
            return replace(resource, name=name, mime_type=mime_type)
        case UnsupportedMedia(reason=reason, hint=hint):
            raise AttachmentError(f"{declaration.written!r} is {reason}", hint=hint)
        case _:
            assert_never(media)
