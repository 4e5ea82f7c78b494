"""`jp conversation import` of the transcripts of llm, Claude Code and Codex."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from forked import run_jp
from stage import logs, make_workspace

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
LLM = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT, options_json TEXT,
    response TEXT, response_json TEXT, conversation_id TEXT, duration_ms INTEGER, datetime_utc TEXT,
    input_tokens INTEGER, output_tokens INTEGER, token_details TEXT, schema_id TEXT, resolved_model TEXT);
CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
CREATE TABLE prompt_attachments (response_id TEXT, attachment_id TEXT, "order" INTEGER);
CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT, datetime_utc TEXT, source TEXT);
CREATE TABLE prompt_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER);
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, arguments TEXT,
    tool_call_id TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, output TEXT,
    tool_call_id TEXT, instance_id INTEGER, exception TEXT);
"""
MESSAGE_STORE = """
CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT, provider_metadata TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, tool_name TEXT, text TEXT,
    payload TEXT);
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT, datetime_utc TEXT);
CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT, model TEXT,
    resolved_model TEXT, options_json TEXT, schema_id TEXT, input_tokens INTEGER, output_tokens INTEGER,
    token_details TEXT, duration_ms INTEGER, datetime_utc TEXT, response_json TEXT);
CREATE TABLE schemas (id TEXT PRIMARY KEY, content TEXT);
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "work")


def imported(root: Path, path: Path) -> list[dict[str, Any]]:
    """The turns of the conversations that an import brings, as they are exported."""
    result = run_jp("conversation", "import", str(path), "--format", "json", cwd=root)
    assert result.code == 0, result
    return [document(root, item["id"]) for item in json.loads(result.stdout)["imported"]]


def document(root: Path, identity: str) -> dict[str, Any]:
    result = run_jp("conversation", "export", identity, "--to", "json", cwd=root)
    assert result.code == 0, result
    return json.loads(result.stdout)


def parts(turn: dict[str, Any]) -> list[tuple[str, str]]:
    return [(part["type"], part.get("text") or part.get("arguments") or "") for part in turn["parts"]]


def claude_session(path: Path) -> Path:
    common = {"sessionId": "s1", "cwd": "/x", "version": "2.0.0", "isSidechain": False, "userType": "external"}

    def line(kind: str, number: int, content: object, **more: object) -> dict[str, object]:
        message = {"role": kind, "content": content, **({"model": "claude-x"} if kind == "assistant" else {})}
        at = f"2026-01-02T03:04:{number:02d}.000Z"
        return {**common, "type": kind, "uuid": f"u{number}", "timestamp": at, "message": message, **more}

    call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "one line"}]}
    lines: list[dict[str, object]] = [
        {"type": "summary", "summary": "The lexer", "leafUuid": "u5"},
        line("user", 1, "why does it loop?", permissionMode="bypassPermissions"),
        line("user", 2, "<command>caveat</command>", isMeta=True),
        line("assistant", 3, [{"type": "thinking", "thinking": "Let me look.", "signature": "x"}]),
        line("assistant", 4, [{"type": "text", "text": "I read it."}, call]),
        line("user", 5, [result], toolUseResult={"x": 1}),
        line("assistant", 6, "in one piece"),
        line("assistant", 7, [{"type": "text", "text": "It never ends."}]),
        line("assistant", 8, [{"type": "text", "text": "of a sub-agent"}], isSidechain=True),
        line("user", 9, [{"type": "text", "text": "thanks"}]),
        {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines) + '{"torn', encoding="utf-8")
    return path


def codex_session(path: Path) -> Path:
    def item(number: int, payload: dict[str, object], kind: str = "response_item") -> dict[str, object]:
        return {"timestamp": f"2026-01-02T03:04:{number:02d}.000Z", "type": kind, "payload": payload}

    def message(role: str, text: str) -> dict[str, object]:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    lines = [
        item(0, {"id": "c1", "timestamp": "2026-01-02T03:04:00.000Z", "cwd": "/x", "cli_version": "1"}, "session_meta"),
        item(1, message("developer", "<permissions instructions>never ask</permissions>")),
        item(1, message("user", "<environment_context>cwd</environment_context>")),
        item(1, {"approval_policy": "never", "sandbox_policy": {"mode": "danger-full-access"}}, "turn_context"),
        item(2, message("user", "list the files")),
        item(2, {"type": "user_message", "message": "list the files"}, "event_msg"),
        item(
            3, {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Use ls."}], "encrypted_content": "x"}
        ),
        item(4, {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "k1"}),
        item(5, {"type": "function_call_output", "call_id": "k1", "output": '{"output":"a.py\\n","metadata":{}}'}),
        item(6, {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin", "call_id": "k2"}),
        item(7, {"type": "custom_tool_call_output", "call_id": "k2", "output": "Done"}),
        item(8, message("assistant", "There is a.py.")),
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    return path


def llm_database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(LLM)
        database.execute("INSERT INTO conversations VALUES ('v1', 'Files', 'gpt-x')")
        answer = "INSERT INTO responses (id, prompt, response, conversation_id, datetime_utc) VALUES (?, ?, ?, ?, ?)"
        for values in (
            ("r1", "what is in it?", "", "v1", "2026-01-02T03:04:01+00:00"),
            ("r2", "", "A dot.", "v1", "2026-01-02T03:04:02+00:00"),
            ("r3", "alone", "Yes.", None, "2026-01-02T03:05:00+00:00"),
        ):
            database.execute(answer, values)
        database.execute("INSERT INTO attachments VALUES ('a1', 'image/png', NULL, NULL, ?)", (PNG,))
        database.execute("INSERT INTO prompt_attachments VALUES ('r1', 'a1', 0)")
        database.execute("INSERT INTO fragments VALUES (1, 'h', 'a long text', '', 'x.txt')")
        database.execute("INSERT INTO prompt_fragments VALUES ('r1', 1, 0)")
        database.execute("""INSERT INTO tool_calls VALUES (1, 'r1', 1, 'look', '{"at": "it"}', 't1')""")
        database.execute("INSERT INTO tool_results VALUES (1, 'r2', 1, 'look', 'a dot', 't1', NULL, NULL)")
        database.commit()
    return path


def llm_message_store(path: Path) -> Path:
    """A database of llm 0.32: a legacy conversation that goes on, and one with a fork."""
    path = llm_database(path)
    chain: list[tuple[str, str | None, str, list[tuple[str, str | None, dict[str, Any] | None]]]] = [
        ("s", None, "system", [("text", "be brief", None)]),
        ("u1", "s", "user", [("text", None, {"text_ref": [{"fragment": 1}, {"literal": "\nlook"}]})]),
        ("a1", "u1", "assistant", [("reasoning", "Hm.", None), ("tool_call", None, {"name": "look", "arguments": {}})]),
        ("t1", "a1", "tool", [("tool_result", None, {"name": "look", "output": "", "exception": "it failed"})]),
        ("a2", "t1", "assistant", [("text", "No.", None)]),
        ("u2", "a2", "user", [("text", "a dog", None)]),
        ("a3", "u2", "assistant", [("text", '{"name": "Rex"}', None)]),
        ("u3", "a2", "user", [("text", "otherwise?", None), ("attachment", None, {"attachment": {"id": "a1"}})]),
        ("a4", "u3", "assistant", [("text", "Yes.", None)]),
        ("v1", None, "user", [("text", "a long text\n\nwhat is in it?", None)]),
        ("v2", "v1", "assistant", [("text", "A dot.", None)]),
        ("v3", "v2", "user", [("text", "sure?", None)]),
        ("v4", "v3", "assistant", [("text", "Sure.", None)]),
    ]
    turns = [("n1", "n", "u1", "a1"), ("n2", "n", "t1", "a2"), ("n3", "n", "u2", "a3"), ("f1", "f", "u3", "a4")]
    with closing(sqlite3.connect(path)) as database:
        database.executescript(MESSAGE_STORE)
        database.execute("INSERT INTO schemas VALUES ('d', ?)", ('{"type": "object"}',))
        for name, parent, role, blocks in chain:
            database.execute("INSERT INTO messages VALUES (?, ?, ?, NULL)", (name, parent, role))
            for position, (kind, text, payload) in enumerate(blocks):
                value = None if payload is None else json.dumps(payload)
                values = (name, position, kind, text, value)
                database.execute("INSERT INTO parts VALUES (NULL, ?, ?, ?, NULL, ?, ?)", values)
        for second, (name, thread, parent, tip) in enumerate([*turns, ("v9", "v1", "v3", "v4")]):
            at = f"2026-02-02T03:04:0{second}+00:00"
            schema = "d" if name == "n3" else None
            database.execute(
                "INSERT INTO turns (id, thread_id, parent_message_hash, tip_message_hash, schema_id, output_tokens,"
                " datetime_utc) VALUES (?, ?, ?, ?, ?, 7, ?)",
                (name, thread, parent, tip, schema, at),
            )
        database.executemany(
            "INSERT INTO threads VALUES (?, ?, ?, ?, '')", [("n", "New", "a3", None), ("f", None, "a4", "n")]
        )
        database.commit()
    return path


def test_the_message_store_of_llm_becomes_conversations_without_what_it_repeats(root: Path, tmp_path: Path) -> None:
    found = {one["title"]: one for one in imported(root, llm_message_store(tmp_path / "logs.db"))}
    assert {*found} == {"alone", "New", "Files", "a long text look"}
    first, second = found["New"]["turns"]
    assert parts(first) == [
        *(("request", "a long text\nlook"), ("reasoning", "Hm."), ("tool", "{}"), ("message", "No.")),
    ]
    assert first["parts"][2]["result"] == [{"type": "text", "text": "it failed"}]
    assert first["parts"][2]["is_error"]
    assert parts(second) == [("request", "a dog"), ("message", '{\n  "name": "Rex"\n}')]
    assert second["parts"][1]["is_data"]
    fork = found["a long text look"]["turns"]
    assert [parts(turn)[0] for turn in fork] == [("request", "a long text\nlook"), ("request", "otherwise?")]
    assert (parts(fork[0]), parts(fork[1])[1:]) == (parts(first), [("attachment", ""), ("message", "Yes.")])
    went_on = [parts(turn) for turn in found["Files"]["turns"]]
    assert went_on == [
        [("request", "a long text\n\nwhat is in it?"), ("message", "A dot.")],
        [("request", "sure?"), ("message", "Sure.")],
    ]


def test_a_session_of_claude_code_becomes_a_conversation(root: Path, tmp_path: Path) -> None:
    (found,) = imported(root, claude_session(tmp_path / "session.jsonl"))
    assert (found["title"], found["created_at"]) == ("The lexer", "2026-01-02T03:04:01.000000Z")
    first, second = found["turns"]
    assert parts(first) == [
        ("request", "why does it loop?"),
        ("reasoning", "Let me look."),
        ("message", "I read it."),
        ("tool", '{\n  "file_path": "a.py"\n}'),
        ("message", "in one piece"),
        ("message", "It never ends."),
    ]
    assert first["parts"][3]["result"] == [{"type": "text", "text": "one line"}]
    assert parts(second) == [("request", "thanks")]


def test_a_session_of_codex_becomes_a_conversation(root: Path, tmp_path: Path) -> None:
    (found,) = imported(root, codex_session(tmp_path / "rollout.jsonl"))
    (turn,) = found["turns"]
    assert parts(turn) == [
        ("request", "list the files"),
        ("reasoning", "Use ls."),
        ("tool", '{\n  "command": [\n    "ls"\n  ]\n}'),
        ("tool", '{\n  "input": "*** Begin"\n}'),
        ("message", "There is a.py."),
    ]
    assert [part["result"][0]["text"] for part in turn["parts"] if part["type"] == "tool"] == ["a.py\n", "Done"]


def test_a_database_of_llm_becomes_conversations(root: Path, tmp_path: Path) -> None:
    found = imported(root, llm_database(tmp_path / "logs.db"))
    assert [one["title"] for one in found] == ["Files", "alone"]
    (turn,) = found[0]["turns"]
    assert parts(turn) == [
        ("request", "a long text\n\nwhat is in it?"),
        ("attachment", ""),
        ("tool", '{\n  "at": "it"\n}'),
        ("message", "A dot."),
    ]
    assert turn["parts"][1]["mime_type"] == "image/png"
    assert turn["parts"][2]["result"] == [{"type": "text", "text": "a dot"}]


@pytest.mark.parametrize("write", [claude_session, codex_session, llm_database, llm_message_store])
def test_an_imported_transcript_goes_on_and_is_known_again(root: Path, tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "source")
    assert imported(root, path)
    again = run_jp("conversation", "import", str(path), cwd=root)
    assert again.code == 2, again
    assert "here already" in again.stderr
    asked = run_jp("query", "--id", "last", "and now?", cwd=root)
    assert asked.code == 0, asked
    assert not (tmp_path / "source-journal").exists()


@pytest.mark.parametrize("write", [claude_session, codex_session])
def test_nothing_in_a_transcript_loosens_consent(root: Path, tmp_path: Path, write: Any) -> None:
    imported(root, write(tmp_path / "source"))
    log = logs(root)[0]
    assert not {"config_delta", "request_context"} & {
        json.loads(line)["type"] for line in log.read_text(encoding="utf-8").splitlines()
    }
    for word in ("bypassPermissions", "danger-full-access", "never ask"):
        assert word not in log.read_text(encoding="utf-8")
    assert "imported_at" in (log.parent / "metadata.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("content", [b"", b"hello\n", b'{"a": 1}\n', b"SQLite format 3\0 broken", b'[[[["sessionId"'])
def test_a_file_that_is_no_transcript_is_refused(root: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "source").write_bytes(content)
    result = run_jp("conversation", "import", str(tmp_path / "source"), cwd=root)
    assert (result.code, "hint:" in result.stderr) == (2, True), result
    assert not logs(root)
