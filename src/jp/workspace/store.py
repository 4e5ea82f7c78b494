"""A conversation that is read from its directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from jp.conversation.entries import (
    FORMAT,
    AnyEntry,
    ChatRequest,
    Header,
    JsonObject,
    MalformedEntryError,
    Original,
    Unknown,
    decode,
)
from jp.conversation.ids import ConversationId
from jp.conversation.resource import Carrier
from jp.conversation.turns import open_ends, turns_text
from jp.errors import StorageError, reason_of
from jp.remedies import ChangeConversation, Option, Show, UseOption, phrase
from jp.workspace.blobs import BlobStore, inlined
from jp.workspace.files import SMALL, failure, open_to_read, read_file, read_optional
from jp.workspace.layout import BASE_CONFIG, EVENTS, ORIGINAL_EVENTS, conversation_id_of

C = TypeVar("C", bound=Carrier)

_CONFLICT_MARKERS = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")


class LogDamagedError(StorageError):
    """A log holds something that is not an entry, and nothing of it was skipped."""


class LogFormatError(StorageError):
    """A log is of a format that this version does not read."""


class LogMissingError(StorageError):
    """A directory has no log."""


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation's entries, content in the form in which it is stored, and what there is to say about them.

    `conversation` names it in messages.
    """

    conversation: str
    entries: list[AnyEntry]
    blobs: BlobStore
    notices: tuple[str, ...] = ()

    def load(self, carrier: C, /) -> C:
        """Return the carrier with its content inline, read from the blob store where it lies there.

        Raises:
            StorageError: the blob is missing or damaged.
        """
        return inlined(carrier, self.blobs, conversation=self.conversation)


