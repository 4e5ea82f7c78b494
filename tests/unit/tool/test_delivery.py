from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from jp.app.query.sources import LogAddresses
from jp.compaction.log_contents import handles_of
from jp.compaction.projection import project
from jp.compaction.status_lines import PlainStatusFormatter
from jp.config.entries import ToolConfig
from jp.config.model import DeduplicationConfig
from jp.context.markers import marked_handles
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    CycleEnd,
    Facts,
    Header,
    Revert,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import (
    AudioBlock,
    Block,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
)
from jp.conversation.thread import ToolDefinition, ToolResult
from jp.tool.base import ConfiguredTool, ToolInvocation, ToolOutput
from jp.tool.delivery import BOUND, LARGEST_MEDIA, MOST_BLOCKS, OrdinaryDelivery

LINES = "".join(f"line {number}\n" for number in range(9_000))
FILE = Resource(uri="file:///w/a", text="x" * 400)
HEADER = Header(id="h", format=1, created_at="2026-01-01T00:00:00Z", nonce="n0nce")


def turn(number: int) -> tuple[AnyEntry, ...]:
    return TurnStart(id=f"t{number}"), ChatRequest(id=f"q{number}", content="Go.")


class Silent:
    definition = ToolDefinition(name="silent", description="", parameters={"type": "object"})

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        assert invocation.root == Path()
        return ToolOutput(content=())


TURN = (HEADER, *turn(0))


def deliver(
    output: ToolOutput,
    entries: Sequence[AnyEntry] = TURN,
    settings: ToolConfig | None = None,
    deduplication: DeduplicationConfig | None = None,
) -> ToolOutput:
    delivery = OrdinaryDelivery(deduplication or DeduplicationConfig(), LogAddresses())
    return delivery(ConfiguredTool(tool=Silent(), settings=settings or ToolConfig()), output, entries)


def delivered(*blocks: Block, settings: ToolConfig | None = None) -> tuple[Block, ...]:
    return deliver(ToolOutput(content=blocks), settings=settings).content


def shown(block: Block) -> str:
    match block:
        case TextBlock():
            return block.formatted or block.text or ""
        case ResourceBlock(resource=resource):
            return resource.formatted or resource.text or ""
        case ImageBlock() | AudioBlock():
            return block.formatted or ""
        case ResourceLink():
            return block.uri


def test_what_fits_is_delivered_as_it_came() -> None:
    blocks = (TextBlock(text="short"), ResourceBlock(resource=FILE), ResourceLink(uri="https://example.org/"))
    output = ToolOutput(content=blocks, facts=Facts(kind="read"), is_error=True)

    assert deliver(output).content == output.content


def test_a_large_text_keeps_all_of_itself_and_is_shown_in_bounds() -> None:
    (block,) = delivered(TextBlock(text=LINES))

    assert isinstance(block, TextBlock)
    assert block.text == LINES
    assert block.formatted is not None
    assert len(block.formatted.encode()) <= BOUND
    assert block.formatted.startswith("line 0\n")
    assert block.formatted.endswith("line 8999\n")


def test_a_tool_may_have_a_bound_of_its_own() -> None:
    settings = ToolConfig(max_bytes=2_000)

    assert len(shown(delivered(TextBlock(text=LINES), settings=settings)[0]).encode()) <= 2_000
    assert delivered(TextBlock(text=LINES), settings=ToolConfig(max_bytes=len(LINES))) == (TextBlock(text=LINES),)


