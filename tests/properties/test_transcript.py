"""Between a view and the messages of `jp.context`: nothing is lost, whatever the log looks like."""

from __future__ import annotations

from hypothesis import given

from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.projection import Projection, project
from jp.compaction.transcript import ViewTranscript, estimate_view, transcript_of, whole_transcript
from jp.context.budget import estimate_messages
from jp.conversation.entries import AnyEntry, Compaction
from jp.conversation.thread import ToolResult
from streams import Story, any_streams, stories, streams
from transcript_validator import complaints

Entries = tuple[AnyEntry, ...]
STAND_INS = StatusLineFormatter()


def adapted(entries: Entries) -> tuple[Projection, ViewTranscript]:
    view = project(entries, STAND_INS)
    return view, transcript_of(view, entries)


@given(any_streams())
def test_every_event_of_a_view_stands_in_its_messages_in_its_order(entries: Entries) -> None:
    view, transcript = adapted(entries)

    pieces = [*(record.event for record in transcript.records.values() if record.block is None)]

    assert {id(event) for event in pieces} == {id(event) for event in view.events}
    assert [event for event in pieces if isinstance(event, ToolResult)] == [
        event for event in view.events if isinstance(event, ToolResult)
    ]


@given(any_streams())
def test_providers_take_the_messages_of_every_view(entries: Entries) -> None:
    messages = adapted(entries)[1].messages

    assert complaints(messages) == []


@given(streams())
def test_every_origin_is_there_once_and_known(entries: Entries) -> None:
    _, transcript = adapted(entries)
    origins: list[str] = []
    for message in transcript.messages:
        assert isinstance(message.content, tuple)
        origins += [block.origin for block in message.content] + [call.origin for call in message.calls]
        if message.role == "tool":
            origins.append(message.origin)
        else:
            assert message.origin in origins

    assert sorted(origins) == sorted(transcript.records)


@given(stories(overlays=False))
def test_the_messages_of_a_log_that_grows_begin_alike(story: Story) -> None:
    whole = whole_transcript(story.entries)
    for request in story.requests:
        part = whole_transcript(story.entries[: request.position])
        # Only to the last message, what was asked or answered there, something can be added.
        assert whole.messages[: len(part.messages) - 1] == part.messages[:-1]


@given(streams())
def test_without_compactions_nothing_is_a_stand_in_but_repetitions(entries: Entries) -> None:
    plain = tuple(entry for entry in entries if not isinstance(entry, Compaction))

    assert whole_transcript(entries) == whole_transcript(plain)
    assert all(message.meta.kind != "summary" for message in whole_transcript(entries).messages)


@given(any_streams())
def test_a_view_is_estimated_as_its_messages_are(entries: Entries) -> None:
    view, transcript = adapted(entries)

    assert estimate_view(view) == estimate_messages(transcript.messages)
