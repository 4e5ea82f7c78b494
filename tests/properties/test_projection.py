from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.json import decode
from msgspec.structs import replace

import streams
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.projection import IncrementalView, Projection, SummaryOrigin, TurnOrigin, project
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    CycleEnd,
    Revert,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    encode,
)
from jp.conversation.resource import Resource, ResourceBlock, TextBlock, checksum
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    ReferenceBlock,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)
from jp.conversation.turns import divide, undone

STAND_INS = StatusLineFormatter()
REFERENCE = re.compile(r"The content of (\S+) is identical to (.+) \(checksum: sha256:(\w+)\)\.")
NOTE = re.compile(r"\[superseded\] (\S+) \(checksum: sha256:\w+\): the newer copy is (.+)\.")
MANY = settings(max_examples=max(60, settings().max_examples))
"""What is looked for is not in every stream."""


def view(entries: Sequence[AnyEntry], *, continuing: bool = False) -> Projection:
    return project(entries, STAND_INS, continuing=continuing)


def shown(projection: Projection) -> list[tuple[str, str | Resource]]:
    """Every text and every resource of a view, in order, with the place that a reader would name."""
    found: list[tuple[str, str | Resource]] = []
    for event in projection.events:
        match event:
            case UserResource(resource=resource, turn=turn):
                found.append((f"the attachment at turn {turn}", resource))
            case ToolResult(content=blocks, turn=turn, call_id=call_id):
                place = f"the result of tool call `{call_id}` in turn {turn}"
                for block in blocks:
                    if isinstance(block, ResourceBlock):
                        found.append((place, block.resource))
                    elif isinstance(block, TextBlock):
                        found.append((place, block.text or ""))
            case UserText(text=text):
                found.append((f"the attachment at turn {event.turn}", text))
            case _:
                pass
    return found


def is_full(item: str | Resource, uri: str) -> bool:
    return isinstance(item, Resource) and item.uri == uri and item.formatted_against is None


@given(streams.stories())
def test_a_request_is_a_prefix_of_the_next_one_unless_an_overlay_stands_between(story: streams.Story) -> None:
    ends = [*story.requests, streams.Request(len(story.entries), continuing=False)]

    for before, after in pairwise(ends):
        between = story.entries[before.position : after.position]
        if any(isinstance(entry, (Compaction, Revert)) for entry in between):
            continue
        earlier = view(story.entries[: before.position], continuing=before.continuing).events
        later = view(story.entries[: after.position], continuing=after.continuing).events
        assert later[: len(earlier)] == earlier


@MANY
@given(streams.any_streams(), st.lists(st.integers(0, 12), max_size=40))
def test_a_view_that_grows_with_its_log_is_the_one_that_is_projected_at_once(
    entries: tuple[AnyEntry, ...], additions: list[int]
) -> None:
    grown, known = IncrementalView(STAND_INS), 0

    for added in (*additions, len(entries)):
        known = min(known + added, len(entries))
        part, continuing = entries[:known], added % 2 == 1
        assert grown.project(part, continuing=continuing) == view(part, continuing=continuing)


@given(streams.any_streams())
def test_every_call_is_answered_once_right_after_the_answers_of_its_cycle(entries: tuple[AnyEntry, ...]) -> None:
    waiting: list[ToolCall] = []

    for event in view(entries).events:
        match event:
            case ToolCall():
                waiting.append(event)
            case ToolResult():
                call = waiting.pop(0)
                assert (event.call, event.call_id, event.name) == (call.origin, call.call_id, call.name)
            case UserText() | UserResource():
                assert not waiting
            case AssistantText() | AssistantReasoning() | AssistantData():
                pass
    assert not waiting


@MANY
@given(streams.any_streams())
def test_a_reference_has_its_target_earlier_in_the_same_view_in_full(entries: tuple[AnyEntry, ...]) -> None:
    items = shown(view(entries))

    for position, (_, item) in enumerate(items):
        if isinstance(item, str) and (found := REFERENCE.match(item)):
            uri, place, digits = found.groups()
            assert any(
                there == place
                and is_full(other, uri)
                and isinstance(other, Resource)
                and checksum(other).startswith(digits)
                for there, other in items[:position]
            )


@MANY
@given(streams.streams())
def test_a_superseded_snapshot_names_a_newer_copy_that_can_be_read(entries: tuple[AnyEntry, ...]) -> None:
    items = shown(view(entries))

    for position, (_, item) in enumerate(items):
        if isinstance(item, str) and (found := NOTE.match(item)):
            uri, place = found.groups()
            later = [other for there, other in items[position + 1 :] if there == place]
            assert any(
                (isinstance(other, Resource) and other.uri == uri)
                or (isinstance(other, str) and (reference := REFERENCE.match(other)) and reference[1] == uri)
                for other in later
            )


def test_views_of_random_streams_show_what_is_held_of_them() -> None:
    seen: set[str] = set()

    @MANY
    @given(streams.any_streams())
    def look(entries: tuple[AnyEntry, ...]) -> None:
        for _, item in shown(view(entries)):
            if isinstance(item, str):
                seen.update({"reference"} if REFERENCE.match(item) else {"note"} if NOTE.match(item) else set())
            elif item.formatted_against is not None:
                seen.add("diff")
            elif item.duplicate_of is not None:
                seen.add("copy of what is hidden")

    look()

    assert seen == {"reference", "note", "diff", "copy of what is hidden"}


