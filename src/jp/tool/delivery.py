"""Delivery: what a tool returned, as it is recorded and shown to a model (RFD 067). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, assert_never

from msgspec.structs import asdict, replace

from jp.config.entries import ToolConfig
from jp.config.model import DeduplicationConfig
from jp.conversation.entries import LEAST_OBSERVED, AnyEntry, ChatRequest, Event, Facts, ToolCallResponse
from jp.conversation.resource import (
    AudioBlock,
    BinaryContent,
    Block,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
    checksum,
    content_of,
    formatted_of,
    framed,
    in_one_line,
    mark_of,
    size_in_bytes,
)
from jp.conversation.turns import turns_of, undone
from jp.tool.base import ConfiguredTool, ToolOutput
from jp.tool.bounding import BOUND, LARGEST_MEDIA, Address, InPages, bounded, media_note, shares

Identity = tuple[str, str]
"""URI and sha256 of the raw content."""


def mark_resources(
    resources: Iterable[Resource],
    entries: Iterable[AnyEntry],
    *,
    turn: int,
    enabled: bool,
    min_bytes: int,
    lookback_turns: int,
) -> tuple[Resource, ...]:
    """`resources` that turn `turn` is about to record with a request, those delivered before with `duplicate_of`.

    `entries` is the stream as it is stored, without what was reverted; `turn` counts as `turns_of` does. Only what
    has more than `min_bytes` bytes is marked, and only where the first delivery is at most `lookback_turns` back.
    """
    listed = tuple(resources)
    wanted = {_identity(resource) for resource in listed if enabled and size_in_bytes(resource) > min_bytes}
    first = _first_deliveries(wanted, entries, since=turn - lookback_turns)
    if not first:
        return listed
    return tuple(
        replace(resource, duplicate_of=first[identity]) if (identity := _identity(resource)) in first else resource
        for resource in listed
    )


def mark_blocks(
    blocks: Iterable[Block],
    entries: Iterable[AnyEntry],
    *,
    turn: int,
    enabled: bool,
    min_bytes: int,
    lookback_turns: int,
) -> tuple[Block, ...]:
    """`blocks` that turn `turn` is about to record as a tool's response; see `mark_resources`."""
    listed = tuple(blocks)
    marked = iter(
        mark_resources(
            (block.resource for block in listed if isinstance(block, ResourceBlock)),
            entries,
            turn=turn,
            enabled=enabled,
            min_bytes=min_bytes,
            lookback_turns=lookback_turns,
        )
    )
    return tuple(
        replace(block, resource=next(marked)) if isinstance(block, ResourceBlock) else block for block in listed
    )


def _identity(resource: Resource) -> Identity:
    return resource.uri, checksum(resource)


def _first_deliveries(wanted: set[Identity], entries: Iterable[AnyEntry], *, since: int) -> dict[Identity, str]:
    """For each identity that is wanted, the first entry of turn `since` or later that delivered it in full."""
    if not wanted:
        return {}
    uris = {uri for uri, _ in wanted}
    first: dict[Identity, str] = {}
    delivered: set[tuple[Identity, str | None]] = set()
    for turn, entry, resource in _deliveries(entries):
        # Most deliveries are of other resources: those are not hashed.
        identity = _identity(resource) if resource.uri in uris else None
        if identity is None or identity not in wanted:
            continue
        # A fork may lack what a mark refers to; there the marked copy is the first.
        is_full = (identity, resource.duplicate_of) not in delivered
        delivered.add((identity, entry))
        if is_full and turn >= since:
            first.setdefault(identity, entry)
    return first


def _deliveries(entries: Iterable[AnyEntry]) -> Iterator[tuple[int, str, Resource]]:
    """Yield every resource of a stream, with the number of its turn and the id of its entry."""
    for turn in turns_of(entries):
        for entry in turn.entries:
            for resource in _resources_of(entry):
                yield turn.number, entry.id, resource


def _resources_of(entry: Event) -> Iterator[Resource]:
    match entry:
        case ChatRequest(resources=resources):
            yield from resources
        case ToolCallResponse(content=blocks):
            yield from (block.resource for block in blocks if isinstance(block, ResourceBlock))
        case _:
            pass


MOST_BLOCKS = 64
"""A result of more blocks is bounded as one text: each of them would take a marker."""

_READ = frozenset({"read", "list", "search", "json", "web"})
"""Kinds of results in which the word `error` says nothing of how the call went."""


class Addresses(Protocol):
    """Handles of content that a view of a log does not show. Appending to the log changes no handle."""

    def nonce(self, entries: Sequence[AnyEntry]) -> str:
        """Return what the markers in views of this log carry."""
        ...

    def handles(self, entries: Iterable[AnyEntry]) -> Mapping[str, str]:
        """Return the handle for each checksum in a log."""
        ...


