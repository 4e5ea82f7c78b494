"""The text of a result, for who reads or edits it as one. Pure."""

from __future__ import annotations

from jp.conversation.resource import Block, ResourceBlock, TextBlock
from jp.tool.base import ToolOutput


def text_of(output: ToolOutput) -> str:
    """All text of a result, its blocks apart by a blank line."""
    return "\n\n".join(text for block in output.content if (text := _text(block)) is not None)


def other_than_text(output: ToolOutput) -> int:
    """Return how many blocks of a result are no text."""
    return sum(_text(block) is None for block in output.content)


def with_text(output: ToolOutput, text: str) -> ToolOutput:
    """`output` with `text` in place of its own; what is no text stays. What was recorded of it is not known of this."""
    if text == text_of(output):
        return output
    others = tuple(block for block in output.content if _text(block) is None)
    return ToolOutput(content=(TextBlock(text=text), *others), is_error=output.is_error)


def _text(block: Block) -> str | None:
    match block:
        case TextBlock(text=text):
            return text
        case ResourceBlock(resource=resource):
            return resource.text
        case _:
            return None
