"""What is kept of one result at most. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from jp.conversation.resource import Block, Resource, ResourceBlock, ResourceLink, TextBlock, size_in_bytes
from jp.tool.base import ToolOutput

CEILING = 10 * 1024 * 1024
"""Bytes that are kept of one result."""

MOST_BLOCKS = 1000
"""Blocks that are kept of one result."""


def within_ceiling(output: ToolOutput, *, ceiling: int = CEILING, most_blocks: int = MOST_BLOCKS) -> ToolOutput:
    """`output`; where it is beyond the ceiling, its beginning with a note that says so."""
    sizes = [_size(block) for block in output.content]
    if sum(sizes) <= ceiling and len(sizes) <= most_blocks:
        return output
    kept: list[Block] = []
    left = ceiling
    for block, size in zip(output.content[:most_blocks], sizes, strict=False):
        if size > left:
            kept += _beginning(block, left)
            break
        kept.append(block)
        left -= size
    note = f"[Only the beginning of the result was kept: it had {sum(sizes):,} bytes in {len(sizes):,} parts.]"
    return replace(output, content=(*kept, TextBlock(text=note)))


def _size(block: Block) -> int:
    match block:
        case ResourceBlock(resource=resource):
            return size_in_bytes(resource)
        case ResourceLink(uri=uri, description=description):
            return len(uri) + len(description or "")
        case _:
            return size_in_bytes(block)


def _beginning(block: Block, size: int) -> list[Block]:
    """As much of a block as there is room for; of what is no text, nothing."""
    match block:
        case TextBlock(text=str() as text):
            return [replace(block, text=_cut(text, size))]
        case ResourceBlock(resource=Resource(text=str() as text) as resource):
            return [ResourceBlock(resource=replace(resource, text=_cut(text, size)))]
        case _:
            return []


def _cut(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")
