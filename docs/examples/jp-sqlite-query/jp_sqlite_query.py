"""The tool `sqlite_query`: one statement that reads a database of the workspace."""

from __future__ import annotations

import csv
import io
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event

from jp.conversation.entries import Facts
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.errors import JpError
from jp.tool.base import ToolInvocation, ToolOutput

_ROWS = 200
_STEPS = 10_000


class SqliteQuery:
    """What jp asks of a tool: what the model is told of it, and a way to run it."""

    definition = ToolDefinition(
        name="sqlite_query",
        description="Run one SQL statement that reads a SQLite database of the workspace. The result is CSV.",
        parameters={
            "type": "object",
            "properties": {
                "database": {"type": "string", "description": "The file, relative to the workspace's root."},
                "sql": {"type": "string", "description": "One statement, such as SELECT."},
            },
            "required": ["database", "sql"],
            "additionalProperties": False,
        },
    )

    reads_only = True

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """Whatever blocks runs in a thread. When the call is cancelled, the statement ends, too."""
        from anyio.to_thread import run_sync

        cancelled = Event()
        try:
            return await run_sync(_answer, invocation, cancelled, abandon_on_cancel=True)
        finally:
            cancelled.set()


def _answer(invocation: ToolInvocation, cancelled: Event) -> ToolOutput:
    name, sql = invocation.arguments["database"], invocation.arguments["sql"]
    most = int(invocation.settings.options.get("rows", _ROWS))
    try:
        with closing(_opened(invocation.root, name, cancelled)) as database:
            cursor = database.execute(sql)
            head = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchmany(most + 1)
    except sqlite3.Error as error:
        raise JpError(f"{name!r} cannot be asked that: {error}") from error
    text = _csv(head, rows[:most]) + (f"(more than {most} rows: ask for fewer)\n" if len(rows) > most else "")
    return ToolOutput(content=(TextBlock(text=text),), facts=Facts(kind="search", path=name, matches=len(rows[:most])))


def _opened(root: Path, name: str, cancelled: Event) -> sqlite3.Connection:
    """What the model names may lie anywhere; only what lies in the workspace is opened, and only for reading."""
    path = Path(root, name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise JpError(f"{name!r} lies outside of the workspace")
    if not path.is_file():
        raise JpError(f"there is no database {name!r}")
    database = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    database.set_authorizer(_permit)
    database.set_progress_handler(cancelled.is_set, _STEPS)
    return database


def _permit(action: int, *_: object) -> int:
    """Everything but another database, which would be another file."""
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK


def _csv(head: list[str], rows: list[tuple[object, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(
        [f"({len(value):,} bytes)" if isinstance(value, bytes) else value for value in row] for row in rows
    )
    return text.getvalue()
