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

_FORM = "it is written mcp+SERVER+URI, as in 'mcp+notes+memo://today'"


class ResourceReader(Protocol):
    """Reads resources of servers. A server that does not run is started."""

    async def read(self, server: str, uri: str) -> tuple[Resource, ...]:
        """Return the resources of `server` at `uri`.

        Raises:
            JpError: there is no such server, it does not start, or it has no such resource.
        """
        ...

    async def listed_resources(self, server: str) -> tuple[str, ...]:
        """Return some canonical URIs that `server` lists.

        Raises:
            JpError: there is no such server, it does not start, or the request failed.
        """
        ...


class McpHandler:
    """The handler of `mcp`: texts, pictures and PDF documents of an MCP server."""

    def __init__(self, reader: ResourceReader) -> None:
        self._reader = reader

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Return the URI unchanged: the part after the server's name belongs to the server.

        Raises:
            AttachmentError: `uri` names no server, or no resource.
        """
        del context
        parts = split_uri(uri)
        if parts is None:
            raise AttachmentError(f"{uri!r} names no resource of an MCP server", hint=_FORM)
        return canonical_uri(*parts)

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Read the resources from the server.

        Raises:
            AttachmentError: see `AttachmentHandler.resolve`.
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
            message = f"{declaration.written!r}: the MCP server {server!r} has nothing at this URI"
            raise AttachmentError(message, hint=await self._hint(server))
        return Resolution(resources=tuple(_checked(item, declaration, context) for item in found))

    async def _hint(self, server: str) -> str:
        """Return some resources of the server as a hint, if it lists any."""
        try:
            uris = await self._reader.listed_resources(server)
        except JpError:
            return ""
        return f"It has, for example: {', '.join(uris)}." if uris else ""


def _checked(resource: Resource, declaration: Declaration, context: ResolveContext) -> Resource:
    """Return a resource that can be attached, with the type of its content."""
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
