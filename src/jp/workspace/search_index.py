"""The index of what conversations hold: SQLite FTS5 in a private file among the user's caches.

It is derived from the logs and never the truth: where it is missing, damaged, of another version or in use by a writer
for too long, the caller gets the same answer from an index in memory. Deleted text is overwritten in the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from jp.context.search import IndexedPassage, match_expressions
from jp.conversation.entries import AnyEntry, Revert, encode
from jp.errors import JpError, StorageError
from jp.workspace.files import make_directories

T = TypeVar("T")
Passages = Callable[[int], Iterable[IndexedPassage]]
"""Give the passages of the log's entries from this position on."""

_VERSION = 2
_PATIENCE_SECS = 2.0
"""Seconds that a search waits for another process before it builds an index in memory."""

_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE conversation (number INTEGER PRIMARY KEY, place TEXT UNIQUE, entries INTEGER, digest BLOB, stamp TEXT);
CREATE TABLE passage (
    number INTEGER PRIMARY KEY, conversation INTEGER, sha256 TEXT, entry TEXT, turn INTEGER, tool TEXT,
    offset INTEGER, size INTEGER
);
CREATE INDEX passage_of ON passage (conversation);
CREATE VIRTUAL TABLE words USING fts5(text, about, tokenize = 'unicode61');
INSERT INTO words (words, rank) VALUES ('hashsize', 16777216);
PRAGMA user_version = 2;
COMMIT;
"""
_FIELDS = ("place", "sha256", "entry", "turn", "tool", "about", "offset", "size", "text")
_FIND = """
SELECT passage.number, place, sha256, entry, turn, tool, about, offset, size, text
FROM words JOIN passage ON passage.number = words.rowid
JOIN conversation ON conversation.number = passage.conversation
WHERE words MATCH :words AND (:places IS NULL OR place IN (SELECT value FROM json_each(:places)))
AND entry NOT IN (SELECT value FROM json_each(:skipped))
ORDER BY bm25(words), passage.number LIMIT :most
"""
_FIND_ALL = """
SELECT place, sha256, entry, turn, tool, about, offset, size, text
FROM words JOIN passage ON passage.number = words.rowid
JOIN conversation ON conversation.number = passage.conversation
WHERE words MATCH ? ORDER BY passage.number
"""
_EVERYTHING = """
SELECT place, sha256, entry, turn, tool, about, offset, size, text
FROM passage JOIN words ON words.rowid = passage.number
JOIN conversation ON conversation.number = passage.conversation ORDER BY passage.number
"""
_PLACES = """
SELECT DISTINCT place FROM words JOIN passage ON passage.number = words.rowid
JOIN conversation ON conversation.number = passage.conversation WHERE words MATCH ?
"""
_ROWS = """
SELECT place, sha256, entry, turn, tool, about, offset, size, text
FROM passage JOIN words ON words.rowid = passage.number
JOIN conversation ON conversation.number = passage.conversation
WHERE place = ? ORDER BY passage.number
"""
_KNOW = """
INSERT INTO conversation (place, entries, digest, stamp) VALUES (?, ?, ?, ?)
ON CONFLICT (place) DO UPDATE SET entries = excluded.entries, digest = excluded.digest, stamp = excluded.stamp
"""
_REMOVE = (
    """DELETE FROM words WHERE rowid IN (
        SELECT passage.number FROM passage JOIN conversation ON conversation.number = conversation WHERE place = ?
    )""",
    "DELETE FROM passage WHERE conversation IN (SELECT number FROM conversation WHERE place = ?)",
    "DELETE FROM conversation WHERE place = ?",
)


class NoFullTextSearchError(JpError):
    """This build of SQLite has no FTS5."""


class IndexedLog(msgspec.Struct, frozen=True, kw_only=True):
    """A log to index: the directory of its conversation, its entries, and what tells this state of its file."""

    place: str
    stamp: str
    entries: Sequence[AnyEntry]
    passages: Passages


class Found(IndexedPassage, frozen=True, kw_only=True):
    """A passage that was found. `place` is the directory of its conversation."""

    place: str


def search_index(
    path: Path | None,
    place: str,
    entries: Sequence[AnyEntry],
    *,
    passages: Passages,
    search: Callable[[SearchIndex], T],
) -> T:
    """Bring one conversation up to date in the index at `path`, and search in it; in memory where that fails.

    Args:
        path: The file; None for an index in memory only.
        place: The directory of the conversation.
        entries: Its whole log.
        passages: Gives what is to be indexed.
        search: What is done with the index.

    Raises:
        NoFullTextSearchError: this build of SQLite has no FTS5.
    """

    def act(index: SearchIndex) -> T:
        index.update(place, entries, passages)
        return search(index)

    return with_index(path, act)


def with_index(path: Path | None, act: Callable[[SearchIndex], T]) -> T:
    """Return what `act` does with the index at `path`, or with an empty one in memory where that fails.

    `act` may run several times.

    Raises:
        NoFullTextSearchError: this build of SQLite has no FTS5.
    """
    for attempt in range(2 if path is not None else 0):
        try:
            with opened_index(path) as index:
                return act(index)
        except (sqlite3.Error, JpError, OSError) as error:
            if isinstance(error, NoFullTextSearchError) or _is_busy(error):
                break
            # The file is no database of this version, or was damaged: the second time it is a new one.
            if attempt == 0:
                _discard(path)
    with opened_index(None) as index:
        return act(index)


def forget(path: Path, place: Path) -> None:
    """Delete what the index at `path` has of the conversation in the directory `place`.

    An index that cannot be changed is deleted.
    """
    try:
        with opened_index(path) as index:
            index.remove(os.fspath(place))
    except (sqlite3.Error, JpError, OSError):
        _discard(path)


@contextmanager
def opened_index(path: Path | None) -> Generator[SearchIndex]:
    """Open the index at `path`, or a new one in memory, until the end of the block.

    Raises:
        sqlite3.Error: it is damaged, or in use for too long.
        StorageError: it has another version, or its directory cannot be created.
        NoFullTextSearchError: this build of SQLite has no FTS5.
        OSError: it cannot be created.
    """
    if path is not None:
        make_directories(path.parent, private=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        path.chmod(0o600)
    with closing(sqlite3.connect(path or ":memory:", timeout=_PATIENCE_SECS, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -32768")
        _create(connection)
        yield SearchIndex(connection)


def _create(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == _VERSION:
        return
    if version:
        raise StorageError(f"the index has version {version}")
    try:
        connection.executescript(_SCHEMA)
    except sqlite3.OperationalError as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if "fts5" in str(error):
            raise NoFullTextSearchError("this build of SQLite has no FTS5") from error
        if connection.execute("PRAGMA user_version").fetchone() != (_VERSION,):
            raise


def _is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


def _discard(path: Path | None) -> None:
    if path is not None:
        for name in (path, path.with_name(f"{path.name}-journal")):
            with suppress(OSError):
                name.unlink()


class SearchIndex:
    """An open index over any number of conversations, each known by its directory."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def update(self, place: str, entries: Sequence[AnyEntry], passages: Passages) -> None:
        """Index what was appended to a conversation; all of it where its log has changed in another way.

        What the index has of conversations whose directories are gone is deleted.

        Raises:
            sqlite3.Error: it is damaged, or in use for too long.
        """
        if not self._is_current(place, entries):
            log = IndexedLog(place=place, stamp="", entries=entries, passages=passages)
            self.update_all([log], gone=self._gone(place))

    def stamps(self) -> dict[str, str]:
        """Return the stamp of every conversation that is indexed, by its directory."""
        known = "SELECT place, coalesce(stamp, '') FROM conversation"
        return dict(self._connection.execute(known).fetchall())

    def update_all(self, logs: Iterable[IndexedLog], *, gone: Iterable[str]) -> None:
        """Bring many conversations up to date in one transaction, and delete those that are `gone`.

        Raises:
            sqlite3.Error: it is damaged, or in use for too long.
        """
        with self._transaction():
            is_deleted = self._remove(gone)
            for log in logs:
                # Only now no other process indexes it meanwhile.
                known, digest = self._known(log.place)
                before, after = _digests(log.entries, (known, len(log.entries)))
                grew = 0 < known <= len(log.entries) and before == digest
                # What undoes or restores a turn changes what older entries give.
                since = known if grew and not any(isinstance(entry, Revert) for entry in log.entries[known:]) else 0
                if not since:
                    is_deleted = self._remove([log.place]) or is_deleted
                self.add(log.place, log.passages(since), len(log.entries), after, stamp=log.stamp)
            if is_deleted:
                # FTS5 keeps the words of deleted rows until their segments are merged.
                self._connection.execute("INSERT INTO words (words) VALUES ('optimize')")

    def find(self, expression: str | None) -> Iterator[Found]:
        """Yield every passage that matches the FTS5 expression, or all passages, in the order they were indexed.

        Raises:
            sqlite3.Error: it is damaged.
        """
        if expression is None:
            return map(_found, self._connection.execute(_EVERYTHING))
        return map(_found, self._connection.execute(_FIND_ALL, (expression,)))

    def places_with(self, expression: str) -> list[str]:
        """Return the directories of the conversations with a passage that matches the FTS5 expression.

        Raises:
            sqlite3.Error: it is damaged.
        """
        return [place for (place,) in self._connection.execute(_PLACES, (expression,))]

    def add(
        self,
        place: str,
        passages: Iterable[IndexedPassage],
        entries: int = 0,
        digest: bytes = b"",
        *,
        stamp: str | None = None,
    ) -> None:
        """Index passages of a conversation whose log has so many `entries`, with this `digest`.

        Raises:
            sqlite3.Error: it is damaged, or in use for too long.
        """
        self._connection.execute(_KNOW, (place, entries, digest, stamp))
        (number,) = self._connection.execute("SELECT number FROM conversation WHERE place = ?", (place,)).fetchone()
        (last,) = self._connection.execute("SELECT coalesce(max(number), 0) FROM passage").fetchone()
        for row, one in enumerate(passages, last + 1):
            self._connection.execute(
                "INSERT INTO passage VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (row, number, one.sha256, one.entry, one.turn, one.tool, one.offset, one.size),
            )
            self._connection.execute(
                "INSERT INTO words (rowid, text, about) VALUES (?, ?, ?)", (row, one.text, one.about)
            )

    def remove(self, place: str) -> None:
        """Delete what there is of a conversation, also from the pages of the file that are free then.

        Raises:
            sqlite3.Error: it is damaged, or in use for too long.
        """
        self.update_all([], gone=[place])

    def search(
        self, query: str, places: Collection[str] | None, limit: int, *, skip: Collection[str] = ()
    ) -> list[Found]:
        """Return the best passages: those with all words first, by bm25 each, in log order where that is equal.

        Args:
            query: Free text.
            places: The directories of the conversations to search; None for all.
            limit: How many passages at most.
            skip: Ids of entries whose passages are not wanted.

        Raises:
            sqlite3.Error: it is damaged, or in use for too long.
        """
        only = None if places is None else json.dumps(list(places))
        without = json.dumps(list(skip))
        found: dict[int, Found] = {}
        for expression in match_expressions(query):
            wanted = {"words": expression, "places": only, "skipped": without, "most": limit + len(found)}
            for number, *values in self._connection.execute(_FIND, wanted):
                found.setdefault(number, _found(values))
            if len(found) >= limit:
                break
        return list(found.values())[:limit]

    def rows(self, place: str) -> list[Found]:
        """Return everything that is indexed of a conversation, in log order."""
        return [_found(values) for values in self._connection.execute(_ROWS, (place,))]

    def _gone(self, place: str) -> list[str]:
        places = self._connection.execute("SELECT place FROM conversation ORDER BY number").fetchall()
        return [other for (other,) in places if other != place and not Path(other).is_dir()]

    def _remove(self, places: Iterable[str]) -> bool:
        """Delete conversations; return whether there was anything to delete."""
        is_changed = False
        for place in places:
            for statement in _REMOVE:
                is_changed = self._connection.execute(statement, (place,)).rowcount > 0 or is_changed
        return is_changed

    def _known(self, place: str) -> tuple[int, bytes]:
        known = "SELECT entries, digest FROM conversation WHERE place = ?"
        return self._connection.execute(known, (place,)).fetchone() or (0, b"")

    def _is_current(self, place: str, entries: Sequence[AnyEntry]) -> bool:
        known, digest = self._known(place)
        return known == len(entries) and _digests(entries, (known, known))[0] == digest

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


def _digests(entries: Sequence[AnyEntry], lengths: tuple[int, int]) -> list[bytes]:
    """Return the digests of the beginnings of a log with so many entries; empty where it is shorter."""
    found: dict[int, bytes] = {}
    digest = hashlib.sha256()
    for count, entry in enumerate(entries, 1):
        digest.update(encode(entry))
        digest.update(b"\n")
        if count in lengths:
            found[count] = digest.digest()
    return [found.get(length, b"") for length in lengths]


def _found(values: Iterable[Any]) -> Found:
    return Found(**dict(zip(_FIELDS, values, strict=True)))
