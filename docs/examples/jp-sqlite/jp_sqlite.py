"""The `sqlite` scheme: the schema of a database, or the rows of one of its tables.

`sqlite:data/loans.db`, `sqlite:data/loans.db?table=books`, `sqlite:data/loans.db?table=books&limit=20`
"""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

from jp.attachment.base import AttachmentError, Declaration, Resolution, ResolveContext
from jp.conversation.resource import Resource

_FORMS = "Write 'sqlite:PATH', 'sqlite:PATH?table=NAME' or 'sqlite:PATH?table=NAME&limit=ROWS'."
_ROWS, _MOST_ROWS = 100, 1_000_000


class Source(NamedTuple):
    """A URI taken apart. Without a table the schema is meant."""

    path: str
    table: str = ""
    limit: int = _ROWS

    @property
    def uri(self) -> str:
        query = {"table": self.table, "limit": str(self.limit)} if self.table else {}
        return f"sqlite:{quote(self.path)}" + (f"?{urlencode(query)}" if query else "")


def parse(uri: str) -> Source:
    """Refuse what is malformed with an error that says what is understood."""
    path, _, query = uri.partition(":")[2].partition("?")
    values = dict(parse_qsl(query, keep_blank_values=True))
    table, limit = values.pop("table", ""), values.pop("limit", str(_ROWS))
    if not path or values or not limit.isdecimal() or len(limit) > len(str(_MOST_ROWS)):
        raise AttachmentError(f"{uri!r} is not understood", hint=_FORMS)
    return Source(unquote(path).removeprefix("//"), table, int(limit))


class SqliteHandler:
    """What jp asks of a scheme: two methods, and no state."""

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Two spellings of one thing become one: this is what is configured, recorded and compared."""
        source = parse(uri)
        path = _absolute(source, context)
        root = context.root.resolve()
        is_inside = context.anchored and path.is_relative_to(root)
        inside = path.relative_to(root) if is_inside else path
        return source._replace(path=str(inside)).uri

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """What the URI names, now. Whatever blocks runs in a thread, so that Ctrl-C works."""
        from anyio.to_thread import run_sync

        if any(exclude.uri == declaration.uri for exclude in excludes):
            return Resolution(resources=(), notices=(f"{declaration.written!r} is excluded",))
        resource = await run_sync(_read, declaration, context, abandon_on_cancel=True)
        return Resolution(resources=(resource,))


def _absolute(source: Source, context: ResolveContext) -> Path:
    """Like a `file` URI, a relative path begins at the workspace's root."""
    return Path(context.root, source.path).expanduser().resolve()


def _read(declaration: Declaration, context: ResolveContext) -> Resource:
    source = parse(declaration.uri)
    path = _absolute(source, context)
    # What a file declares may come from a stranger, so it stays inside; what the user typed may lie anywhere.
    if declaration.confined and not path.is_relative_to(context.root.resolve()):
        raise AttachmentError(f"{declaration.written!r} leads out of the workspace")
    if not path.is_file():
        raise AttachmentError(f"there is no database {declaration.written!r}", hint=_FORMS)
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            pieces = _rows(database, source) if source.table else _schema(database)
            text = _bounded(pieces, declaration, context)
    except sqlite3.Error as error:
        raise AttachmentError(f"{declaration.written!r} cannot be read: {error}") from error
    return Resource(
        uri=declaration.uri,
        mime_type="text/csv" if source.table else "application/sql",
        name=f"{source.path} {source.table}".strip(),
        text=text,
    )


def _schema(database: sqlite3.Connection) -> Iterator[str]:
    for name, statement in database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"):
        yield f"{statement};\n"
        if statement.upper().startswith("CREATE TABLE"):
            counting = f"SELECT count(*) FROM {_quoted(name)}"  # noqa: S608  names cannot be parameters
            (count,) = database.execute(counting).fetchone()
            yield f"-- {count:,} rows\n"


def _rows(database: sqlite3.Connection, source: Source) -> Iterator[str]:
    selecting = f"SELECT * FROM {_quoted(source.table)} LIMIT ?"  # noqa: S608  names cannot be parameters
    cursor = database.execute(selecting, (source.limit,))
    yield _line([column[0] for column in cursor.description])
    for row in cursor:
        yield _line([f"({len(value):,} bytes)" if isinstance(value, bytes) else value for value in row])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _line(values: Sequence[object]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()


def _bounded(pieces: Iterator[str], declaration: Declaration, context: ResolveContext) -> str:
    """The text, which is never held in memory beyond what may be attached."""
    taken: list[str] = []
    size = 0
    for piece in pieces:
        taken.append(piece)
        size += len(piece.encode())
        if size > context.max_bytes:
            message = f"{declaration.written!r} has more than {context.max_bytes:,} bytes"
            raise AttachmentError(message, hint="Ask for fewer rows: '&limit=20'.")
    return "".join(taken)
