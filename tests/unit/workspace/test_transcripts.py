"""What transcripts of other tools become, entry by entry."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jp.conversation.entries import AnyEntry, ChatRequest, CycleEnd, Header, decode
from jp.errors import UsageError
from jp.workspace.transcripts import convert_transcript

AT = "2026-01-02T03:04:{:02d}.500Z"


def converted(source: Path, place: Path) -> list[tuple[str, dict[str, Any], list[AnyEntry]]]:
    """The directory, the metadata and the entries of each conversation."""
    convert_transcript(source, place)
    directories = sorted((place / "conversations").iterdir())
    return [
        (
            one.name,
            json.loads((one / "metadata.json").read_text(encoding="utf-8")),
            [decode(line) for line in (one / "events.jsonl").read_bytes().splitlines()],
        )
        for one in directories
    ]


def told(entries: Sequence[AnyEntry]) -> list[tuple[object, ...]]:
    """The type of each entry but the header, and what it says apart from ids and times."""
    numbers = {entry.id: number for number, entry in enumerate(entries)}
    found: list[tuple[object, ...]] = []
    for entry in entries[1:]:
        fields = msgspec.to_builtins(entry, builtin_types=(bytes,))
        kept = {name: value for name, value in fields.items() if name not in {"id", "at", "type", "nonce"}}
        if "request" in kept:
            kept["request"] = numbers[kept["request"]]
        found.append((fields["type"], *(f"{name}={value}" for name, value in kept.items() if value not in ({}, []))))
    return found


def lines(path: Path, *objects: object) -> Path:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in objects), encoding="utf-8")
    return path


def claude(kind: str, second: int, content: object, **more: object) -> dict[str, object]:
    message = {"role": kind, "content": content, **more}
    return {"sessionId": "s1", "type": kind, "timestamp": AT.format(second), "message": message}


def test_every_part_of_a_session_of_claude_code(tmp_path: Path) -> None:
    usage = {
        "input_tokens": 3,
        "output_tokens": 1,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 4,
    }
    wrong = {"input_tokens": -3, "output_tokens": "1", "cache_read_input_tokens": None}
    source = lines(
        tmp_path / "session.jsonl",
        {"type": "summary", "summary": "An earlier title"},
        {"type": "summary", "summary": "Lexer, again!"},
        claude("assistant", 1, "before anybody asked"),
        claude("user", 2, "  why   does\nit loop?  "),
        claude(
            "assistant",
            3,
            [
                {"type": "thinking", "thinking": "Look."},
                {"type": "text", "text": "I look."},
                {"type": "text"},
                {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "t2", "name": "Bash", "input": "ls"},
                {"type": "odd"},
            ],
            usage=usage,
        ),
        claude(
            "user",
            4,
            [
                {"type": "tool_result", "tool_use_id": "t1", "content": "text", "is_error": True},
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}],
                    "is_error": "yes",
                },
                {"type": "tool_result", "tool_use_id": "t9", "content": "of no call"},
                "no object",
            ],
        ),
        claude("assistant", 5, [{"type": "text", "text": "Done."}], usage=wrong),
        claude("user", 6, [{"type": "text", "text": "and"}, {"type": "text", "text": "now?"}]),
        {**claude("user", 7, "of a sub-agent"), "isSidechain": True},
        {**claude("user", 7, "of nobody"), "isMeta": True},
        {**claude("system", 7, "neither")},
    )

    ((name, metadata, entries),) = converted(source, tmp_path / "out")

    assert name == "17673230425-lexer-again"
    assert (metadata["title"], metadata["first_words"]) == ("Lexer, again!", "why does it loop?")
    assert told(entries) == CLAUDE
    assert [entry.at[17:19] for entry in entries if isinstance(entry, ChatRequest)] == ["02", "06"]


CLAUDE: list[tuple[object, ...]] = [
    ("turn_start",),
    ("chat_request", "content=  why   does\nit loop?  "),
    ("chat_response", "reasoning=Look."),
    ("chat_response", "message=I look."),
    ("tool_call_request", "call_id=t1", "name=Read", "arguments={'path': 'a'}"),
    ("tool_call_request", "call_id=t2", "name=Bash", "arguments=ls"),
    ("cycle_end", "attempt=1", "finish=tools", "usage={'input': 3, 'output': 1, 'cache_read': 20, 'cache_write': 4}"),
    ("tool_call_response", "request=5", "content=({'type': 'text', 'text': 'text'},)", "is_error=True"),
    ("tool_call_response", "request=6", "content=({'type': 'text', 'text': 'a\\nb'},)"),
    ("chat_response", "message=Done."),
    ("cycle_end", "attempt=1", "finish=stop"),
    ("turn_start",),
    ("chat_request", "content=and\nnow?"),
]


def codex(second: int, payload: object, kind: str = "response_item") -> dict[str, object]:
    return {"timestamp": AT.format(second), "type": kind, "payload": payload}


def said(role: str, *texts: str) -> dict[str, object]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}


OUTPUTS: list[tuple[object, str]] = [
    ("plain", "plain"),
    ('{"output": "inner"}', "inner"),
    ('{"other": 1}', '{"other": 1}'),
    ("[1]", "[1]"),
    ({"content": "under content"}, "under content"),
    ({"other": 1}, ""),
    (
        [{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}, {"type": "text", "text": "c"}],
        "a\nb\nc",
    ),
    (7, ""),
]


@pytest.mark.parametrize("old", [False, True])
def test_every_part_of_a_session_of_codex(tmp_path: Path, *, old: bool) -> None:
    items = [
        (1, said("user", "<environment_context>x</environment_context>")),
        (1, said("user", " <user_instructions>x")),
        (1, said("user", "# AGENTS.md instructions for x")),
        (1, said("developer", "be brief")),
        (2, said("user", "list", "files")),
        (
            3,
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "ls"}, {"type": "other", "text": "no"}]},
        ),
        (3, {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "k1"}),
        (3, {"type": "function_call", "name": "shell", "arguments": "no JSON", "call_id": "k2"}),
        (4, {"type": "function_call_output", "call_id": "k1", "output": "a.py"}),
        (4, {"type": "custom_tool_call", "name": "patch", "input": "***", "call_id": "k3"}),
        (4, {"type": "custom_tool_call_output", "call_id": "k3", "output": "ok"}),
        (4, {"type": "local_shell_call", "action": {"command": ["pwd"]}, "call_id": "k4"}),
        (5, said("assistant", "There is", "a.py.")),
        (6, said("user", "   ")),
        (6, {"type": "odd"}),
    ]
    first: dict[str, object] = {"id": "c1", "timestamp": AT.format(0)}
    if old:
        rows = [first, *({"timestamp": AT.format(second), **item} for second, item in items)]
    else:
        rows = [codex(0, first, "session_meta"), *(codex(second, item) for second, item in items)]
        rows.append(codex(7, {"type": "user_message", "message": "list"}, "event_msg"))

    ((name, metadata, entries),) = converted(lines(tmp_path / "rollout.jsonl", *rows), tmp_path / "out")

    assert (name, metadata.get("title"), metadata["first_words"]) == ("17673230425", None, "list files")
    assert told(entries) == CODEX


CODEX: list[tuple[object, ...]] = [
    ("turn_start",),
    ("chat_request", "content=list\nfiles"),
    ("chat_response", "reasoning=ls"),
    ("tool_call_request", "call_id=k1", "name=shell", "arguments={'command': ['ls']}"),
    ("tool_call_request", "call_id=k2", "name=shell", "arguments=no JSON"),
    ("cycle_end", "attempt=1", "finish=tools"),
    ("tool_call_response", "request=4", "content=({'type': 'text', 'text': 'a.py'},)"),
    ("tool_call_request", "call_id=k3", "name=patch", "arguments={'input': '***'}"),
    ("cycle_end", "attempt=1", "finish=tools"),
    ("tool_call_response", "request=8", "content=({'type': 'text', 'text': 'ok'},)"),
    ("tool_call_request", "call_id=k4", "name=local_shell", "arguments={'command': ['pwd']}"),
    ("chat_response", "message=There is\na.py."),
    ("cycle_end", "attempt=1", "finish=stop"),
]


@pytest.mark.parametrize(("output", "text"), OUTPUTS)
def test_the_text_of_a_result_of_codex(output: object, text: str, tmp_path: Path) -> None:
    source = lines(
        tmp_path / "rollout.jsonl",
        codex(1, said("user", "go")),
        codex(2, {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "k"}),
        codex(3, {"type": "function_call_output", "call_id": "k", "output": output}),
    )
    ((_, _, entries),) = converted(source, tmp_path / "out")

    assert [entry for entry in told(entries) if entry[0] == "tool_call_response"] == [
        ("tool_call_response", "request=3", f"content=({{'type': 'text', 'text': {text!r}}},)")
    ]


LLM = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, prompt TEXT, response TEXT, conversation_id TEXT, datetime_utc TEXT,
    input_tokens INTEGER, output_tokens INTEGER);
CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
CREATE TABLE prompt_attachments (response_id TEXT, attachment_id TEXT, "order" INTEGER);
CREATE TABLE fragments (id INTEGER PRIMARY KEY, content TEXT);
CREATE TABLE prompt_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER);
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, arguments TEXT, tool_call_id TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, output TEXT, tool_call_id TEXT, exception TEXT);
INSERT INTO conversations VALUES ('v1', 'Files: here', 'x');
INSERT INTO responses VALUES ('r2', '', 'A dot.', 'v1', '2026-01-02T03:04:02', 5, 6);
INSERT INTO responses VALUES ('r1', 'what is in it?', '', 'v1', '2026-01-02T03:04:01', 3, 4);
INSERT INTO responses VALUES ('r3', 'alone', 'Yes.', NULL, '2026-01-02T03:04:01', NULL, -1);
INSERT INTO responses VALUES ('r4', NULL, NULL, 'v1', '2026-01-02T03:04:09', NULL, NULL);
INSERT INTO attachments VALUES ('a1', 'image/png', NULL, NULL, x'89504e47');
INSERT INTO attachments VALUES ('a2', 'image/png', '/home/me/a.png', NULL, NULL);
INSERT INTO attachments VALUES ('a3', NULL, NULL, 'https://example.org/a', NULL);
INSERT INTO prompt_attachments VALUES ('r1', 'a3', 2), ('r1', 'a1', 0), ('r1', 'a2', 1);
INSERT INTO fragments VALUES (1, 'second'), (2, 'first');
INSERT INTO prompt_fragments VALUES ('r1', 1, 1), ('r1', 2, 0);
INSERT INTO tool_calls VALUES (2, 'r1', 'b', 'no JSON', 't2'), (1, 'r1', 'a', '{"x": 1}', 't1');
INSERT INTO tool_results VALUES (2, 'r2', 'partly', 't2', 'it broke'), (1, 'r2', 'fine', 't1', NULL);
"""


