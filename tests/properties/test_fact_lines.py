from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

import streams
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.log_contents import contents_in, handles_of
from jp.compaction.projection import project
from jp.compaction.status_lines import content_size
from jp.context.markers import assign_handles, look_up, marked_handles
from jp.conversation.entries import (
    AnyEntry,
    Compaction,
    Facts,
    ToolCallPolicy,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolCall, ToolResult, ViewEvent

STRIPPED = Compaction(
    id="k", from_turn=0, to_turn=99, tool_calls=ToolCallPolicy(policy="strip", request=True, response=True)
)

REFERENCE = "The content of "
"""What a snapshot that was marked stands as, however short it is: nothing marks a short one but these streams."""

# For checksums that begin alike, as chance would not make them.
digits = st.text("01", min_size=8, max_size=8)


def block_of(begin: str, end: str, size: int) -> TextBlock:
    return TextBlock(sha256=begin + "0" * 48 + end, size=size, chars=size, lines=1)


blocks = st.builds(block_of, digits, digits, st.integers(0, 9000))
facts = st.none() | st.builds(
    Facts,
    path=st.none() | st.text(max_size=9) | st.just("a/long/path.py" * 30),
    lines=st.sampled_from((None, "1-9")),
    exit_code=st.none() | st.integers(-20, 200),
    matches=st.none() | st.integers(0, 99),
    first_error=st.none() | st.text(max_size=300),
)
answered = st.lists(st.tuples(st.lists(blocks, max_size=12), facts, st.booleans()), max_size=8)


def story(answers: Sequence[tuple[list[TextBlock], Facts | None, bool]]) -> list[AnyEntry]:
    entries: list[AnyEntry] = []
    for number, (content, recorded, is_error) in enumerate(answers):
        entries += (
            ToolCallRequest(id=f"c{number}", call_id="x", name="run", arguments={}),
            ToolCallResponse(request=f"c{number}", content=tuple(content), facts=recorded, is_error=is_error),
        )
    return entries


def lines_of(entries: Sequence[AnyEntry], status_formatter: StatusLineFormatter) -> list[str | None]:
    """The line for each response, whether a view would show it or not."""
    lines = status_formatter.of(entries)
    calls = {entry.id: entry for entry in entries if isinstance(entry, ToolCallRequest)}
    return [lines.digest(calls[entry.request], entry, None) for entry in entries if isinstance(entry, ToolCallResponse)]


@given(answered, answered)
def test_what_stands_for_a_response_stays_when_the_log_grows_whatever_its_checksums(
    first: list[tuple[list[TextBlock], Facts | None, bool]], more: list[tuple[list[TextBlock], Facts | None, bool]]
) -> None:
    entries = story([*first, *more])
    begun = entries[: 2 * len(first)]
    growing = StatusLineFormatter()

    before = lines_of(begun, growing)

    assert lines_of(entries, growing) == lines_of(entries, StatusLineFormatter())
    assert lines_of(entries, StatusLineFormatter())[: len(before)] == before
    assert handles_of(begun).items() <= handles_of(entries).items()


@given(answered)
def test_a_line_is_shorter_than_its_response_and_names_by_handles_what_stands_in_it(
    answers: list[tuple[list[TextBlock], Facts | None, bool]],
) -> None:
    entries = story(answers)
    assigned = assign_handles(sha256 for entry in entries for sha256, _ in contents_in(entry))
    responses = [entry for entry in entries if isinstance(entry, ToolCallResponse)]

    for response, line in zip(responses, lines_of(entries, StatusLineFormatter()), strict=True):
        own = {sha256 for sha256, _ in contents_in(response)}
        size = content_size(response.content)
        if line is None:
            assert size < 60
            continue
        assert len(line.encode("utf-8", "surrogatepass")) < size
        assert "\n" not in line
        named = line.partition("; recall ")[2].split(", ")
        assert {look_up(handle, assigned) for handle in named} <= own


def arguments_of(events: Sequence[ViewEvent]) -> dict[str, ToolCall]:
    return {event.origin: event for event in events if isinstance(event, ToolCall)}


@given(streams.streams(overlays=False))
def test_no_stand_in_of_a_log_is_longer_than_what_it_stands_for(entries: tuple[AnyEntry, ...]) -> None:
    events = project([*entries, STRIPPED], StatusLineFormatter()).events
    calls = {entry.id: entry for entry in entries if isinstance(entry, ToolCallRequest)}
    responses = {entry.id: entry for entry in entries if isinstance(entry, ToolCallResponse)}
    handles = handles_of(entries)

    for origin, shown in arguments_of(events).items():
        call = calls[origin]
        before, after = json.encode(call.arguments), json.encode(shown.arguments)
        assert (shown.call_id, shown.name) == (call.call_id, call.name)
        assert len(after) < len(before) or shown.arguments == call.arguments
        own = {handles[sha256] for sha256, _ in contents_in(call)}
        assert set(marked_handles(after.decode(), "n0nce")) <= own
        assert (b"[[cut:" in after) == (max((len(content) for content in strings(call)), default=0) > 400)
    for event in events:
        if isinstance(event, ToolResult) and event.origin:
            response = responses[event.origin]
            assert (event.call, event.is_error) == (response.request, response.is_error)
            if event.content == response.content or len(event.content) != 1:
                continue
            stand_in = event.content[0]
            if isinstance(stand_in, TextBlock) and not (stand_in.text or "").startswith(REFERENCE):
                assert content_size(event.content) < content_size(response.content)


def strings(call: ToolCallRequest) -> list[str]:
    return [call.arguments] if isinstance(call.arguments, str) else [str(value) for value in call.arguments.values()]


@given(streams.stories())
def test_a_stripped_view_grows_only_at_its_end(story: streams.Story) -> None:
    plain = [entry for entry in story.entries if isinstance(entry, (ToolCallRequest, ToolCallResponse))]
    entries = [*story.entries, STRIPPED, TurnStart(id="next")]
    growing = StatusLineFormatter()

    before = project(entries, growing).events
    after = project([*entries, *plain], growing).events

    assert after[: len(before)] == before
