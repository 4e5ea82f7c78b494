from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from jp.attachment.base import AttachmentError, Declaration, Resolution, ResolveContext
from jp.attachment.conversation import ConversationHandler, StoredConversation
from jp.conversation.entries import AnyEntry, JsonObject, Revert, ToolCallResponse
from jp.conversation.resource import TextBlock
from jp.conversation.thread import C
from jp.errors import StorageError
from logs import ask, call, end, log, say, start, whole_turn

STREAM = [*whole_turn(0), *whole_turn(1), start(2), ask("last?"), say("Last."), end()]


def load(carrier: C) -> C:
    if carrier.sha256 is not None:
        raise StorageError("blob '5' is missing", hint="Restore it.")
    return carrier


class Reader:
    """Conversations in memory."""

    def __init__(self, **streams: Sequence[AnyEntry]) -> None:
        self.streams = {f"jp-c{name.removeprefix('c')}": log(*stream) for name, stream in streams.items()}
        self.failing: set[str] = set()

    def ids(self) -> list[str]:
        if "ids" in self.failing:
            raise StorageError("cannot list '/w'")
        return list(self.streams)

    def read(self, conversation: str) -> StoredConversation:
        if conversation in self.failing:
            raise StorageError("'/w/events.jsonl', line 3: not JSON", hint="Mend it.")
        return StoredConversation(
            title=f"About\n{conversation}",
            modified="2026-01-01T00:00:00.000Z",
            entries=self.streams[conversation],
            load=load,
            metadata={"title": "T"},
        )

    def base_config(self, conversation: str) -> JsonObject:
        return {"assistant": {"name": conversation}}


@pytest.fixture
def context(tmp_path: Path) -> ResolveContext:
    return ResolveContext(root=tmp_path, cwd=tmp_path, max_bytes=2_000)


def resolve(reader: Reader, uri: str, context: ResolveContext, *excludes: str) -> Resolution:
    handler = ConversationHandler(reader)
    excluded = [
        Declaration(uri=handler.canonical(text, context), written=f"!{text}", exclude=True) for text in excludes
    ]
    declaration = Declaration(uri=handler.canonical(uri, context), written=uri)

    async def run() -> Resolution:
        return await handler.resolve(declaration, context, excludes=excluded)

    return anyio.run(run)


def test_the_last_answer_is_what_a_bare_id_stands_for(context: ResolveContext) -> None:
    (resource,) = resolve(Reader(c17=STREAM), "jp:jp-c17", context).resources

    assert (resource.uri, resource.mime_type, resource.name) == ("jp:jp-c17", "text/markdown", "jp-c17 a:-1")
    assert resource.title == "About\njp-c17"
    assert resource.annotations is not None
    assert resource.annotations.last_modified == "2026-01-01T00:00:00.000Z"
    assert resource.text == (
        "# About jp-c17\n\nTurns of the conversation jp-c17.\n\n## Turn 2\n\n### Assistant\n\nLast.\n"
    )


def test_a_unique_beginning_stands_for_the_whole_id(context: ResolveContext) -> None:
    handler = ConversationHandler(Reader(c170=STREAM, c17=STREAM, c25=STREAM))

    assert handler.canonical("jp:2?select=u", context) == "jp:jp-c25?select=u:-1"
    assert handler.canonical("jp:17", context) == "jp:jp-c17"
    assert handler.canonical("jp:3", context) == "jp:jp-c3"


def test_a_beginning_of_several_names_them_newest_first(context: ResolveContext) -> None:
    handler = ConversationHandler(Reader(**{f"c1{number:02}": STREAM for number in range(12)}))

    with pytest.raises(
        AttachmentError, match=r"^'jp:1' is the beginning of 12 conversations: jp-c111, jp-c110"
    ) as raised:
        handler.canonical("jp:1", context)

    assert raised.value.message.endswith("jp-c102, and 2 more")
    assert raised.value.hint == "give the whole id"


def test_what_was_undone_is_not_attached(context: ResolveContext) -> None:
    reader = Reader(c1=[*STREAM, Revert(entries=("t2",))])

    assert "## Turn 1\n" in (resolve(reader, "jp:1", context).resources[0].text or "")
    with pytest.raises(AttachmentError, match="has no turns '2'") as raised:
        resolve(reader, "jp:1?select=2", context)
    assert raised.value.hint == "its turns are 0 to 1"


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("jp:9", "'jp:9': there is no conversation 'jp-c9' here"),
        ("jp:2", "'jp:2': the conversation 'jp-c2' has no turn that could be attached"),
        ("jp:1?select=3", "'jp:1?select=3': the conversation 'jp-c1' has no turns '3'"),
        ("jp:1?select=t", "'jp:1?select=t' selects nothing: of tools there is nothing in turn 2 of 'jp-c1'"),
        ("jp:3?select=t,r:..", "selects nothing: of reasoning, tools there is nothing in turns 0 to 1 of 'jp-c3'"),
        ("jp:3?select=t,r:..&raw", "selects nothing: of reasoning, tools there is nothing in turns 0 to 1 of 'jp-c3'"),
        ("jp:1?select=*:..", "has more than 1.0 KiB, the most of an attachment"),
        ("jp:4", "'jp:4' cannot be read: '/w/events.jsonl', line 3: not JSON"),
        ("jp:5?select=t", "'jp:5?select=t' cannot be read: blob '5' is missing"),
    ],
)
def test_what_cannot_be_attached_is_said_with_a_way_out(uri: str, message: str, context: ResolveContext) -> None:
    plain = [start(0), ask("a"), say("b"), end(), start(1), ask("c"), say("d"), end()]
    stored = [start(0), call("c"), ToolCallResponse(request="c", content=(stored_text(),))]
    reader = Reader(c1=STREAM, c2=[], c3=plain, c4=plain, c5=stored)
    reader.failing.add("jp-c4")
    bounded = ResolveContext(root=context.root, cwd=context.cwd, max_bytes=1_024)

    with pytest.raises(AttachmentError) as raised:
        resolve(reader, uri, bounded)

    assert message in raised.value.message
    assert raised.value.hint


def stored_text() -> TextBlock:
    return TextBlock(sha256="5", size=9_000, chars=9_000, lines=1)


def test_conversations_that_cannot_be_listed_are_an_attachments_error(context: ResolveContext) -> None:
    reader = Reader()
    reader.failing.add("ids")

    with pytest.raises(AttachmentError, match="'jp:1' cannot be read: cannot list '/w'"):
        ConversationHandler(reader).canonical("jp:1", context)


def test_an_exclude_of_the_same_selection_takes_it_away(context: ResolveContext) -> None:
    resolution = resolve(Reader(c1=STREAM), "jp:1", context, "jp:1?select=u", "jp:jp-c1?select=a")

    assert resolution == Resolution(
        resources=(), notices=("'jp:1' attaches nothing: '!jp:jp-c1?select=a' excludes it",)
    )


def test_entries_come_raw_with_the_settings_before_them(context: ResolveContext) -> None:
    reader = Reader(c1=STREAM)
    (raw,) = resolve(reader, "jp:1?raw", context).resources
    (everything,) = resolve(reader, "jp:1?raw=all", context).resources

    assert (raw.uri, raw.mime_type) == ("jp:jp-c1?raw", "application/x-ndjson")
    assert [json.loads(line)["message"] for line in (raw.text or "").splitlines()] == ["Last."]
    head, *rest = (everything.text or "").splitlines()
    assert json.loads(head) == {
        "id": "jp-c1",
        "metadata": {"title": "T"},
        "base_config": {"assistant": {"name": "jp-c1"}},
    }
    assert rest == (raw.text or "").splitlines()