@given(streams.any_streams())
def test_a_projection_is_a_function_of_the_log_that_leaves_it_alone(entries: tuple[AnyEntry, ...]) -> None:
    before = [encode(entry) for entry in entries]

    first = view(entries, continuing=True)

    assert view(entries, continuing=True) == first
    assert [encode(entry) for entry in entries] == before


@given(streams.any_streams())
def test_a_view_begins_with_the_user_and_has_no_blank_text(entries: tuple[AnyEntry, ...]) -> None:
    events = view(entries).events

    assert not events or isinstance(events[0], (UserText, UserResource))
    for event in events:
        if isinstance(event, (UserText, AssistantText)):
            assert event.text.strip()
        if isinstance(event, AssistantReasoning):
            assert event.text.strip() or event.metadata


@given(streams.any_streams())
def test_origins_name_each_turn_that_was_not_reverted_once_and_in_order(entries: tuple[AnyEntry, ...]) -> None:
    gone = undone(entries)
    standing = {turn.number for turn in divide(entries).turns if turn.id not in gone}
    kept = [turn.origin.number for turn in view(entries).turns if isinstance(turn.origin, TurnOrigin)]
    runs = [turn.origin for turn in view(entries).turns if isinstance(turn.origin, SummaryOrigin)]

    covered = {number for run in runs for number in range(run.from_turn, run.to_turn + 1)}
    assert kept == sorted(set(kept))
    assert set(kept) | (covered & standing) == standing
    assert all(run.from_turn in standing and run.to_turn in standing for run in runs)
    assert sorted(runs, key=lambda run: run.from_turn) == runs


@given(streams.streams(), streams.streams())
def test_a_reverted_compaction_does_not_exist_and_a_reverted_revert_restores_it(
    entries: tuple[AnyEntry, ...], others: tuple[AnyEntry, ...]
) -> None:
    compactions = [entry for entry in others if isinstance(entry, Compaction)]
    added = [replace(entry, id=f"z{number}") for number, entry in enumerate(compactions)]
    undo = Revert(id="zu", entries=tuple(entry.id for entry in added))
    redo = Revert(id="zr", entries=("zu",))

    assert view([*entries, *added, undo]) == view(entries)
    assert view([*entries, *added, undo, redo]) == view([*entries, *added])


def as_entries(projection: Projection) -> list[AnyEntry]:
    """A log whose plain view `projection` is."""
    entries: list[AnyEntry] = []
    for turn in projection.turns:
        entries.append(TurnStart())
        answering = False
        for event in turn.events:
            if answering and isinstance(event, (UserText, UserResource, ToolResult)):
                entries.append(CycleEnd(attempt=1, finish="stop"))
            answering = not isinstance(event, (UserText, UserResource, ToolResult))
            entries.append(as_entry(event))
        if answering:
            entries.append(CycleEnd(attempt=1, finish="stop"))
    return entries


def as_entry(event: ViewEvent) -> AnyEntry:
    match event:
        case UserText():
            entry: AnyEntry = ChatRequest(content=event.text)
        case UserResource():
            entry = ChatRequest(content="", resources=(event.resource,))
        case AssistantText():
            entry = ChatResponse(message=event.text, metadata=event.metadata)
        case AssistantReasoning():
            entry = ChatResponse(reasoning=event.text, metadata=event.metadata)
        case AssistantData():
            entry = ChatResponse(data=decode(event.text), metadata=event.metadata)
        case ToolCall():
            arguments, metadata = event.arguments, event.metadata
            entry = ToolCallRequest(call_id=event.call_id, name=event.name, arguments=arguments, metadata=metadata)
        case ToolResult():
            entry = ToolCallResponse(request=event.call, content=event.content, is_error=event.is_error)
    return replace(entry, id=event.origin)


# A diff against a copy that is only referred to would lose its base: words have no identity.
@given(streams.streams(diffs=False))
def test_projecting_what_was_projected_changes_nothing(entries: tuple[AnyEntry, ...]) -> None:
    once = view(entries)

    twice = view(as_entries(once))

    def plain(projection: Projection) -> list[ViewEvent]:
        return [bare(event) for event in projection.events]

    # A call that words name is known in a view only.
    def bare(event: ViewEvent) -> ViewEvent:
        match event:
            case UserText():
                return replace(event, turn=0, synthetic=False, named=None)
            case AssistantText():
                return replace(event, turn=0, synthetic=False)
            case ToolResult(content=content):
                words = [TextBlock(text=one.text) if isinstance(one, ReferenceBlock) else one for one in content]
                return replace(event, turn=0, content=tuple(words))
            case _:
                return replace(event, turn=0)

    assert plain(twice) == plain(once)


@given(streams.streams(diffs=False), streams.streams())
def test_what_was_projected_can_be_compacted_anew(entries: tuple[AnyEntry, ...], others: tuple[AnyEntry, ...]) -> None:
    anew = as_entries(view(entries))
    more = [entry for entry in others if isinstance(entry, Compaction)]

    again = view([*anew, *(replace(entry, id=f"z{number}") for number, entry in enumerate(more))])

    answered = [event.call for event in again.events if isinstance(event, ToolResult)]
    assert answered == [event.origin for event in again.events if isinstance(event, ToolCall)]
    assert view(anew) == view([
        *anew,
        *(replace(entry, reasoning=None, tool_calls=None, summary=None, resources=None) for entry in more),
    ])