class OrdinaryDelivery:
    """The way that every result goes, whatever tool it is of. See `jp.tool.base.Delivery`."""

    def __init__(self, deduplication: DeduplicationConfig, addresses: Addresses) -> None:
        self._deduplication = deduplication
        self._addresses = addresses

    def __call__(self, configured: ConfiguredTool, output: ToolOutput, entries: Sequence[AnyEntry]) -> ToolOutput:
        """`output` within its bound, with marks, and with the kind that the configuration says."""
        settings = configured.settings
        content = tuple(map(_storable, output.content))
        known = replace(output, content=content, facts=_with_kind(_holdable(output.facts), settings))
        known = replace(known, facts=_with_evidence(known))
        fitting = known if isinstance(configured.tool, InPages) else self._bounded(known, settings, entries)
        return self._marked(fitting, settings, entries)

    def _bounded(self, output: ToolOutput, settings: ToolConfig, entries: Sequence[AnyEntry]) -> ToolOutput:
        limit = settings.max_bytes or BOUND
        sizes = [_shown_size(block) for block in output.content]
        if sum(sizes) <= limit and not any(map(_is_oversized, output.content)):
            return output
        content = _gathered(output.content) if len(output.content) > MOST_BLOCKS else output.content
        kind = "" if output.facts is None else output.facts.kind
        bounds = _Bounds(
            limit=shares([_shown_size(block) for block in content], limit),
            handles=self._addresses.handles((*entries, ToolCallResponse(request="", content=content))),
            nonce=self._addresses.nonce(entries),
            keeps_errors=output.is_error or kind not in _READ,
        )
        return replace(output, content=tuple(map(bounds.block, content)))

    def _marked(self, output: ToolOutput, settings: ToolConfig, entries: Sequence[AnyEntry]) -> ToolOutput:
        if not any(isinstance(block, ResourceBlock) for block in output.content):
            return output
        gone = undone(entries)
        turns = [turn for turn in turns_of(entries) if turn.id not in gone]
        deduplication = self._deduplication
        marked = mark_blocks(
            output.content,
            [entry for turn in turns for entry in turn.entries],
            turn=len(turns) - 1,
            enabled=deduplication.enabled and settings.deduplicate is not False,
            min_bytes=deduplication.min_bytes,
            lookback_turns=deduplication.lookback_turns,
        )
        return replace(output, content=marked)


class _Bounds:
    """Bounds block after block of one result to `limit` bytes each."""

    def __init__(self, *, limit: int, handles: Mapping[str, str], nonce: str, keeps_errors: bool) -> None:
        self._limit = limit
        self._handles = handles
        self._nonce = nonce
        self._keeps_errors = keeps_errors

    def block(self, block: Block) -> Block:
        match block:
            case TextBlock():
                return self._text(block)
            case ResourceBlock(resource=resource):
                return replace(block, resource=self._resource(resource))
            case ImageBlock() | AudioBlock():
                is_shown = block.formatted is None and size_in_bytes(block) > LARGEST_MEDIA
                return replace(block, formatted=self._note(block, block.mime_type)) if is_shown else block
            case ResourceLink():
                return block
            case _:
                assert_never(block)

    def _text(self, block: TextBlock) -> TextBlock:
        formatted = self._cut(block, _text_of(block), self._limit)
        return block if formatted is None else replace(block, formatted=formatted)

    def _resource(self, resource: Resource) -> Resource:
        if _is_binary(resource) and resource.formatted is None:
            if size_in_bytes(resource) <= LARGEST_MEDIA:
                return resource
            return replace(resource, formatted=self._note(resource, resource.mime_type))
        text = _text_of(resource)
        limit = self._limit - _envelope(resource, text) + _bytes(text)
        formatted = self._cut(resource, text, limit)
        if formatted is None:
            return resource
        if resource.formatted_against is not None:  # a diff of which a part is missing says nothing
            formatted = self._cut(resource, resource.text or "", limit)
        return replace(resource, formatted=formatted, formatted_against=None)

    def _cut(self, carrier: TextBlock | Resource, text: str, limit: int) -> str | None:
        return bounded(text, limit, self._address(carrier), keeps_errors=self._keeps_errors)

    def _note(self, carrier: Resource | ImageBlock | AudioBlock, mime_type: str | None) -> str:
        return media_note(mime_type, size_in_bytes(carrier), self._address(carrier))

    def _address(self, carrier: TextBlock | Resource | ImageBlock | AudioBlock) -> Address:
        return Address(nonce=self._nonce, handle=self._handles[checksum(carrier)])


def _with_kind(facts: Facts | None, settings: ToolConfig) -> Facts | None:
    """Return what the tool recorded; of what kind it is, the configuration knows better."""
    if settings.kind is None:
        return facts
    return Facts(kind=settings.kind) if facts is None else replace(facts, kind=settings.kind)


