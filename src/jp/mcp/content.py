"""What servers deliver, as blocks and resources of jp's own."""

from __future__ import annotations

import binascii
from collections.abc import Iterable
from typing import TYPE_CHECKING, assert_never

from jp.conversation.resource import (
    Annotations,
    AudioBlock,
    Block,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
)
from jp.mcp.definitions import canonical_uri

if TYPE_CHECKING:
    import mcp_types as types


MOST_READ = 4
"""So many links of one result are read."""

_LARGEST = 256 * 1024
"""In bytes, as the server says."""

_TEXTUAL = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")


def worth_reading(content: Iterable[types.ContentBlock]) -> list[types.ResourceLink]:
    """The links of a result that are read at once; none where there are more than a few."""
    links = [item for item in content if item.type == "resource_link"]
    return [link for link in links if _is_small_text(link)] if len(links) <= MOST_READ else []


def _is_small_text(link: types.ResourceLink) -> bool:
    """What a link does not say is not held against it."""
    return (link.mime_type is None or is_textual(link.mime_type)) and (link.size or 0) <= _LARGEST


def is_textual(mime_type: str) -> bool:
    """Whether what is of this type is text."""
    return mime_type.startswith(_TEXTUAL) or mime_type.endswith(("+json", "+xml"))


def blocks_of(server: str, content: Iterable[types.ContentBlock]) -> tuple[Block, ...]:
    """The blocks of a tool's result."""
    return tuple(_block(server, item) for item in content)


def _block(server: str, item: types.ContentBlock) -> Block:
    match item.type:
        case "text":
            return TextBlock(text=item.text)
        case "image" | "audio":
            return _media(item)
        case "resource":
            resource = resource_of(server, item.resource, item.annotations)
            said = f"[resource {item.resource.uri}: its content is not base64]"
            return TextBlock(text=said) if resource is None else ResourceBlock(resource=resource)
        case "resource_link":
            return ResourceLink(
                uri=canonical_uri(server, item.uri),
                name=item.name,
                title=item.title,
                description=item.description,
                mime_type=item.mime_type,
            )
        case _:
            assert_never(item)


def _media(item: types.ImageContent | types.AudioContent) -> Block:
    data = decoded(item.data)
    if data is None:
        return TextBlock(text=f"[{item.type} of type {item.mime_type}: its content is not base64]")
    made = ImageBlock if item.type == "image" else AudioBlock
    return made(mime_type=item.mime_type, blob=data)


def resource_of(
    server: str,
    contents: types.TextResourceContents | types.BlobResourceContents,
    annotations: types.Annotations | None = None,
) -> Resource | None:
    """A resource as it was read or embedded; None where what is there for its bytes is not base64."""
    import mcp_types as types

    uri = canonical_uri(server, contents.uri)
    said = None if annotations is None else _annotations(annotations)
    if isinstance(contents, types.TextResourceContents):
        return Resource(uri=uri, mime_type=contents.mime_type, annotations=said, text=contents.text)
    data = decoded(contents.blob)
    if data is None:
        return None
    text = _text(data, contents.mime_type)
    blob = data if text is None else None
    return Resource(uri=uri, mime_type=contents.mime_type, annotations=said, text=text, blob=blob)


def _text(data: bytes, mime_type: str | None) -> str | None:
    """The text that bytes are, where their type says so."""
    if mime_type is None or not is_textual(mime_type):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _annotations(said: types.Annotations) -> Annotations:
    audience = None if said.audience is None else tuple(said.audience)
    return Annotations(audience=audience, priority=said.priority, last_modified=said.last_modified)


def decoded(text: str) -> bytes | None:
    """The bytes of base64, which may be broken into lines; None where it is none."""
    try:
        return binascii.a2b_base64(text.encode("ascii", "replace").translate(None, b" \t\r\n"), strict_mode=True)
    except ValueError:
        return None
