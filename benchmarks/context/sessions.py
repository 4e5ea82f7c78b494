"""Recorded sessions of agents as transcripts of `jp.context`, with the facts that their hosts recorded.

They lie outside of the repository, where `JP_TEST_DATA` says. What each agent calls its tools, and where its results
say how a command ended, is told here by name: that is what a host knows of its own tools.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from context.rounds import paired
from jp.context.types import Block, Call, Facts, Message, Meta, ReasoningBlock, Role, TextBlock, Transcript

ToolKind = Literal["terminal", "test", "read", "search", "list", "write", "patch", "agent"]


class Tool(NamedTuple):
    """What a host knows of a tool: its kind, which argument has the path, which one says what was done."""

    kind: ToolKind
    path: str = ""
    subject: str = ""


TOOLS: dict[str, Tool] = {
    **dict.fromkeys(("Bash", "bash", "run"), Tool("terminal", subject="command")),
    "exec_command": Tool("terminal", subject="cmd"),
    "Read": Tool("read", "file_path", "file_path"),
    "read": Tool("read", "path", "path"),
    "fs_read_file": Tool("read", "path", "path"),
    "Edit": Tool("patch", "file_path", "file_path"),
    "edit": Tool("patch", "path", "path"),
    "fs_modify_file": Tool("patch", "path", "path"),
    "apply_patch": Tool("patch"),
    "Write": Tool("write", "file_path", "file_path"),
    "write": Tool("write", "path", "path"),
    "fs_create_file": Tool("write", "path", "path"),
    **dict.fromkeys(("Grep", "grep", "fs_grep_files"), Tool("search", subject="pattern")),
    **dict.fromkeys(("Glob", "glob"), Tool("list", subject="pattern")),
    **dict.fromkeys(("Task", "task"), Tool("agent", subject="description")),
    **dict.fromkeys(("cargo_check", "cargo_test"), Tool("test", subject="package")),
}

_EXIT = re.compile(r"(?i)\b(?:exited with code|exit code:?) ([0-9]{1,3})\b")
_SEARCHED = 200
_INJECTED = ("<", "# AGENTS.md instructions")
"""How texts begin that agents send in the person's name."""


class Session(NamedTuple):
    """A transcript and the name of its file."""

    name: str
    messages: Transcript


class _Call(msgspec.Struct):
    id: str | None
    name: str
    arguments: object


class _Row(msgspec.Struct):
    role: Role
    text: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


def recorded_files() -> list[Path]:
    """The files of all sessions; none where `JP_TEST_DATA` does not say where they are."""
    folder = os.environ.get("JP_TEST_DATA")
    if not folder:
        return []
    root = Path(folder)
    return sorted([*root.glob("transcripts/*.jsonl"), *root.glob("jp_conversations/*/transcript.jsonl")])


def recorded_sessions() -> list[Session]:
    """All sessions, in the order of their names."""
    return [
        Session(file.parent.name[:24] if file.stem == "transcript" else file.stem, read_session(file.read_bytes()))
        for file in recorded_files()
    ]


def read_session(lines: bytes) -> Transcript:
    """The transcript in `lines`, each of which is a message as JSON; calls without a result, and the like, mended."""
    rows = msgspec.json.Decoder(_Row).decode_lines(lines)
    return paired(tuple(_messages(rows)))


def _messages(rows: list[_Row]) -> Iterator[Message]:
    calls: dict[str, Call] = {}
    for row in rows:
        text = row.text or ""
        blocks: tuple[Block, ...] = (ReasoningBlock(text=row.reasoning or ""), TextBlock(text=text))
        made = tuple(Call(id=call.id or "", name=call.name, arguments=_text(call)) for call in row.tool_calls or ())
        calls.update({call.id: call for call in made})
        call = calls.get(row.tool_call_id or "")
        facts = None if call is None or row.role != "tool" else facts_of(call, text)
        injected = row.role == "user" and text.startswith(_INJECTED)
        yield Message(
            role=row.role,
            content=blocks if row.reasoning else text,
            calls=made,
            call_id=row.tool_call_id or "",
            is_error=facts is not None and facts.exit_code not in {None, 0},
            meta=Meta(facts=facts, kind="synthetic" if injected else "real"),
        )


def facts_of(call: Call, text: str) -> Facts | None:
    """What the tool of `call` recorded when it gave `text`; None of a tool that nothing is known of."""
    tool = TOOLS.get(call.name)
    if tool is None:
        return None
    code = None
    if tool.kind == "terminal":
        found = _EXIT.search(text[:_SEARCHED]) or _EXIT.search(text[-_SEARCHED:])
        code = int(found[1]) if found else None
    return Facts(kind=tool.kind, path=path_in(call, tool), exit_code=code)


def path_in(call: Call, tool: Tool) -> str:
    """The path in the arguments of `call`; of a patch that names it in its text, that."""
    if call.name == "apply_patch":
        found = re.search(r"\*\*\* (?:Update|Add|Delete) File: ([^\\\n]+)", call.arguments)
        return found[1].strip() if found else ""
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, object])
    except msgspec.DecodeError:
        return ""
    value = arguments.get(tool.path, "") or arguments.get("filePath", "")
    return value if isinstance(value, str) else ""


def _text(call: _Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()


def synthetic_session(calls: int) -> Transcript:
    """A trace with that many calls: reads, searches and commands, whose results have 400 to 8,000 characters."""
    rows = [Message(role="system", content="You help with code. " * 400)]
    for number in range(calls):
        if number % 25 == 0:
            rows.append(Message(role="user", content=f"Mend part {number // 25} and see that the tests of it pass."))
        name, facts, arguments = _made_up(number)
        rows.append(Message(role="assistant", calls=(Call(id=f"c{number}", name=name, arguments=arguments),)))
        ended = "Process exited with code 0\n" if name == "bash" else ""
        body = f"{ended}result {number}\n" + f"line of what was found in part {number % 25}\n" * (
            10 + 37 * number % 190
        )
        rows.append(Message(role="tool", call_id=f"c{number}", content=body, meta=Meta(facts=facts)))
    rows.append(Message(role="assistant", content="It is done."))
    return tuple(rows)


def _made_up(number: int) -> tuple[str, Facts, str]:
    path = f"src/part_{number % 25}.py"
    match number % 3:
        case 0:
            return "read", Facts(kind="read", path=path), f'{{"path": "{path}"}}'
        case 1:
            return "grep", Facts(kind="search", matches=number), f'{{"pattern": "part_{number}"}}'
        case _:
            return "bash", Facts(kind="terminal", exit_code=0), f'{{"command": "pytest tests/{number}"}}'