def _with_evidence(output: ToolOutput) -> Facts | None:
    """Return the facts with what the content says of the outcome, so that a digest need not read it."""
    facts = output.facts or Facts()
    blocks = (block.resource if isinstance(block, ResourceBlock) else block for block in output.content)
    texts = [block.text for block in blocks if isinstance(block, TextBlock | Resource) and block.text]
    if facts.evidence is not None or sum(map(len, texts)) < LEAST_OBSERVED:
        return output.facts
    from jp.context.evidence import observe

    found = observe("\n".join(texts), kind=facts.kind or "", is_error=output.is_error)
    exit_code = found.exit_code if facts.exit_code is None else facts.exit_code
    seen = replace(facts, exit_code=exit_code, evidence=found.lines or None)
    return output.facts if seen == facts else seen


def _holdable(facts: Facts | None) -> Facts | None:
    """`facts` as a log can hold them, as `_storable` a block."""
    if facts is None:
        return None
    texts = {name: value for name, value in asdict(facts).items() if isinstance(value, str) and not _is_storable(value)}
    return replace(facts, **{name: _mended(text) for name, text in texts.items()}) if texts else facts


def _storable(block: Block) -> Block:
    """`block` as a log can hold it: halves of surrogate pairs have no UTF-8."""
    match block:
        case TextBlock(text=str(text)):
            return block if _is_storable(text) else replace(block, text=_mended(text))
        case ResourceBlock(resource=Resource(text=str(text)) as resource):
            return block if _is_storable(text) else replace(block, resource=replace(resource, text=_mended(text)))
        case _:
            return block


def _is_storable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _mended(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _text_of(carrier: TextBlock | Resource) -> str:
    """Return the text that a model would be shown."""
    formatted = formatted_of(carrier)
    return (carrier.text or "") if formatted is None else formatted


def _is_binary(resource: Resource) -> bool:
    return isinstance(content_of(resource), BinaryContent)


def _is_oversized(block: Block) -> bool:
    """Return whether it is something other than text that is too large to be shown."""
    match block:
        case ResourceBlock(resource=resource):
            is_shown = _is_binary(resource) and resource.formatted is None
            return is_shown and size_in_bytes(resource) > LARGEST_MEDIA
        case ImageBlock() | AudioBlock():
            return block.formatted is None and size_in_bytes(block) > LARGEST_MEDIA
        case TextBlock() | ResourceLink():
            return False
        case _:
            assert_never(block)


def _shown_size(block: Block) -> int:
    """Return how many bytes of text a model is shown of `block`, with what names it."""
    match block:
        case TextBlock():
            return _bytes(_text_of(block))
        case ResourceBlock(resource=resource):
            is_text = resource.formatted is not None or not _is_binary(resource)
            return _envelope(resource, _text_of(resource) if is_text else "")
        case ImageBlock() | AudioBlock():
            return _bytes(block.formatted or "")
        case ResourceLink():
            return _bytes(_link_text(block))
        case _:
            assert_never(block)


def _envelope(resource: Resource, text: str) -> int:
    """Return how long a resource with this text is in its frame, and the line feed behind it."""
    return _bytes(framed("resource", {"uri": resource.uri}, text, mark_of((text,)))) + 1


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _gathered(content: Sequence[Block]) -> tuple[Block, ...]:
    """`content` with everything that can be read in one text in front, in which it stands as a model would read it."""
    texts: list[str] = []
    others: list[Block] = []
    mark = mark_of([_text_of(carrier) for block in content if (carrier := _textual(block)) is not None])
    for block in content:
        text = _readable(block, mark)
        if text is None:
            others.append(block)
        else:
            texts.append(text)
    return (TextBlock(text="\n".join(texts)), *others)


def _textual(block: Block) -> TextBlock | Resource | None:
    """Return what of `block` is read as a text that others wrote."""
    match block:
        case TextBlock():
            return block
        case ResourceBlock(resource=resource):
            return resource
        case ResourceLink() | ImageBlock() | AudioBlock():
            return None
        case _:
            assert_never(block)


def _readable(block: Block, mark: str) -> str | None:
    match block:
        case TextBlock():
            return _text_of(block)
        case ResourceBlock(resource=resource):
            if _is_binary(resource) and resource.formatted is None:
                return None
            return framed("resource", {"uri": resource.uri}, _text_of(resource), mark)
        case ResourceLink():
            return _link_text(block)
        case ImageBlock() | AudioBlock():
            return None
        case _:
            assert_never(block)


def _link_text(link: ResourceLink) -> str:
    return in_one_line(f"[resource {link.title or link.name or ''}: {link.uri}]")
