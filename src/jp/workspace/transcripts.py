"""Transcripts of other tools as conversations: `logs.db` of llm, sessions of Claude Code and of Codex.

What was said, thought, called and returned is taken; settings, permissions and instructions are not. Ids are made of
the source, so that the same transcript is known again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, cast

from jp.conversation.entries import (
    FORMAT,
    AnyEntry,
    ChatRequest,
    ChatResponse,
    CycleEnd,
    Finish,
    Header,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
    Usage,
    encode,
)
from jp.conversation.ids import ENTROPY_BYTES, entry_id, slug
from jp.conversation.original_events import moment_of
from jp.conversation.resource import Resource, ResourceBlock, TextBlock, file_uri
from jp.errors import UsageError
from jp.workspace.blobs import BlobStore, DiskBlobs, stored
from jp.workspace.files import create_file, make_directories, read_file, storage_errors
from jp.workspace.layout import EVENTS, METADATA
from jp.workspace.listing import Metadata, encode_metadata

Fields = dict[str, Any]

_HINT = "jp imports its own directories and bundles, `logs.db` of llm, and JSONL sessions of Claude Code and Codex"
_NOBODY_WROTE = ("<environment_context>", "<user_instructions>", "<permissions", "# AGENTS.md instructions")
"""Beginnings of messages that Codex writes in the user's place."""


def convert_transcript(path: Path, target: Path) -> None:
    """Write the conversations of the transcript at `path` into the new storage `target`.

    Raises:
        UsageError: it is none that jp knows, or has no message.
        StorageError: it cannot be read.
    """
    blobs = DiskBlobs(target / "blobs", private=True)
    with storage_errors("read", path):
        data = read_file(path)
    if data.startswith(b"SQLite format 3\0"):
        found = _of_llm(path, blobs)
    else:
        lines = _lines(data)
        is_codex = any("payload" in line or line.get("type") == "message" for line in lines)
        is_claude = any("sessionId" in line or line.get("type") == "summary" for line in lines)
        if not (is_codex or is_claude):
            raise UsageError(f"{str(path)!r} is no transcript that jp knows", hint=_HINT)
        found = [_of_codex(lines) if is_codex else _of_claude(lines)]
    written = [one for one in found if one.has_turns]
    if not written:
        raise UsageError(f"{str(path)!r} holds no message", hint=_HINT)
    for conversation in written:
        conversation.write(target / "conversations")