def test_several_blocks_share_the_bound_and_short_ones_stay_whole() -> None:
    resource = Resource(uri="file:///w/b", text=LINES)
    blocks = delivered(TextBlock(text="short"), TextBlock(text=LINES), ResourceBlock(resource=resource))

    assert shown(blocks[0]) == "short"
    assert sum(len(shown(block).encode()) for block in blocks) <= BOUND
    assert all(len(shown(block)) > BOUND // 3 for block in blocks[1:])


def test_the_handle_in_a_marker_is_the_one_that_the_log_gives_to_the_content() -> None:
    same_begin = colliding(LINES)
    entries = (*TURN, ToolCallResponse(id="r0", request="c0", content=(TextBlock(text="elsewhere"), same_begin)))

    output = deliver(ToolOutput(content=(TextBlock(text=LINES),)), entries)

    after = (*entries, ToolCallResponse(id="r1", request="c1", content=output.content))
    handle = handles_of(after)[hashlib.sha256(LINES.encode()).hexdigest()]
    assert len(handle) == 9
    assert marked_handles(shown(output.content[0]), "n0nce") == (handle,)


def colliding(text: str) -> TextBlock:
    """Stored content whose checksum begins as that of `text` does."""
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    digit = "0" if sha256[8] != "0" else "1"
    return TextBlock(sha256=sha256[:8] + digit + sha256[9:], size=9, chars=9, lines=1)


@pytest.mark.parametrize(
    ("facts", "is_error", "keeps"),
    [
        (None, False, True),
        (Facts(kind="terminal"), False, True),
        (Facts(kind="read"), False, False),
        (Facts(kind="read"), True, True),
    ],
)
def test_errors_survive_but_where_the_word_says_nothing(facts: Facts | None, is_error: bool, keeps: bool) -> None:  # noqa: FBT001  a table
    text = LINES[:40_000] + "\na.c:1: error: here\n" + LINES[40_000:]

    (block,) = deliver(ToolOutput(content=(TextBlock(text=text),), facts=facts, is_error=is_error)).content

    assert ("error: here" in shown(block)) is keeps


@pytest.mark.parametrize("kind", [ImageBlock, AudioBlock])
def test_media_are_shown_up_to_a_size_and_named_beyond(kind: type[ImageBlock | AudioBlock]) -> None:
    small = kind(mime_type="x/y", blob=b"1" * LARGEST_MEDIA)
    large = kind(mime_type="x/y", blob=b"1" * (LARGEST_MEDIA + 1))

    first, second = delivered(small, large)

    assert first == small
    assert replace(second, formatted=None) == large
    assert shown(second).endswith("x/y, too large to be shown")
    assert delivered(second) == (second,)


def test_a_binary_resource_is_shown_up_to_a_size_and_named_beyond() -> None:
    small = Resource(uri="file:///w/a.png", mime_type="image/png", blob=b"1" * LARGEST_MEDIA)
    large = replace(small, blob=b"1" * (LARGEST_MEDIA + 1))

    first, second = delivered(ResourceBlock(resource=small), ResourceBlock(resource=large))

    assert first == ResourceBlock(resource=small)
    assert shown(second).endswith("image/png, too large to be shown")


def test_beside_a_text_that_is_cut_other_things_stay_as_they_are() -> None:
    link = ResourceLink(uri="https://example.org/", name="example")
    picture = ImageBlock(mime_type="image/png", blob=b"1")
    binary = ResourceBlock(resource=Resource(uri="file:///w/a.bin", blob=b"\0"))

    small = ResourceBlock(resource=FILE)

    assert delivered(TextBlock(text=LINES), link, picture, binary, small)[1:] == (link, picture, binary, small)


def test_a_result_of_very_many_blocks_is_bounded_as_one_text() -> None:
    picture = ImageBlock(mime_type="image/png", blob=b"1")
    binary = ResourceBlock(resource=Resource(uri="file:///w/a.bin", blob=b"\0"))
    link = ResourceLink(uri="https://example.org/", name="example")
    many = [ResourceBlock(resource=replace(FILE, uri=f"file:///w/{number}")) for number in range(MOST_BLOCKS)]

    text, *others = delivered(TextBlock(text="first"), *many, picture, binary, link)

    assert isinstance(text, TextBlock)
    assert text.text is not None
    assert text.text.startswith('first\n<resource uri="file:///w/0">\nxxx')
    assert text.text.endswith("\n[resource example: https://example.org/]")
    assert len(shown(text).encode()) <= BOUND
    assert others == [picture, binary]


def test_very_many_blocks_that_fit_are_delivered_as_they_came() -> None:
    blocks = tuple(TextBlock(text=str(number)) for number in range(MOST_BLOCKS + 1))

    assert delivered(*blocks) == blocks


def test_a_diff_that_does_not_fit_gives_way_to_the_content() -> None:
    resource = Resource(uri="file:///w/a", text=LINES, formatted="-" * BOUND, formatted_against="q0")

    (block,) = delivered(ResourceBlock(resource=resource))

    assert isinstance(block, ResourceBlock)
    assert block.resource.formatted_against is None
    assert shown(block).startswith("line 0\n")


def test_what_a_tool_formats_itself_is_bounded_too() -> None:
    (block,) = delivered(TextBlock(text="raw", formatted=LINES))

    assert isinstance(block, TextBlock)
    assert block.text == "raw"
    assert len(shown(block).encode()) <= BOUND


def test_delivering_twice_changes_nothing() -> None:
    once = deliver(ToolOutput(content=(TextBlock(text=LINES), ResourceBlock(resource=replace(FILE, text=LINES)))))

    assert deliver(once) == once


def test_what_no_log_can_hold_is_repaired() -> None:
    broken = "a\ud800b"

    blocks = delivered(
        TextBlock(text=broken), ResourceBlock(resource=replace(FILE, text=broken)), TextBlock(text="fine ✓")
    )

    assert [shown(block) for block in blocks] == ["a?b", "a?b", "fine ✓"]


def test_what_was_delivered_before_is_marked_also_within_the_turn() -> None:
    entries = (*TURN, ToolCallResponse(id="r0", request="c", content=(ResourceBlock(resource=FILE),)))

    (block,) = deliver(ToolOutput(content=(ResourceBlock(resource=FILE),)), entries).content

    assert block == ResourceBlock(resource=replace(FILE, duplicate_of="r0"))


@pytest.mark.parametrize(
    ("settings", "deduplication"),
    [
        (ToolConfig(deduplicate=False), DeduplicationConfig()),
        (ToolConfig(), DeduplicationConfig(enabled=False)),
        (ToolConfig(), DeduplicationConfig(min_bytes=400)),
    ],
)
def test_marks_can_be_turned_off(settings: ToolConfig, deduplication: DeduplicationConfig) -> None:
    entries = (*TURN, ToolCallResponse(id="r0", request="c", content=(ResourceBlock(resource=FILE),)))
    output = ToolOutput(content=(ResourceBlock(resource=FILE),))

    assert deliver(output, entries, settings, deduplication).content == output.content


def test_what_was_undone_was_not_delivered_and_the_window_counts_turns_that_stand() -> None:
    read = ToolCallResponse(id="r0", request="c", content=(ResourceBlock(resource=FILE),))
    output = ToolOutput(content=(ResourceBlock(resource=FILE),))
    undone = (*TURN, read, *turn(1), Revert(entries=("t0",)))
    between = (*TURN, read, *turn(1), *turn(2), Revert(entries=("t1",)))
    one_turn = DeduplicationConfig(lookback_turns=1)

    assert deliver(output, undone).content == output.content
    assert deliver(output, between, deduplication=one_turn).content[0] != output.content[0]
    assert deliver(output, (*between, *turn(3)), deduplication=one_turn).content == output.content


def test_a_bounded_copy_is_marked_with_its_bounded_form() -> None:
    large = ResourceBlock(resource=replace(FILE, text=LINES))
    first = deliver(ToolOutput(content=(large,)))
    entries = (*TURN, ToolCallResponse(id="r0", request="c", content=first.content))

    second = deliver(ToolOutput(content=(large,)), entries)

    (before,), (after,) = first.content, second.content
    assert isinstance(before, ResourceBlock)
    assert after == ResourceBlock(resource=replace(before.resource, duplicate_of="r0"))


def test_facts_are_such_as_a_log_can_hold() -> None:
    facts = deliver(ToolOutput(content=(), facts=Facts(url="a:\ud800", title="\udfffé", status=200))).facts

    assert facts == Facts(url="a:?", title="?é", status=200)


@pytest.mark.parametrize("facts", [None, Facts(kind="terminal", exit_code=1)])
def test_the_configuration_says_of_what_kind_results_are(facts: Facts | None) -> None:
    output = ToolOutput(content=(), facts=facts)

    assert deliver(output, settings=ToolConfig(kind="test")).facts == replace(facts or Facts(), kind="test")
    assert deliver(output).content == output.content


WHOLE, PART = "file:///w/foo.rs", "file:///w/foo.rs#L10-200"
OLD, NEW = "fn main() {}\n" * 40, "fn main() { run() }\n" * 40


@pytest.mark.parametrize("attached", [True, False])
@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        pytest.param((WHOLE, OLD), (WHOLE, NEW), False, id="same file, other content"),
        pytest.param((WHOLE, OLD), ("file:///w/copy.rs", OLD), False, id="other file, same content"),
        pytest.param((WHOLE, OLD), (WHOLE, OLD), True, id="same file, same content; attached or from a tool"),
        pytest.param((PART, OLD), (PART, OLD), True, id="same lines, same content"),
        pytest.param((PART, OLD), (PART, NEW), False, id="same lines, other content"),
        pytest.param((WHOLE, OLD), (PART, OLD), False, id="lines of what is there as a whole"),
    ],
)
def test_content_is_the_same_where_uri_and_checksum_are(
    before: tuple[str, str],
    after: tuple[str, str],
    is_same: bool,  # noqa: FBT001  a table
    attached: bool,  # noqa: FBT001  a table
) -> None:
    """The cases of RFD 067, \"How matching handles identity correctly\", and what a model is shown of each."""
    first, second = (Resource(uri=uri, text=text) for uri, text in (before, after))
    delivery: AnyEntry = (
        ChatRequest(id="d0", content="", resources=(first,))
        if attached
        else ToolCallResponse(id="d0", request="c0", content=(ResourceBlock(resource=first),))
    )
    calls = (
        []
        if attached
        else [ToolCallRequest(id="c0", call_id="x", name="n", arguments={}), CycleEnd(attempt=1, finish="tools")]
    )
    entries = (*TURN, *calls, delivery, ToolCallRequest(id="c1", call_id="y", name="n", arguments={}))

    output = deliver(ToolOutput(content=(ResourceBlock(resource=second),)), entries)

    ended = (*entries, CycleEnd(attempt=1, finish="tools"))
    view = project((*ended, ToolCallResponse(id="r1", request="c1", content=output.content)), PlainStatusFormatter())
    (last,) = [event for event in view.events if isinstance(event, ToolResult) and event.call == "c1"]
    assert output.content == (ResourceBlock(resource=replace(second, duplicate_of="d0" if is_same else None)),)
    assert isinstance(last.content[0], TextBlock if is_same else ResourceBlock)
