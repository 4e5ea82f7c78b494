"""Resources and tool results as content blocks of the Messages API. Pure."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import assert_never

from jp.conversation.entries import JsonObject
from jp.conversation.resource import (
    AudioBlock,
    BinaryContent,
    Block,
    Carrier,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    StoredContent,
    TextBlock,
    TextContent,
    content_of,
)
from jp.provider.errors import ProviderError

_IMAGES = {
    "image/jpeg": "image/jpeg",
    "image/jpg": "image/jpeg",
    "image/png": "image/png",
    "image/gif": "image/gif",
    "image/webp": "image/webp",
}
_PDF = "application/pdf"
_LONGEST_TITLE = 500


def text_block(text: str) -> JsonObject:
    """A text block. The API refuses one without visible text: so must the caller."""
    return {"type": "text", "text": text}


def _at_hand(carrier: Carrier, name: str) -> str | bytes:
    content = content_of(carrier)
    match content:
        case TextContent(text=text):
            return text
        case BinaryContent(data=data):
            return data
        case StoredContent():
            message = f"the content of {name!r} has not been read"
            raise ProviderError(message, kind="other")
        case _:
            assert_never(content)


def _shown(resource: Resource) -> str | bytes:
    """What the model gets to see: `formatted` wins over the content."""
    return _at_hand(resource, resource.uri) if resource.formatted is None else resource.formatted


def _media_type(mime_type: str | None) -> str:
    return (mime_type or "").partition(";")[0].strip().lower()


def _binary_source(data: bytes, media_type: str) -> JsonObject:
    return {"type": "base64", "media_type": media_type, "data": binascii.b2a_base64(data, newline=False).decode()}


def _binary_block(data: bytes, mime_type: str | None) -> JsonObject | None:
    """An image or a PDF, None where the API takes neither."""
    media_type = _media_type(mime_type)
    if media_type in _IMAGES:
        return {"type": "image", "source": _binary_source(data, _IMAGES[media_type])}
    if media_type == _PDF:
        return {"type": "document", "source": _binary_source(data, _PDF)}
    return None


def _title(resource: Resource) -> str:
    return (resource.title or resource.name or resource.uri)[:_LONGEST_TITLE]


def _context(resource: Resource) -> JsonObject:
    """What a citation and `refresh_resource` need: the title, and the URI where that is another."""
    title = _title(resource)
    lines = [] if title == resource.uri else [f"uri: {resource.uri}"]
    if resource.description:
        lines.append(resource.description)
    return {"title": title, "context": "\n".join(lines)} if lines else {"title": title}


def attachment_blocks(resource: Resource, *, is_new: bool) -> list[JsonObject]:
    """A resource that the user attached. `formatted` wins over the content.

    `is_new` says that it was attached by the request that is to be answered. What was attached before is in the log
    for good, perhaps for another provider: where the API does not take it, a note stands for it.

    Raises:
        ProviderError: it is new and the API takes no content of that type, of kind `unsupported`.
    """
    shown = _shown(resource)
    if not shown.strip():
        return [text_block(f"{_title(resource)} ({resource.uri}) is attached and empty.")]
    if isinstance(shown, str):
        source = {"type": "text", "media_type": "text/plain", "data": shown}
        return [{"type": "document", "source": source, **_context(resource)}]
    block = _binary_block(shown, resource.mime_type)
    if block is None and is_new:
        message = f"{resource.uri!r} is {resource.mime_type or 'binary'!r}, which anthropic does not take"
        hint = "text, PDF, JPEG, PNG, GIF and WebP can be attached: ask again without it"
        raise ProviderError(message, kind="unsupported", hint=hint)
    if block is None:
        return [_note(resource.uri, resource.mime_type, len(shown))]
    if block["type"] == "document":
        return [{**block, **_context(resource)}]
    return [text_block(f"{_title(resource)} ({resource.uri}):"), block]


def _note(name: str, mime_type: str | None, size: int) -> JsonObject:
    return text_block(f"[{name}: {mime_type or 'binary'}, {size} bytes, cannot be shown to this model]")


def _media(data: str | bytes, mime_type: str | None, name: str) -> JsonObject:
    """An image or a PDF that a tool returned, and a note in place of anything else.

    A tool's output must not make a conversation unsendable.
    """
    block = _binary_block(data, mime_type) if isinstance(data, bytes) and data else None
    return block or _note(name, mime_type, len(data))


def _delivered(resource: Resource, *, alone: bool) -> list[JsonObject]:
    """A resource that a tool returned. Where other blocks stand beside it, it says which one it is."""
    shown = _shown(resource)
    if isinstance(shown, str):
        return [text_block(shown if alone else f'<resource uri="{resource.uri}">\n{shown}\n</resource>')]
    label = [] if alone else [text_block(f"{resource.uri}:")]
    return [*label, _media(shown, resource.mime_type, resource.uri)]


def _result_block(block: Block, *, alone: bool) -> list[JsonObject]:
    match block:
        case TextBlock():
            return [text_block(str(_at_hand(block, "text")))]
        case ResourceBlock(resource=resource):
            return _delivered(resource, alone=alone)
        case ImageBlock() | AudioBlock():
            return [_media(_at_hand(block, block.mime_type), block.mime_type, "content")]
        case ResourceLink():
            name = block.title or block.name or ""
            return [text_block(f"[resource {name}: {block.uri}]" if name else f"[resource {block.uri}]")]
        case _:
            assert_never(block)


def result_content(content: Sequence[Block], *, is_error: bool) -> list[JsonObject]:
    """The content of a tool's result, possibly none. The API wants an error explained, and in words only."""
    alone = len(content) == 1
    blocks = [wire for block in content for wire in _result_block(block, alone=alone)]
    if is_error:
        blocks = [block if block["type"] == "text" else text_block(f"[{block['type']}]") for block in blocks]
    seen = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
    return seen or ([text_block("The tool failed without saying why.")] if is_error else [])