class _Conversation:
    """Collects the entries of one conversation in order."""

    def __init__(self, source: str, title: str | None = None) -> None:
        self.title = title
        self._source = source
        self._entries: list[AnyEntry] = []
        self._last = ""
        self._milliseconds = 0
        self._at = "1970-01-01T00:00:00.000Z"
        self._calls: dict[str, str] = {}
        self._is_open = False
        self._usage = Usage()
        self._schema: Fields | None = None

    @property
    def has_turns(self) -> bool:
        return bool(self._entries)

    def at(self, moment: object) -> None:
        """Set the time of what follows."""
        found = moment_of(moment)
        if found is not None:
            self._milliseconds, self._at = found.milliseconds, found.at

    def ask(self, text: str, resources: tuple[Resource, ...] = (), schema: Fields | None = None) -> None:
        """Begin a turn."""
        self._end("stop")
        self._schema = schema
        self._entries.append(TurnStart(**self._stamp()))
        self._entries.append(ChatRequest(**self._stamp(), content=text, resources=resources, schema=schema))

    def answer(self, *, message: str = "", reasoning: str = "") -> None:
        """Add what the model wrote."""
        if not self.has_turns:
            return
        if reasoning:
            self._entries.append(ChatResponse(**self._stamp(), reasoning=reasoning))
        if message:
            value = None if self._schema is None else _object(message)
            said: Fields = {"data": value} if isinstance(value, dict) else {"message": message}
            self._entries.append(ChatResponse(**self._stamp(), **said))
        self._is_open = self._is_open or bool(reasoning or message)

    def call(self, call_id: str, name: str, arguments: object) -> None:
        """Add a call of a tool."""
        if not self.has_turns:
            return
        given = _dict(arguments) or _object(str(arguments))
        entry = ToolCallRequest(**self._stamp(), call_id=call_id, name=name, arguments=given)
        self._calls[call_id] = entry.id
        self._entries.append(entry)
        self._is_open = True

    def respond(self, call_id: str, text: str, resources: Sequence[Resource] = (), *, is_error: bool = False) -> None:
        """Add the result of a call; one without its call is left where it was."""
        request = self._calls.pop(call_id, None)
        if request is None:
            return
        self._end("tools")
        content = (TextBlock(text=text), *(ResourceBlock(resource=resource) for resource in resources))
        self._entries.append(ToolCallResponse(**self._stamp(), request=request, content=content, is_error=is_error))

    def use(self, usage: Usage) -> None:
        """Set the tokens of the request that is answered."""
        self._usage = usage

    def write(self, place: Path) -> None:
        """Write the directory of the conversation."""
        self._end("stop")
        at = self._entries[0].at
        first = moment_of(at)
        milliseconds = 0 if first is None else first.milliseconds
        deciseconds = milliseconds // 100
        while any(place.glob(f"{deciseconds}*")):
            deciseconds += 1
        entropy = self._entropy(0)
        identity = entry_id(milliseconds=max(milliseconds - 1, 0), entropy=entropy)
        header = Header(id=identity, at=at, format=FORMAT, created_at=at, nonce=entropy.hex())
        directory = place / "-".join(filter(None, (str(deciseconds), slug(self.title or ""))))
        asked = next((entry.content for entry in self._entries if isinstance(entry, ChatRequest)), "")
        metadata = Metadata(title=self.title, first_words=" ".join(asked.split())[:80] or None)
        make_directories(directory, private=True)
        create_file(directory / METADATA, encode_metadata(metadata))
        create_file(directory / EVENTS, b"".join(encode(entry) + b"\n" for entry in (header, *self._entries)))

    def _end(self, finish: Finish) -> None:
        if self._is_open:
            self._entries.append(CycleEnd(**self._stamp(), attempt=1, finish=finish, usage=self._usage))
        self._is_open, self._usage = False, Usage()

    def _stamp(self) -> Fields:
        entropy = self._entropy(len(self._entries) + 1)
        self._last = entry_id(milliseconds=self._milliseconds, entropy=entropy, last=self._last)
        return {"id": self._last, "at": self._at}

    def _entropy(self, position: int) -> bytes:
        return hashlib.sha256(f"{self._source}\n{position}".encode()).digest()[:ENTROPY_BYTES]


def _lines(data: bytes) -> list[Fields]:
    """Return the objects of JSONL; a line that is none, such as one that is being written, is skipped."""
    found: list[Fields] = []
    for line in data.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(cast("Fields", value))
    return found


def _object(text: str) -> Fields | str:
    """Return the JSON object that `text` is, else the text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return cast("Fields", value) if isinstance(value, dict) else text


def _blocks(content: object, *kinds: str) -> str:
    """Return the text of content: a text, or blocks of these kinds."""
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in _fields(content) if block.get("type") in kinds)


def _fields(value: object) -> list[Fields]:
    """Return the objects of a list; none where it is no list."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Fields", item) for item in items if isinstance(item, dict)]


def _dict(value: object) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _of_claude(lines: Iterable[Fields]) -> _Conversation:
    lines = list(lines)
    session = next((str(line["sessionId"]) for line in lines if "sessionId" in line), "")
    titles = [str(line.get("summary", "")) for line in lines if line.get("type") == "summary"]
    found = _Conversation(f"claude-code {session}", titles[-1] if titles else None)
    for line in lines:
        if line.get("isSidechain") or line.get("isMeta") or line.get("type") not in {"user", "assistant"}:
            continue
        found.at(line.get("timestamp"))
        message = _dict(line.get("message"))
        if line["type"] == "user":
            _claude_request(found, message.get("content"))
        else:
            _claude_answer(found, message)
    return found


