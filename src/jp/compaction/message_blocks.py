"""Contents of the log as blocks of `jp.context`. What lies in the blob store stays there."""

from __future__ import annotations

from typing import assert_never

from jp.context.types import Block as MessageBlock
from jp.context.types import StoredBlock
from jp.context.types import TextBlock as MessageText
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
    checksum,
    content_of,
    formatted_of,
)


def block_of_resource(resource: Resource, origin: str) -> MessageBlock:
    """What a model is shown of a snapshot: `formatted` where there is one."""
    return _block_of(resource, resource.mime_type or "", resource.uri, origin)


def block_of_result(block: Block, origin: str) -> MessageBlock:
    """What a model is shown of a block that a tool returned."""
    match block:
        case TextBlock():
            return _block_of(block, "", "", origin)
        case ResourceBlock(resource=resource):
            return block_of_resource(resource, origin)
        case ImageBlock(mime_type=mime_type) | AudioBlock(mime_type=mime_type):
            return _block_of(block, mime_type, "", origin)
        case ResourceLink():
            words = (block.uri, block.title or block.name, block.description)
            return MessageText(text="\n".join(filter(None, words)), uri=block.uri, origin=origin)
        case _:
            assert_never(block)


def _block_of(carrier: Carrier, mime_type: str, uri: str, origin: str) -> MessageBlock:
    formatted = formatted_of(carrier)
    if formatted is not None:
        return MessageText(text=formatted, uri=uri, origin=origin)
    content = content_of(carrier)
    match content:
        case TextContent(text=text):
            return MessageText(text=text, uri=uri, origin=origin)
        case BinaryContent(data=data):
            return StoredBlock(sha256=checksum(carrier), size=len(data), mime_type=mime_type, uri=uri, origin=origin)
        case StoredContent(sha256=sha256, size=size, chars=chars, lines=lines):
            return StoredBlock(
                sha256=sha256, size=size, mime_type=mime_type, chars=chars, lines=lines, uri=uri, origin=origin
            )
        case _:
            assert_never(content)
