"""Resources and content blocks of a stored conversation: a line about each, and as much of its text as is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from jp.context.estimate import estimate_tokens, estimate_tokens_of_bytes
from jp.conversation.carriers import CarrierChange
from jp.conversation.resource import (
    BinaryContent,
    Block,
    Carrier,
    Resource,
    ResourceBlock,
    ResourceLink,
    StoredContent,
    TextBlock,
    TextContent,
    content_of,
    size_in_bytes,
)
from jp.errors import StorageError
from jp.render.amounts import count_text, size_text
from jp.render.parts import Note, Output, Part


def resource_parts(resource: Resource, said: str, *, load: CarrierChange, lines: int | None) -> Iterator[Note | Output]:
    """A line about a resource that begins with `said`, and `lines` of its text; None shows all."""
    names = [name for name in (resource.name, resource.mime_type) if name]
    yield Note(text=f"{said} {resource.uri} ({', '.join([*names, *_weight(resource)])})")
    yield from _text(resource, load, lines)


def block_parts(block: Block, *, load: CarrierChange, lines: int | None) -> Iterator[Part]:
    """What a tool brought, `lines` of it; None shows all."""
    match block:
        case TextBlock():
            yield from _text(block, load, lines)
        case ResourceBlock(resource=resource):
            yield from resource_parts(resource, "resource", load=load, lines=lines)
        case ResourceLink():
            yield Note(text=f"link {block.uri}")
        case _:
            yield Note(text=f"{block.mime_type}, {size_text(size_in_bytes(block))}")


def _weight(resource: Resource) -> list[str]:
    """Its lines, size and tokens, as far as they are known without reading it."""
    content = content_of(resource)
    size = size_text(size_in_bytes(resource))
    match content:
        case TextContent(text=text):
            return [count_text(len(text.splitlines()), "line"), size, _tokens(estimate_tokens(text))]
        case StoredContent(chars=None):
            return [size]
        case StoredContent(lines=lines):
            known = [] if lines is None else [count_text(lines, "line")]
            return [*known, size, _tokens(estimate_tokens_of_bytes(content.size))]
        case BinaryContent():
            return [size]
        case _:
            assert_never(content)


def _tokens(count: int) -> str:
    return f"about {count_text(count, 'token')}"


def _text(carrier: Carrier, load: CarrierChange, bound: int | None) -> Iterator[Note | Output]:
    if bound == 0 or _is_binary(carrier):
        return
    try:
        content = content_of(load(carrier))
    except StorageError as error:
        yield Note(text=error.message, is_failure=True)
        return
    if not isinstance(content, TextContent):
        return
    lines = content.text.splitlines()
    shown = lines if bound is None else lines[:bound]
    if shown:
        yield Output(lines=tuple(shown), left_out=len(lines) - len(shown))


def _is_binary(carrier: Carrier) -> bool:
    content = content_of(carrier)
    return isinstance(content, BinaryContent) or (isinstance(content, StoredContent) and content.chars is None)