def _claude_request(found: _Conversation, content: object) -> None:
    for block in _fields(content):
        if block.get("type") == "tool_result":
            text = _blocks(block.get("content"), "text")
            found.respond(str(block.get("tool_use_id")), text, is_error=block.get("is_error") is True)
    text = _blocks(content, "text")
    if text.strip():
        found.ask(text)


def _claude_answer(found: _Conversation, message: Fields) -> None:
    content = message.get("content")
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else _fields(content):
        match block.get("type"):
            case "text":
                found.answer(message=str(block.get("text", "")))
            case "thinking":
                found.answer(reasoning=str(block.get("thinking", "")))
            case "tool_use":
                found.call(str(block.get("id")), str(block.get("name")), block.get("input"))
            case _:
                pass
    usage = _dict(message.get("usage"))
    found.use(
        Usage(
            input=_count(usage.get("input_tokens")),
            output=_count(usage.get("output_tokens")),
            cache_read=_count(usage.get("cache_read_input_tokens")),
            cache_write=_count(usage.get("cache_creation_input_tokens")),
        )
    )


def _of_codex(lines: Iterable[Fields]) -> _Conversation:
    lines = list(lines)
    meta = next((_dict(line.get("payload")) for line in lines if line.get("type") == "session_meta"), lines[0])
    found = _Conversation(f"codex {meta.get('id')}")
    for line in lines:
        found.at(line.get("timestamp", meta.get("timestamp")))
        # Older versions wrote the items themselves.
        item = _dict(line.get("payload")) if line.get("type") == "response_item" else line
        match item.get("type"):
            case "message":
                _codex_message(found, item)
            case "reasoning":
                found.answer(reasoning=_blocks(item.get("summary"), "summary_text"))
            case "function_call":
                found.call(str(item.get("call_id")), str(item.get("name")), item.get("arguments"))
            case "custom_tool_call":
                found.call(str(item.get("call_id")), str(item.get("name")), {"input": item.get("input")})
            case "local_shell_call":
                found.call(str(item.get("call_id")), "local_shell", item.get("action"))
            case "function_call_output" | "custom_tool_call_output":
                found.respond(str(item.get("call_id")), _codex_output(item.get("output")))
            case _:
                pass
    return found


def _codex_message(found: _Conversation, item: Fields) -> None:
    text = _blocks(item.get("content"), "input_text", "output_text", "text")
    if item.get("role") == "assistant":
        found.answer(message=text)
    elif item.get("role") == "user" and text.strip() and not text.lstrip().startswith(_NOBODY_WROTE):
        found.ask(text)


def _codex_output(output: object) -> str:
    """Return the text of a result: a text, JSON with it under `output`, or blocks."""
    if isinstance(output, str):
        inner = _object(output)
        return str(inner["output"]) if isinstance(inner, dict) and "output" in inner else output
    if isinstance(output, dict):
        return str(_dict(cast("object", output)).get("content", ""))
    return _blocks(output, "input_text", "output_text", "text")


def _of_llm(path: Path, blobs: BlobStore) -> list[_Conversation]:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return _Llm(connection, blobs).conversations()
    except sqlite3.Error as error:
        raise UsageError(f"{str(path)!r} is no `logs.db` of llm: {error}", hint=_HINT) from None


