from __future__ import annotations

from pathlib import Path

from jp.conversation.entries import ChatRequest, ChatResponse, TurnStart
from jp.workspace.store import last_request
from workspaces import new_conversation, new_workspace, open_log_of


def test_the_last_request_is_found_at_the_end_of_a_log(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    info = new_conversation(workspace)
    assert last_request(info.directory) == ""

    with open_log_of(workspace, info) as log:
        for question in ("first", "second"):
            log.append(TurnStart())
            log.append(ChatRequest(content=question))
            log.append(ChatResponse(message='about a "chat_request"'))

    assert last_request(info.directory) == "second"


def test_what_lies_far_from_the_end_is_not_looked_for(tmp_path: Path) -> None:
    workspace = new_workspace(tmp_path)
    info = new_conversation(workspace)
    with open_log_of(workspace, info) as log:
        log.append(ChatRequest(content="long " * 20_000))
        assert last_request(info.directory) == ""
        log.append(ChatRequest(content="near"))
        log.append(ChatResponse(message="x" * 70_000))

    assert last_request(info.directory) == ""


def test_no_log_and_a_torn_line_have_no_request(tmp_path: Path) -> None:
    assert last_request(tmp_path) == ""
    (tmp_path / "events.jsonl").write_text(
        '{"type":"chat_request","content":"whole"}\n{"type":"chat_request","con', encoding="utf-8"
    )

    assert last_request(tmp_path) == "whole"
