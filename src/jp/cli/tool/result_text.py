"""The result of a tool as people read it."""

from __future__ import annotations

from typing import assert_never

from jp.conversation.resource import (
    AudioBlock,
    Block,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
    size_in_bytes,
)
from jp.render.units import size_text
from jp.tool.base import ToolOutput


def said(output: ToolOutput) -> str:
    """A result as people read it; what is no text, is said in words."""
    return "\n".join(text.removesuffix("\n") for text in map(_said, output.content))


def _said(block: Block) -> str:
    match block:
        case TextBlock(text=text):
            return text or ""
        case ResourceBlock(resource=resource) if resource.text is not None:
            return resource.text
        case ResourceBlock(resource=Resource(uri=where, mime_type=kind)) | ResourceLink(uri=where, mime_type=kind):
            return f"[{where}{f', {kind}' if kind else ''}]"
        case ImageBlock(mime_type=kind) | AudioBlock(mime_type=kind):
            return f"[{kind}, {size_text(size_in_bytes(block))}]"
        case _:
            assert_never(block)
