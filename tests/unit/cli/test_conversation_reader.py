from __future__ import annotations

from pathlib import Path

import pytest

from jp.app.query.attachments import WorkspaceConversations
from jp.conversation.entries import ChatRequest, ChatResponse, TurnStart
from jp.conversation.resource import Resource
from jp.conversation.turns import turns_of
from jp.errors import UsageError
from workspaces import LARGE_TEXT, new_conversation, new_workspace, open_log_of


def test_a_conversation_is_read_as_it_is_stored(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    info = new_conversation(workspace, "The parser")
    with open_log_of(workspace, info) as log:
        log.append(TurnStart())
        log.append(ChatRequest(content="what?", resources=(Resource(uri="file:///a", text=LARGE_TEXT),)))
    reader = WorkspaceConversations(workspace)

    stored = reader.read(info.id)

    (turn,) = turns_of(stored.entries)
    (request,) = (entry for entry in turn.entries if isinstance(entry, ChatRequest))
    assert list(reader.ids()) == [info.id]
    assert (stored.title, stored.metadata) == ("The parser", {"title": "The parser"})
    assert stored.load(request.resources[0]).text == LARGE_TEXT
    assert stored.modified.endswith("Z")
    assert reader.base_config(info.id) == {}
    with pytest.raises(UsageError):
        reader.read("jp-c1")


def test_of_the_conversation_whose_turn_is_taken_only_earlier_turns_are_seen(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    running, other = new_conversation(workspace), new_conversation(workspace)
    for info in (running, other):
        with open_log_of(workspace, info) as log:
            for entry in (TurnStart(), ChatRequest(content="one"), ChatResponse(message="1")):
                log.append(entry)
            earlier = len(log.entries)
            for entry in (TurnStart(), ChatRequest(content="two")):
                log.append(entry)
    reader = WorkspaceConversations(workspace, running=running.id, earlier=earlier)

    assert len(turns_of(reader.read(running.id).entries)) == 1
    assert len(turns_of(reader.read(other.id).entries)) == 2
    assert len(turns_of(WorkspaceConversations(workspace, running=running.id).read(running.id).entries)) == 2