def database(path: Path, script: str = LLM) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
        connection.commit()
    return path


def test_every_table_of_llm(tmp_path: Path) -> None:
    files, alone = converted(database(tmp_path / "logs.db"), tmp_path / "out")

    assert (files[0], files[1]["title"]) == ("17673230410-files-here", "Files: here")
    assert told(files[2]) == FILES
    assert (alone[0], alone[1].get("title"), told(alone[2])) == ("17673230411", None, ALONE)


FILES: list[tuple[object, ...]] = [
    ("turn_start",),
    (
        "chat_request",
        "content=first\n\nsecond\n\nwhat is in it?",
        (
            "resources=({'uri': 'attachment:a1', 'mimeType': 'image/png', 'blob': b'\\x89PNG'}, {'uri': "
            "'file:///home/me/a.png', 'mimeType': 'image/png', 'text': '(llm stored no copy of it)'}, {'uri': "
            "'https://example.org/a', 'text': '(llm stored no copy of it)'})"
        ),
    ),
    ("tool_call_request", "call_id=t1", "name=a", "arguments={'x': 1}"),
    ("tool_call_request", "call_id=t2", "name=b", "arguments=no JSON"),
    ("cycle_end", "attempt=1", "finish=tools", "usage={'input': 3, 'output': 4}"),
    ("tool_call_response", "request=3", "content=({'type': 'text', 'text': 'fine'},)"),
    ("tool_call_response", "request=4", "content=({'type': 'text', 'text': 'it broke'},)", "is_error=True"),
    ("chat_response", "message=A dot."),
    ("cycle_end", "attempt=1", "finish=stop", "usage={'input': 5, 'output': 6}"),
    ("turn_start",),
    ("chat_request", "content="),
]
ALONE: list[tuple[object, ...]] = [
    ("turn_start",),
    ("chat_request", "content=alone"),
    ("chat_response", "message=Yes."),
    ("cycle_end", "attempt=1", "finish=stop"),
]