class _Llm:
    """Reads the tables of llm; those that a version did not have are empty.

    Until 0.31 a row of `responses` is a prompt and its response. Since 0.32 a row of `turns` names the last message of
    a chain in `messages`, which repeats what was said before.
    """

    def __init__(self, connection: sqlite3.Connection, blobs: BlobStore) -> None:
        connection.row_factory = sqlite3.Row
        self._connection = connection
        self._blobs = blobs
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._tables = {name for (name,) in tables}
        self._chains: dict[str, list[_Message]] = {}

    def conversations(self) -> list[_Conversation]:
        """Return all conversations; a response without one is a conversation of its own."""
        names = {row["id"]: row["name"] for table in ("conversations", "threads") for row in self.rows(table)}
        turns = [{**row, "conversation_id": row["thread_id"], "is_turn": True} for row in self.rows("turns")]
        logged = {row["id"] for row in turns}
        whole = {row["conversation_id"] for row in turns if self._repeats(row)}
        responses = [
            row for row in self.rows("responses") if row["id"] not in logged and row.get("conversation_id") not in whole
        ]
        found: dict[str, _Conversation] = {}
        for row in sorted((*responses, *turns), key=_age):
            identity = str(row.get("conversation_id") or row["id"])
            conversation = found.setdefault(identity, _Conversation(f"llm {identity}", names.get(identity)))
            conversation.at(row.get("datetime_utc"))
            if "is_turn" in row:
                self._add_turn(conversation, identity, row)
            else:
                self._add_response(conversation, row)
            conversation.use(Usage(input=_count(row.get("input_tokens")), output=_count(row.get("output_tokens"))))
        return list(found.values())

    def rows(self, table: str, where: str = "", *values: object) -> list[Fields]:
        """Return rows of a table as objects."""
        if table not in self._tables:
            return []
        query = f"SELECT * FROM {table} {where}"  # noqa: S608 - a name of this module
        return [dict(row) for row in self._connection.execute(query, values)]

    def _add_response(self, found: _Conversation, response: Fields) -> None:
        """Add one response with its prompt, its attachments, and the results that were sent with it."""
        identity = response["id"]
        results = self.rows("tool_results", "WHERE response_id = ? ORDER BY id", identity)
        for row in results:
            attached = self._linked("tool_results_attachments", "tool_result_id", row["id"])
            failed = row.get("exception")
            text = str(failed or row.get("output") or "")
            found.respond(_call_id(row), text, attached, is_error=failed is not None)
        fragments = [
            str(fragment["content"])
            for row in self.rows("prompt_fragments", 'WHERE response_id = ? ORDER BY "order"', identity)
            for fragment in self.rows("fragments", "WHERE id = ?", row["fragment_id"])
        ]
        text = "\n\n".join([*fragments, *([response["prompt"]] if response.get("prompt") else [])])
        resources = self._linked("prompt_attachments", "response_id", identity)
        if text or resources or not results:
            found.ask(text, resources, self._schema(response))
        found.answer(reasoning=str(response.get("reasoning") or ""))
        found.answer(message=str(response.get("response") or ""))
        for row in self.rows("tool_calls", "WHERE response_id = ? ORDER BY id", identity):
            found.call(_call_id(row), str(row["name"]), row.get("arguments"))

    def _add_turn(self, found: _Conversation, identity: str, turn: Fields) -> None:
        """Add the messages that the conversation does not have yet."""
        chain = self._chain(turn.get("tip_message_hash"))
        known = self._chains.get(identity, [])
        same = 0
        while same < min(len(known), len(chain)) and known[same] == chain[same]:
            same += 1
        self._chains[identity] = chain
        asked = [message for message in chain if message.role == "user"]
        for message in chain[same:]:
            if message.role == "user":
                self._ask(found, message, self._schema(turn) if message is asked[-1] else None)
            for part in message.parts:
                self._add_part(found, message.role, part)

    def _ask(self, found: _Conversation, message: _Message, schema: Fields | None) -> None:
        text = "\n\n".join(str(part.get("text", "")) for part in message.parts if part["type"] == "text")
        named = [_dict(part.get("attachment")) for part in message.parts if part["type"] == "attachment"]
        found.ask(text, self._attachments(named), schema)

    def _add_part(self, found: _Conversation, role: str, part: Fields) -> None:
        match part["type"]:
            case "text" if role == "assistant":
                found.answer(message=str(part.get("text", "")))
            case "reasoning":
                found.answer(reasoning=str(part.get("text", "")))
            case "tool_call":
                found.call(_call_id(part), str(part.get("name")), part.get("arguments"))
            case "tool_result":
                failed = part.get("exception")
                attached = self._attachments(_fields(part.get("attachments")))
                text = str(failed or part.get("output") or "")
                found.respond(_call_id(part), text, attached, is_error=failed is not None)
            case _:
                pass

    def _repeats(self, turn: Fields) -> bool:
        """Return whether the messages that were sent have an answer in them: all that was said before."""
        return any(message.role == "assistant" for message in self._chain(turn.get("parent_message_hash")))

    def _chain(self, tip: object) -> list[_Message]:
        """Return the messages from the first to `tip`, without those of the system."""
        found: list[_Message] = []
        seen: set[object] = set()
        while tip is not None and tip not in seen:
            seen.add(tip)
            row = next(iter(self.rows("messages", "WHERE hash = ?", tip)), None)
            if row is None:
                break
            if row["role"] != "system":
                found.append(_Message(row["role"], self._parts(tip)))
            tip = row["parent_hash"]
        return found[::-1]

    def _parts(self, message: object) -> list[Fields]:
        return [
            {**self._payload(row), "type": row["type"]}
            for row in self.rows("parts", "WHERE message_hash = ? ORDER BY position", message)
        ]

    def _payload(self, row: Fields) -> Fields:
        """Return the fields of a part, with the text of the fragments that it is built from."""
        fields = _dict(_object(row["payload"])) if row.get("payload") else {}
        if row.get("text") is not None:
            fields["text"] = row["text"]
        elif "text_ref" in fields:
            fields["text"] = "".join(map(self._piece, _fields(fields.pop("text_ref"))))
        return fields

    def _piece(self, piece: Fields) -> str:
        if "literal" in piece:
            return str(piece["literal"])
        return "".join(str(row["content"]) for row in self.rows("fragments", "WHERE id = ?", piece.get("fragment")))

    def _schema(self, row: Fields) -> Fields | None:
        found = self.rows("schemas", "WHERE id = ?", row.get("schema_id"))
        return (_dict(_object(str(found[0]["content"]))) or None) if found else None

    def _linked(self, table: str, column: str, identity: object) -> tuple[Resource, ...]:
        links = self.rows(table, f'WHERE {column} = ? ORDER BY "order"', identity)
        return self._attachments([{"id": link["attachment_id"]} for link in links])

    def _attachments(self, named: Sequence[Fields]) -> tuple[Resource, ...]:
        """Return the attachments with these ids; llm keeps no copy of a file or of a page."""
        rows = [row for one in named for row in self.rows("attachments", "WHERE id = ?", one.get("id"))]
        return tuple(stored(_resource(row), self._blobs) for row in rows)


def _resource(row: Fields) -> Resource:
    path, url, content = row.get("path"), row.get("url"), row.get("content")
    uri = file_uri(path) if path else url or f"attachment:{row['id']}"
    if isinstance(content, bytes):
        return Resource(uri=uri, mime_type=row.get("type"), blob=content)
    return Resource(uri=uri, mime_type=row.get("type"), text="(llm stored no copy of it)")


def _age(row: Fields) -> tuple[str, str]:
    return str(row.get("datetime_utc")), str(row["id"])


def _call_id(fields: Fields) -> str:
    """Return the provider's id of a call; some have none, and their calls are known by the tool."""
    return str(fields.get("tool_call_id") or fields.get("name"))


class _Message(NamedTuple):
    """A message of llm."""

    role: str
    parts: list[Fields]
