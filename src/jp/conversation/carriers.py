"""Walking whatever holds content in an entry or a view, so that storing and loading it is written once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar, assert_never

from msgspec.structs import replace

from jp.conversation.entries import AnyEntry, ChatRequest, Compaction, RequestContext, SummaryPolicy, ToolCallResponse
from jp.conversation.resource import AudioBlock, Block, Carrier, ImageBlock, ResourceBlock, ResourceLink, TextBlock
from jp.conversation.thread import ToolResult, UserResource, ViewEvent

C = TypeVar("C", bound=Carrier)


class CarrierChange(Protocol):
    """A function from a carrier to the same carrier with its content in another form."""

    def __call__(self, carrier: C, /) -> C:
        """Change one carrier."""
        ...


def _map_block(block: Block, change: CarrierChange) -> Block:
    match block:
        case ResourceBlock(resource=resource):
            return replace(block, resource=change(resource))
        case TextBlock() | ImageBlock() | AudioBlock():
            return change(block)
        case ResourceLink():
            return block
        case _:
            assert_never(block)


def _block_carriers(block: Block) -> Iterator[Carrier]:
    match block:
        case ResourceBlock(resource=resource):
            yield resource
        case TextBlock() | ImageBlock() | AudioBlock():
            yield block
        case ResourceLink():
            pass
        case _:
            assert_never(block)


def _hold_content(blocks: tuple[Block, ...]) -> bool:
    return not all(isinstance(block, ResourceLink) for block in blocks)


def carriers_in(entry: AnyEntry) -> Iterator[Carrier]:
    """Everything in `entry` that holds content."""
    match entry:
        case ChatRequest(resources=resources):
            yield from resources
        case ToolCallResponse(content=blocks):
            for block in blocks:
                yield from _block_carriers(block)
        case RequestContext(system=system, tools=tools):
            yield from system
            if tools is not None:
                yield tools
        case Compaction(summary=SummaryPolicy(kept=kept)):
            yield from kept
        case _:
            pass


def map_carriers(entry: AnyEntry, change: CarrierChange) -> AnyEntry:
    """`entry` with every carrier changed; the same object where it has none."""
    match entry:
        case ChatRequest(resources=resources) if resources:
            return replace(entry, resources=tuple(change(resource) for resource in resources))
        case ToolCallResponse(content=blocks) if _hold_content(blocks):
            return replace(entry, content=tuple(_map_block(block, change) for block in blocks))
        case RequestContext(system=system, tools=tools) if system or tools:
            return replace(
                entry,
                system=tuple(change(part) for part in system),
                tools=None if tools is None else change(tools),
            )
        case Compaction(summary=SummaryPolicy(kept=kept) as summary) if kept:
            return replace(entry, summary=replace(summary, kept=tuple(change(text) for text in kept)))
        case _:
            return entry


def map_view_carriers(event: ViewEvent, change: CarrierChange) -> ViewEvent:
    """`event` with every carrier changed; the same object where it has none."""
    match event:
        case UserResource(resource=resource):
            return replace(event, resource=change(resource))
        case ToolResult(content=blocks) if _hold_content(blocks):
            return replace(event, content=tuple(_map_block(block, change) for block in blocks))
        case _:
            return event