def test_a_database_without_later_tables_is_read(tmp_path: Path) -> None:
    script = """
    CREATE TABLE responses (id TEXT PRIMARY KEY, prompt TEXT, response TEXT);
    INSERT INTO responses VALUES ('r1', 'hello', 'hi');
    """
    ((name, _, entries),) = converted(database(tmp_path / "logs.db", script), tmp_path / "out")

    assert name == "0"
    assert [row[0] for row in told(entries)] == ["turn_start", "chat_request", "chat_response", "cycle_end"]


def test_ids_are_made_of_the_source_and_in_order(tmp_path: Path) -> None:
    rows = [codex(0, {"id": "c1"}, "session_meta"), codex(1, said("user", "x" * 100)), codex(1, said("assistant", "y"))]
    found = [converted(lines(tmp_path / f"{number}.jsonl", *rows), tmp_path / f"out{number}")[0] for number in range(2)]
    rows[0] = codex(0, {"id": "c2"}, "session_meta")
    other = converted(lines(tmp_path / "other.jsonl", *rows), tmp_path / "out")[0]

    (_, metadata, entries), again = found[0], found[1][2]
    header = entries[0]
    assert isinstance(header, Header)
    assert entries == again
    assert not {entry.id for entry in entries} & {entry.id for entry in other[2]}
    assert [entry.id for entry in entries] == sorted({entry.id for entry in entries})
    assert (header.at, header.created_at, len(header.nonce)) == (entries[1].at, entries[1].at, 20)
    assert metadata["first_words"] == "x" * 80


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"a": 1}], "is no transcript that jp knows"),
        ([{"sessionId": "s", "type": "user"}], "holds no message"),
        ([{"type": "summary", "summary": "x"}], "holds no message"),
        ([codex(0, {"id": "c"}, "session_meta")], "holds no message"),
        ([[1], "text", 7], "is no transcript that jp knows"),
    ],
)
def test_what_holds_no_message_is_refused(rows: list[object], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        converted(lines(tmp_path / "source.jsonl", *rows), tmp_path / "out")


def test_an_answer_ends_where_the_next_turn_or_a_result_begins(tmp_path: Path) -> None:
    source = lines(
        tmp_path / "session.jsonl",
        claude("user", 1, "one"),
        claude("user", 2, "two"),
        claude("assistant", 3, [{"type": "text", "text": "a"}]),
        claude("user", 4, "three"),
    )
    ((_, _, entries),) = converted(source, tmp_path / "out")

    assert [entry.finish for entry in entries if isinstance(entry, CycleEnd)] == ["stop"]
