"""Between a view and the messages of `jp.context`: nothing is lost, whatever the log looks like."""

from __future__ import annotations

from hypothesis import given
from msgspec.structs import replace

from artifacts import MemoryArtifacts
from jp.compaction.fact_lines import FactLines
from jp.compaction.projection import Projection, project
from jp.compaction.restored import events_of
from jp.compaction.transcript import ViewTranscript, transcript_of, whole_transcript
from jp.context.sanitize import sanitize_pairs
from jp.context.types import Message, TextBlock
from jp.conversation import resource
from jp.conversation.entries import AnyEntry, Compaction
from jp.conversation.thread import ToolResult
from streams import Story, any_streams, stories, streams
from transcript_validator import complaints

Entries = tuple[AnyEntry, ...]
STAND_INS = FactLines()


def adapted(entries: Entries) -> tuple[Projection, ViewTranscript]:
    view = project(entries, STAND_INS)
    return view, transcript_of(view, entries)


@given(any_streams())
def test_there_and_back_every_event_is_the_same_object(entries: Entries) -> None:
    view, transcript = adapted(entries)

    back = events_of(transcript.messages, transcript.records)

    assert len(back) == len(view.events)
    assert all(one is other for one, other in zip(back, view.events, strict=True))


@given(any_streams())
def test_providers_take_the_messages_of_every_view(entries: Entries) -> None:
    messages = adapted(entries)[1].messages

    assert complaints(messages) == []
    assert sanitize_pairs(messages, MemoryArtifacts()).messages is messages


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
def test_a_text_that_a_pass_changes_is_changed_in_its_place_alone(entries: Entries) -> None:
    view, transcript = adapted(entries)

    def shorter(message: Message) -> Message:
        if message.role != "tool":
            return message
        return replace(message, content=(TextBlock(text="short"),))

    back = events_of(tuple(map(shorter, transcript.messages)), transcript.records)

    for event, before in zip(back, view.events, strict=True):
        if isinstance(before, ToolResult):
            assert isinstance(event, ToolResult)
            assert event.content == (resource.TextBlock(text="short"),)
            assert replace(event, content=before.content) == before
        else:
            assert event is before


@given(streams())
def test_without_compactions_nothing_is_a_stand_in_but_repetitions(entries: Entries) -> None:
    plain = tuple(entry for entry in entries if not isinstance(entry, Compaction))

    assert whole_transcript(entries) == whole_transcript(plain)
    assert all(message.meta.kind != "summary" for message in whole_transcript(entries).messages)
