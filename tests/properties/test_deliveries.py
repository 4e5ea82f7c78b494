"""What was delivered can be read in every view: whole, cut, as a difference, or where a reference says (RFD 067)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from deliveries import BOUND, DEDUPLICATION, delivered_stories
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.log_contents import HandleIndex, handles_of
from jp.compaction.projection import project
from jp.compaction.references import cut_handle
from jp.compaction.status_lines import attachment_place, result_place
from jp.conversation.entries import AnyEntry, ChatRequest, ToolCallResponse
from jp.conversation.resource import Block, Resource, ResourceBlock, TextBlock, checksum
from jp.conversation.thread import ToolResult, UserResource, UserText
from jp.conversation.turns import turns_of, undone
from jp.tool.duplicates import DeliveryIndex
from streams import Story, any_streams

REFERENCE = re.compile(r"The content of (\S+) is identical to (.+) \(checksum: sha256:(\w+)\)\. (.*) Refer to that")
SUPERSEDED = "[superseded] "


class Shown(Struct, frozen=True):
    """How a view shows what an entry delivered: words, or the resource in some form."""

    place: str
    entry: str
    original: Resource
    form: Resource | str


def shown_in(entries: Sequence[AnyEntry]) -> Iterator[Shown]:
    """Everything that was delivered as a resource, in the order of the view; what is stripped or summarised is not."""
    requests = {entry.id: list(entry.resources) for entry in entries if isinstance(entry, ChatRequest)}
    responses = {entry.id: entry for entry in entries if isinstance(entry, ToolCallResponse)}
    for event in project(entries, StatusLineFormatter()).events:
        match event:
            case UserResource(resource=resource, turn=turn, origin=origin):
                yield Shown(attachment_place(turn), origin, requests[origin].pop(0), resource)
            case UserText(text=text, turn=turn, origin=origin) if text.startswith((SUPERSEDED, "The content of ")):
                yield Shown(attachment_place(turn), origin, requests[origin].pop(0), text)
            case ToolResult(content=content, turn=turn, call_id=call_id, origin=origin):
                originals = responses[origin].content if origin in responses else ()
                if len(content) != len(originals) or is_stripped(content):
                    continue
                for block, original in zip(content, originals, strict=True):
                    if isinstance(original, ResourceBlock):
                        form = block.resource if isinstance(block, ResourceBlock) else words_of(block)
                        yield Shown(result_place(turn, call_id), origin, original.resource, form)
            case _:
                pass


def is_stripped(content: Sequence[Block]) -> bool:
    return any(isinstance(block, TextBlock) and (block.text or "").startswith("[compacted] ") for block in content)


def words_of(block: object) -> str:
    assert isinstance(block, TextBlock)
    return block.text or ""


def is_readable(shown: Shown, before: Sequence[Shown]) -> bool:
    """Whether a reader of the view has the content, or as much of it as was delivered."""
    form, original = shown.form, shown.original
    if isinstance(form, Resource):
        base = form.formatted_against
        if base is not None:
            return any(other.entry == base and other.original.uri == form.uri for other in before)
        return form.formatted in {None, original.formatted}
    if form.startswith(SUPERSEDED):
        return True
    found = REFERENCE.match(form)
    assert found is not None
    uri, place, digits, _ = found.groups()
    assert uri == original.uri
    assert checksum(original).startswith(digits)
    return any(
        other.place == place
        and isinstance(other.form, Resource)
        and other.form.formatted_against is None
        and other.form.formatted in {None, original.formatted}
        and (other.original.uri, other.original.text) == (original.uri, original.text)
        for other in before
    )


@given(delivered_stories())
def test_everything_that_was_delivered_can_be_read_in_the_view_and_no_reference_is_false(story: Story) -> None:
    for end in (*(request.position for request in story.requests), len(story.entries)):
        seen = list(shown_in(story.entries[:end]))
        assert all(is_readable(shown, seen[:number]) for number, shown in enumerate(seen))


@given(delivered_stories())
def test_a_reference_says_that_something_was_different_in_between_just_where_a_view_shows_that(story: Story) -> None:
    newest: dict[str, str | None] = {}

    for shown in shown_in(story.entries):
        if isinstance(shown.form, str) and shown.form.startswith(SUPERSEDED):
            continue
        uri, text = shown.original.uri, shown.original.text
        if isinstance(shown.form, str) and (found := REFERENCE.match(shown.form)):
            assert (newest[uri] != text) is (found[4] == "It was something else in between.")
        newest[uri] = text


@given(delivered_stories())
def test_what_is_read_again_where_no_copy_can_be_seen_is_shown_itself(story: Story) -> None:
    seen: set[tuple[str, str | None, str | None]] = set()

    for shown in shown_in(story.entries):
        form, original = shown.form, shown.original
        if isinstance(form, Resource):
            seen.add((form.uri, form.text, form.formatted))
        elif not form.startswith(SUPERSEDED):
            assert {(original.uri, original.text, cut) for cut in (None, original.formatted)} & seen


@given(delivered_stories())
def test_results_keep_to_their_bound_and_a_cut_names_what_the_log_has(story: Story) -> None:
    handles = handles_of(story.entries)

    for entry in story.entries:
        for block in entry.content if isinstance(entry, ToolCallResponse) else ():
            carrier = block.resource if isinstance(block, ResourceBlock) else block
            if not isinstance(carrier, (Resource, TextBlock)) or carrier.formatted is None:
                continue
            assert len(carrier.formatted) < len(carrier.text or "")
            if isinstance(carrier, Resource) and carrier.formatted_against is not None:
                continue
            assert len(carrier.formatted) <= BOUND
            assert cut_handle(carrier) == handles[checksum(carrier)]


@given(delivered_stories())
def test_only_what_was_delivered_before_with_the_same_uri_and_content_is_marked(story: Story) -> None:
    delivered: dict[str, list[Resource]] = {}

    for entry in story.entries:
        resources: list[Resource] = []
        if isinstance(entry, ChatRequest):
            resources = list(entry.resources)
        elif isinstance(entry, ToolCallResponse):
            resources = [block.resource for block in entry.content if isinstance(block, ResourceBlock)]
        for resource in resources:
            if resource.duplicate_of is not None:
                assert len(resource.text or "") > DEDUPLICATION.min_bytes
                earlier = delivered[resource.duplicate_of]
                assert any((one.uri, one.text) == (resource.uri, resource.text) for one in earlier)
        delivered[entry.id] = resources


def first_deliveries(entries: Sequence[AnyEntry], since: int) -> dict[tuple[str, str], str]:
    """The first entry of turn `since` or later that delivered each content in full: every entry is looked at."""
    gone = undone(entries)
    first: dict[tuple[str, str], str] = {}
    delivered: set[tuple[str, str, str | None]] = set()
    turns = [turn for turn in turns_of(entries) if turn.id not in gone]
    numbered = [(number, entry) for number, turn in enumerate(turns) for entry in turn.entries]
    for number, entry in numbered:
        for resource in resources_of(entry):
            identity = (resource.uri, checksum(resource))
            is_full = (*identity, resource.duplicate_of) not in delivered
            delivered.add((*identity, entry.id))
            if is_full and number >= since:
                first.setdefault(identity, entry.id)
    return first


def resources_of(entry: AnyEntry) -> tuple[Resource, ...]:
    match entry:
        case ChatRequest(resources=resources):
            return resources
        case ToolCallResponse(content=blocks):
            return tuple(block.resource for block in blocks if isinstance(block, ResourceBlock))
        case _:
            return ()


LOGS = any_streams() | delivered_stories().map(lambda story: tuple(story.entries))


@given(
    entries=LOGS, additions=st.lists(st.integers(0, 12), max_size=20), since=st.integers(0, 3), in_place=st.booleans()
)
def test_an_index_that_grows_with_its_log_finds_the_deliveries_that_a_scan_finds(
    entries: tuple[AnyEntry, ...], additions: list[int], since: int, *, in_place: bool
) -> None:
    index, log = DeliveryIndex(), list[AnyEntry]()
    resources = [resource for entry in entries for resource in resources_of(entry)]

    for added in (*additions, len(entries)):
        log += entries[len(log) : len(log) + added]
        index.update(log if in_place else tuple(log))
        expected = first_deliveries(log, since)
        gone = undone(log)
        assert index.turns == sum(turn.id not in gone for turn in turns_of(log))
        for resource in resources:
            found = index.first(resource, since=since)
            assert found == expected.get((resource.uri, checksum(resource)))


@given(LOGS, LOGS, st.integers(0, 3))
def test_an_index_begins_again_with_another_log(
    before: tuple[AnyEntry, ...], entries: tuple[AnyEntry, ...], since: int
) -> None:
    index = DeliveryIndex(before)
    index.update(entries)

    expected = first_deliveries(entries, since)
    for resource in (resource for entry in (*before, *entries) for resource in resources_of(entry)):
        assert index.first(resource, since=since) == expected.get((resource.uri, checksum(resource)))


@given(LOGS, LOGS)
def test_handles_that_grow_with_a_log_are_those_of_the_whole(
    other: tuple[AnyEntry, ...], entries: tuple[AnyEntry, ...]
) -> None:
    index, log = HandleIndex(), list[AnyEntry]()

    for entry in entries:
        assert dict(index.handles(log, entry)) == handles_of((*log, entry))
        log.append(entry)
    for entry in other:
        assert dict(index.handles(other, entry)) == handles_of((*other, entry))
