"""A conversation's metadata: what may change about it without being part of what was said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from jp.errors import StorageError, reason_of
from jp.workspace.files import SMALL, failure, read_file, replace_file
from jp.workspace.layout import METADATA


class Parent(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversation was forked from: the turns `from_turn` to `to_turn` (0-based, inclusive) of another."""

    conversation: str
    from_turn: int
    to_turn: int


class Metadata(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`metadata.json`. Moments are RFC 3339. `imported_at` is when a conversation came from elsewhere.

    `untitled` says that the title was taken away, so that jp finds none by itself any more.
    `first_words` are those that were asked first, in one line as they were typed.
    """

    title: str | None = None
    untitled: bool = False
    first_words: str | None = None
    labels: dict[str, str] = {}
    pinned_at: str | None = None
    archived_at: str | None = None
    expires_at: str | None = None
    last_activated_at: str | None = None
    imported_at: str | None = None
    parent: Parent | None = None

    @property
    def wants_title(self) -> bool:
        """Whether jp may find a title."""
        return self.title is None and not self.untitled


_decoder = msgspec.json.Decoder(Metadata)
_fields_decoder: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MOMENTS = ("pinned_at", "archived_at", "expires_at", "last_activated_at")
_HINT = "Mend the file by hand, or delete it: title and labels are lost with it, the conversation is not."


def encode_metadata(metadata: Metadata) -> bytes:
    """The file's text."""
    return msgspec.json.format(msgspec.json.encode(metadata), indent=2) + b"\n"


def read_metadata(directory: Path) -> Metadata:
    """The metadata of the conversation in `directory`; empty where the file is missing.

    Raises:
        StorageError: the file cannot be read.
    """
    return decode_metadata(_read(directory / METADATA), directory / METADATA)


def decode_metadata(data: bytes, path: Path) -> Metadata:
    """What the file at `path` says; nothing where it is empty.

    Raises:
        StorageError: it is no JSON object, or a field has a value of another type.
    """
    try:
        return _in_jps_spelling(_decoded(data)) if data else Metadata()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StorageError(f"{str(path)!r} is not what it should be: {reason_of(error)}", hint=_HINT) from None


def _decoded(data: bytes) -> Metadata:
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError:
        # The original's labels need no value.
        fields = msgspec.json.decode(data, type=dict[str, Any])
        labels = fields.get("labels")
        if isinstance(labels, dict):
            named = cast("dict[str, Any]", labels).items()
            fields["labels"] = {name: "" if value is None else value for name, value in named}
        return msgspec.convert(fields, Metadata)


def _in_jps_spelling(metadata: Metadata) -> Metadata:
    """Moments as RFC 3339, where the original wrote them."""
    written = {name: getattr(metadata, name) for name in _MOMENTS}
    if not any(moment and "T" not in moment for moment in written.values()):
        return metadata

    from jp.conversation.original_events import moment_of

    read = {name: moment_of(moment) for name, moment in written.items()}
    return replace(metadata, **{name: moment.at for name, moment in read.items() if moment is not None})


def update_metadata(directory: Path, change: Callable[[Metadata], Metadata]) -> Metadata:
    """Change the metadata on disk, whole or not at all; fields that this version does not know stay as they are.

    The conversation's lock must be held.

    Raises:
        StorageError: the file cannot be read or written; it is as it was.
    """
    path = directory / METADATA
    data = _read(path)
    before = decode_metadata(data, path)
    after = change(before)
    if after == before and data:
        return after
    replace_file(path, rewritten(data, after))
    return after


def rewritten(data: bytes, after: Metadata) -> bytes:
    """The text of a file that held `data` and is to say `after`: what this version does not know stays in it."""
    fields = _fields_decoder.decode(data) if data else {}
    unknown = {name: value for name, value in fields.items() if name not in Metadata.__struct_encode_fields__}
    known = _fields_decoder.decode(msgspec.json.encode(after))
    return msgspec.json.format(msgspec.json.encode(known | unknown), indent=2) + b"\n"


def _read(path: Path) -> bytes:
    try:
        return read_file(path, most=SMALL)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise failure("read", path, error) from error
