"""Workspaces for tests: a fixed clock, a counter in place of chance, and directories of their own."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import BinaryContent, Resource, ResourceBlock, StoredContent, TextBlock, content_of
from jp.workspace.files import Stamps
from jp.workspace.listing import ConversationInfo, Metadata
from jp.workspace.log import Log
from jp.workspace.workspace import Workspace, create_workspace, find_workspace

START = 1_766_000_000_000
"""When the fixed clock starts: milliseconds since the Unix epoch."""


def fixed_stamps(start: int = START) -> Stamps:
    """A clock that stands still, and bytes that count up."""
    numbers = count(1)
    return Stamps(now=lambda: start, entropy=lambda size: next(numbers).to_bytes(size))


def new_workspace(directory: Path, *, stamps: Stamps | None = None) -> Workspace:
    """A workspace and a user's data directory below `directory`."""
    root = directory / "work"
    create_workspace(root, commit_conversations=False)
    return find_workspace(root, user_data=directory / "user", stamps=stamps or fixed_stamps())


def no_waiting(text: str) -> None:
    """For locks that nobody else holds."""
    raise AssertionError(text)


@contextmanager
def open_log_of(workspace: Workspace, info: ConversationInfo) -> Generator[Log]:
    """The log of a conversation, its lock held."""
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=no_waiting)
    with lock, workspace.open(info, lock) as log:
        yield log


def new_conversation(workspace: Workspace, title: str | None = None, *, local: bool = False) -> ConversationInfo:
    """An empty conversation."""
    return workspace.create({}, Metadata(title=title), local=local)


LARGE_TEXT = "a line of text, äöü\n" * 1000
LARGE_BYTES = bytes(range(256)) * 40


def turn_entries() -> list[AnyEntry]:
    """A turn with an attached file and a picture, a tool call and its large response; ids are still to be stamped.

    The response's `request` is `call`: replace it by the id of the call.
    """
    return [
        TurnStart(),
        ChatRequest(
            content="what is this?",
            resources=(
                Resource(uri="file:///a.txt", text=LARGE_TEXT),
                Resource(uri="file:///b.png", mime_type="image/png", blob=LARGE_BYTES),
                Resource(uri="file:///c.txt", text="small"),
            ),
        ),
        ToolCallRequest(call_id="t1", name="fs_read_file", arguments={"path": "a.txt"}),
        CycleEnd(attempt=1, finish="tools"),
        ToolCallResponse(
            request="call",
            content=(TextBlock(text="seen"), ResourceBlock(resource=Resource(uri="file:///a.txt", text=LARGE_TEXT))),
        ),
        ChatResponse(message="a file"),
        CycleEnd(attempt=1, finish="stop"),
    ]


def raw_content(resource: Resource) -> str | bytes:
    """The inline content of a resource."""
    match content_of(resource):
        case BinaryContent(data=data):
            return data
        case StoredContent():
            raise AssertionError(resource)
        case content:
            return content.text