class ParsedLog(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of a log's bytes. From `end` on lies the torn rest of a line, if anything.

    `terminated` says whether the last entry has its newline.
    """

    entries: list[AnyEntry]
    end: int
    terminated: bool


def parse_log(data: bytes, path: Path) -> ParsedLog:
    """Read the bytes of a log. `path` is for messages. Blank lines count for nothing.

    So do copies of earlier lines: git may write a line twice that both sides have.
    An unterminated last line is an entry if it is whole JSON, else it is ignored: its writer died, or is writing.

    Raises:
        LogDamagedError: another line is malformed, or there is no header.
        LogFormatError: a newer version wrote it.
    """
    lines = data.split(b"\n")
    tail = lines.pop()
    entries = _decode_lines(lines, path)
    end = len(data)
    terminated = True
    if tail.strip():
        try:
            entries.append(decode(tail))
            terminated = False
        except MalformedEntryError:
            end -= len(tail)
    _check_header(entries, path)
    return ParsedLog(entries=_without_copies(entries), end=end, terminated=terminated)


def _without_copies(entries: list[AnyEntry]) -> list[AnyEntry]:
    if len({entry.id for entry in entries}) == len(entries):
        return entries
    found: list[AnyEntry] = []
    known: dict[str, list[AnyEntry]] = {}
    for entry in entries:
        alike = known.setdefault(entry.id, [])
        if not entry.id or entry not in alike:
            alike.append(entry)
            found.append(entry)
    return found


def _decode_lines(lines: list[bytes], path: Path) -> list[AnyEntry]:
    entries: list[AnyEntry] = []
    for number, line in enumerate(lines, start=1):
        try:
            entries.append(decode(line))
        except MalformedEntryError as error:
            if line.strip():
                raise _damaged(line, error, number, path) from None
    return entries


def _damaged(line: bytes, error: MalformedEntryError, number: int, path: Path) -> LogDamagedError:
    hint = "correct the line by hand or restore the file; jp never skips a line of a log"
    if line.startswith(_CONFLICT_MARKERS):
        hint = phrase(
            "Git left a conflict between two branches that continued this conversation: `",
            ChangeConversation("merge", conversation_id_of(path.parent.name) or ""),
            "` keeps the turns of both; with `",
            UseOption(Option.FORK),
            "` it makes the other side a conversation of its own",
        )
    return LogDamagedError(f"{str(path)!r}, line {number}: {error.message}", hint=hint)


class _AnyHeader(msgspec.Struct, frozen=True):
    format: int


def _check_header(entries: list[AnyEntry], path: Path) -> None:
    match entries[0] if entries else None:
        case Header(format=found):
            pass
        case Unknown(type="header", raw=raw):
            found = _format_of(raw, path)
        case None:
            msg = f"{str(path)!r} holds no entry"
            hint = "restore the file from a copy; if nothing was said yet, remove the conversation"
            raise LogDamagedError(msg, hint=hint)
        case _:
            msg = f"{str(path)!r} does not start with a header"
            raise LogDamagedError(msg, hint="restore the first line: it holds the log's format")
    if found > FORMAT:
        msg = f"{str(path)!r} has format {found}, and this version of jp reads up to {FORMAT}"
        raise LogFormatError(msg, hint="upgrade jp")
    if found < 1 or not isinstance(entries[0], Header) or not entries[0].nonce:
        raise LogDamagedError(f"{str(path)!r} has a malformed header", hint="restore the first line from a copy")


def _format_of(raw: bytes, path: Path) -> int:
    try:
        return msgspec.json.decode(raw, type=_AnyHeader).format
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 0


def torn_notice(path: Path) -> str:
    """Return the notice about a last line that is not whole."""
    return f"the last line of {str(path)!r} is not whole and was ignored: its writer died, or is still writing"


def missing_log(directory: Path) -> StorageError:
    """Return the error for a directory without a log."""
    if not directory.exists():
        msg = f"there is no conversation at {str(directory)!r}"
        hint = phrase("it may have been removed just now; list what is there with `", Show("conversations"), "`")
        return LogMissingError(msg, hint=hint)
    if not directory.is_dir():
        msg = f"{str(directory)!r} is not a directory, so no conversation"
        return LogMissingError(msg, hint=phrase("list what is there with `", Show("conversations"), "`"))
    msg = f"{str(directory)!r} is not a conversation: it has no {EVENTS!r}"
    hint = phrase("restore that file from a copy; `", ChangeConversation("delete"), "` takes away what is left")
    return LogMissingError(msg, hint=hint)


def read_stream(directory: Path, blobs: BlobStore) -> Stream:
    """Return the conversation in `directory`, as its log has it, else as the original JP stored it.

    Needs no lock, changes nothing, reads no blob.

    Raises:
        StorageError: there is none, it cannot be read, or it is damaged.
    """
    path = directory / EVENTS
    try:
        data = read_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return _read_original(directory, blobs)
    except OSError as error:
        raise failure("read", path, error) from error
    log = parse_log(data, path)
    notices = (torn_notice(path),) if log.end < len(data) else ()
    notices += log_notices(directory, log.entries)
    return Stream(conversation=directory.name, entries=log.entries, blobs=blobs, notices=notices)


def _read_original(directory: Path, blobs: BlobStore) -> Stream:
    try:
        entries = read_original(directory)
    except (FileNotFoundError, NotADirectoryError):
        raise missing_log(directory) from None
    return Stream(conversation=directory.name, entries=entries, blobs=blobs)


def original_of(entries: Sequence[AnyEntry]) -> Original | None:
    """Return the file of the original's that a stream was converted from, if it was."""
    return entries[0].original if entries and isinstance(entries[0], Header) else None


def log_notices(directory: Path, entries: Sequence[AnyEntry]) -> tuple[str, ...]:
    """Return notices about the file that a log was converted from, and about branches that git merged into the log."""
    original = original_of(entries)
    path = directory / ORIGINAL_EVENTS
    notices: list[str] = []
    if original is not None and has_changed(path, original, since=directory / EVENTS):
        changed = f"{str(path)!r} has changed since this conversation was continued here"
        notices.append(f"{changed}: what counts is {EVENTS!r} beside it")
    if len(open_ends(entries)) > 1:
        notices += _merge_notices(directory, entries)
    return tuple(notices)


def _merge_notices(directory: Path, entries: Sequence[AnyEntry]) -> Iterator[str]:
    from jp.conversation.branches import open_branches

    if branches := open_branches(entries):
        turns = [turns_text(branch.turns[0], branch.turns[-1]) for branch in branches]
        conversation = conversation_id_of(directory.name) or ""
        yield phrase(
            f"git merged {len(branches)} branches of this conversation: {', '.join(turns[:-1])} and {turns[-1]}; ",
            *("the next query continues all of them; `", ChangeConversation("merge", conversation)),
            *(" ", UseOption(Option.FORK), f"` makes {turns[-1]} a conversation of its own"),
        )


class OriginalDamagedError(StorageError):
    """A file of the original's does not hold what it should."""


def read_original(directory: Path) -> list[AnyEntry]:
    """Return the entries of the conversation in `directory`, with a header; content is inline.

    Raises:
        FileNotFoundError: there is no conversation of the original's.
        NotADirectoryError: it is no directory.
        StorageError: it cannot be read, or is malformed.
    """
    from jp.config.sources import OriginalSettings
    from jp.conversation.original import MalformedOriginalError, convert

    path = directory / ORIGINAL_EVENTS
    data = _read(path)
    conversation = conversation_id_of(directory.name) or ConversationId.at(0)
    try:
        return convert(data, conversation, OriginalSettings(read_base_config(directory)))
    except MalformedOriginalError as error:
        hint = "correct the file by hand or restore it from a copy; jp never skips a part of a conversation"
        raise OriginalDamagedError(f"{str(path)!r}: {error.message}", hint=hint) from None


def has_changed(path: Path, original: Original, *, since: Path) -> bool:
    """Return whether a file has changed since the log `since` was converted from it; false if it is gone."""
    import hashlib

    try:
        found = path.stat()
        if found.st_size != original.size:
            return True
        # A change that keeps the size gives the file a new date, and reading it would cost more than the log.
        is_newer = found.st_mtime_ns > since.stat().st_mtime_ns
        return is_newer and hashlib.sha256(_read(path)).hexdigest() != original.sha256
    except (OSError, StorageError):
        return False


def _read(path: Path) -> bytes:
    try:
        return read_file(path)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise failure("read", path, error) from error


_object_decoder: msgspec.json.Decoder[JsonObject] = msgspec.json.Decoder(JsonObject)


def read_base_config(directory: Path) -> JsonObject:
    """Return the base configuration of a conversation in jp's spelling; empty if the file is missing.

    Raises:
        StorageError: it cannot be read, or is no JSON object.
    """
    path = directory / BASE_CONFIG
    data = read_optional(path, most=SMALL)
    if data is None:
        return {}
    try:
        found = _object_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        msg = f"{str(path)!r} is not what it should be: {reason_of(error)}"
        raise StorageError(msg, hint="correct the file by hand or restore it from a copy") from None

    from jp.config.sources import in_jps_spelling

    return in_jps_spelling(found, beside_original=(directory / ORIGINAL_EVENTS).exists())


_TAIL_BYTES = 64 * 1024
_MARK = b'"chat_request"'


def last_request(directory: Path) -> str:
    """Return the last message of the user; empty if it is not near the end of the log."""
    try:
        with open(open_to_read(directory / EVENTS), "rb") as file:  # noqa: PTH123 - a descriptor
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            tail = file.read(_TAIL_BYTES)
    except OSError:
        return ""
    for line in reversed(tail.split(b"\n")):
        if _MARK not in line:
            continue
        try:
            entry = decode(line)
        except MalformedEntryError:
            continue
        if isinstance(entry, ChatRequest):
            return entry.content
    return ""
