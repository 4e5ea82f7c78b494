"""Content between its two forms: inline in a carrier, and in the blob store."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from jp.conversation.resource import (
    AudioBlock,
    BinaryContent,
    Carrier,
    ImageBlock,
    Payload,
    Resource,
    StoredContent,
    TextContent,
    content_of,
    raw_bytes,
)
from jp.workspace.blobs import BlobDamagedError, BlobError, BlobMissingError, BlobStore

INLINE_BYTES = 4096
"""Content of up to this many bytes stays in its line."""

C = TypeVar("C", bound=Carrier)


def stored(carrier: C, blobs: BlobStore) -> C:
    """The carrier as it stands in the log: its content in the blob store if it is large.

    Raises:
        StorageError: the content could not be stored.
    """
    content = content_of(carrier)
    if isinstance(content, StoredContent):
        return carrier
    data = raw_bytes(content)
    if len(data) <= INLINE_BYTES:
        return carrier
    sha256 = blobs.put(data)
    if isinstance(carrier, (ImageBlock, AudioBlock)):
        return replace(carrier, blob=None, sha256=sha256, size=len(data))
    chars, lines = _text_measures(content)
    named = replace(carrier, text=None, sha256=sha256, size=len(data), chars=chars, lines=lines)
    return named if isinstance(carrier, Payload) else replace(named, blob=None)


def _text_measures(content: TextContent | BinaryContent) -> tuple[int | None, int | None]:
    if isinstance(content, BinaryContent):
        return None, None
    text = content.text
    return len(text), text.count("\n") + (not text.endswith("\n"))


def inlined(carrier: C, blobs: BlobStore, *, conversation: str) -> C:
    """The carrier with its content inline; `conversation` is for messages.

    Raises:
        BlobError: it lies in the blob store and is missing or damaged there.
    """
    if carrier.sha256 is None:
        return carrier
    try:
        return with_content(carrier, blobs.get(carrier.sha256))
    except BlobError as error:
        whose = f" of {carrier.name or carrier.uri!r}" if isinstance(carrier, Resource) else ""
        message = f"conversation {conversation!r}: content{whose} cannot be read: {error.message}"
        raise type(error)(message, hint=_remedy(carrier, error)) from error


def _remedy(carrier: Carrier, error: BlobError) -> str:
    is_lost = isinstance(error, BlobMissingError | BlobDamagedError)
    if not is_lost or not isinstance(carrier, Resource) or "#" in carrier.uri:
        return error.hint
    from shlex import quote

    again = f"If it has not changed since, attach it again: `--attach {quote(carrier.uri)}`."
    return f"{again} {error.hint}" if error.hint else again


def with_content(carrier: C, data: bytes) -> C:
    """The carrier with `data` inline as the content that it names.

    Raises:
        BlobDamagedError: it names text, and `data` is none.
    """
    if isinstance(carrier, (ImageBlock, AudioBlock)):
        return replace(carrier, blob=data, sha256=None, size=None)
    if isinstance(carrier, Resource) and carrier.chars is None:
        return replace(carrier, blob=data, sha256=None, size=None, lines=None)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        msg = f"blob {carrier.sha256!r} is not the text that an entry says it is"
        raise BlobDamagedError(msg, hint="An entry of the log names it: mend that line by hand.") from None
    return replace(carrier, text=text, sha256=None, size=None, chars=None, lines=None)
