"""Resources and tool results as content blocks of the Messages API. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from jp.conversation.entries import JsonObject
from jp.conversation.resource import Block, Resource
from jp.provider.showing import (
    IMAGES,
    PDF,
    Media,
    Shown,
    Words,
    empty_attachment,
    media_type_of,
    not_shown,
    not_taken,
    result,
    shown_of,
    title_of,
)

_TAKEN = frozenset({*IMAGES, PDF})
_LONGEST_TITLE = 500


def text_block(text: str) -> JsonObject:
    """A text block. The API refuses one without visible text: so must the caller."""
    return {"type": "text", "text": text}


def _block(shown: Shown) -> JsonObject:
    match shown:
        case Words(text=text):
            return text_block(text)
        case Media(media_type=media_type):
            source = {"type": "base64", "media_type": media_type, "data": shown.base64}
            return {"type": "document" if media_type == PDF else "image", "source": source}
        case _:
            assert_never(shown)


def _context(resource: Resource) -> JsonObject:
    """What a citation and `refresh_resource` need: the title, and the URI where that is another."""
    title = title_of(resource)[:_LONGEST_TITLE]
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
    shown = shown_of(resource)
    if not shown.strip():
        return [text_block(empty_attachment(resource))]
    if isinstance(shown, str):
        source = {"type": "text", "media_type": "text/plain", "data": shown}
        return [{"type": "document", "source": source, **_context(resource)}]
    media_type = media_type_of(resource.mime_type)
    if media_type not in _TAKEN:
        if is_new:
            raise not_taken(resource, "anthropic", "text, PDF, JPEG, PNG, GIF and WebP")
        return [text_block(not_shown(resource.uri, resource.mime_type, len(shown)))]
    block = _block(Media(data=shown, media_type=media_type, name=resource.uri))
    if block["type"] == "document":
        return [{**block, **_context(resource)}]
    return [text_block(f"{title_of(resource)[:_LONGEST_TITLE]} ({resource.uri}):"), block]


def result_content(content: Sequence[Block], *, is_error: bool) -> list[JsonObject]:
    """The content of a tool's result, possibly none. The API wants an error explained, and in words only."""
    return [_block(shown) for shown in result(content, takes=_TAKEN, is_error=is_error)]
