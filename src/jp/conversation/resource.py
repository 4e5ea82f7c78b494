"""Resources and content blocks, shaped after MCP (RFD 065), and the markers around them in a request."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Literal, assert_never

import msgspec

_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")
_ENCODED = tuple(chr(byte) if byte in _KEPT else f"%{byte:02X}" for byte in range(256))


def file_uri(path: bytes | str) -> str:
    """Return `file://` and the percent-encoded bytes of `path`, which is absolute and free of symlinks.

    Unreserved characters (RFC 3986 §2.3) and `/` stay, every other byte becomes `%` and two uppercase digits; so
    distinct paths have distinct URIs. A `str` is encoded as file names are: surrogates represent bytes that are not
    UTF-8. The case and the Unicode form of a name are the caller's part, because only its directory has them.
    """
    raw = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
    return "file://" + "".join(map(_ENCODED.__getitem__, raw))


TYPE_FIELD = "type"


class TextContent(msgspec.Struct, frozen=True):
    """UTF-8 text that is at hand."""

    text: str


class BinaryContent(msgspec.Struct, frozen=True):
    """Bytes that are at hand."""

    data: bytes


class StoredContent(msgspec.Struct, frozen=True, kw_only=True):
    """Content that lies in the blob store.

    `size` counts bytes. `chars` and `lines` are there for text only: what tells text from binary without reading it.
    """

    sha256: str
    size: int
    chars: int | None = None
    lines: int | None = None


Content = TextContent | BinaryContent | StoredContent


class Annotations(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """MCP's annotations."""

    audience: tuple[Literal["user", "assistant"], ...] | None = None
    priority: float | None = None
    last_modified: str | None = msgspec.field(default=None, name="lastModified")


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Text of the log: inline, or in the blob store."""

    text: str | None = None
    sha256: str | None = msgspec.field(default=None, name="$blob")
    size: int | None = None
    chars: int | None = None
    lines: int | None = None


class Resource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Identified content: a canonical URI and a snapshot.

    Exactly one of `text`, `blob` (base64 in the log) and `sha256` (`$blob` in the log) is there. `formatted` is what
    a model is shown in place of the content, and `formatted_against` the id of the entry whose copy it is a diff
    against; identity and checksums are always those of the raw content. `duplicate_of` is the id of an entry that
    delivered the same content before (RFD 067).
    """

    uri: str
    mime_type: str | None = msgspec.field(default=None, name="mimeType")
    annotations: Annotations | None = None
    name: str | None = None
    title: str | None = None
    description: str | None = None
    formatted: str | None = None
    formatted_against: str | None = None
    duplicate_of: str | None = None
    text: str | None = None
    blob: bytes | None = None
    sha256: str | None = msgspec.field(default=None, name="$blob")
    size: int | None = None
    chars: int | None = None
    lines: int | None = None


class TextBlock(Payload, frozen=True, kw_only=True, omit_defaults=True, tag_field=TYPE_FIELD, tag="text"):
    """Text without an identity. `formatted` is what a model is shown in place of it, where that is another text."""

    formatted: str | None = None


class ResourceBlock(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field=TYPE_FIELD, tag="resource"
):
    """A resource that a tool delivered."""

    resource: Resource


class _MediaBlock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    mime_type: str = msgspec.field(name="mimeType")
    formatted: str | None = None
    blob: bytes | None = msgspec.field(default=None, name="data")
    sha256: str | None = msgspec.field(default=None, name="$blob")
    size: int | None = None


class ImageBlock(_MediaBlock, frozen=True, kw_only=True, omit_defaults=True, tag_field=TYPE_FIELD, tag="image"):
    """A picture without an identity. `formatted` are words that a model is shown in place of it."""


class AudioBlock(_MediaBlock, frozen=True, kw_only=True, omit_defaults=True, tag_field=TYPE_FIELD, tag="audio"):
    """Sound without an identity. `formatted` are words that a model is shown in place of it."""


class ResourceLink(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field=TYPE_FIELD, tag="resource_link"
):
    """A resource that a tool named without delivering it."""

    uri: str
    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str | None = msgspec.field(default=None, name="mimeType")


Block = TextBlock | ResourceBlock | ImageBlock | AudioBlock | ResourceLink

Carrier = Payload | Resource | ImageBlock | AudioBlock
"""Whatever holds content in one of the log's forms."""


def content_of(carrier: Carrier) -> Content:
    """Return the content of `carrier`; empty text where a hand edit left none."""
    if carrier.sha256 is not None:
        chars = None if isinstance(carrier, (ImageBlock, AudioBlock)) else carrier.chars
        lines = None if isinstance(carrier, (ImageBlock, AudioBlock)) else carrier.lines
        return StoredContent(sha256=carrier.sha256, size=carrier.size or 0, chars=chars, lines=lines)
    if not isinstance(carrier, Payload) and carrier.blob is not None:
        return BinaryContent(carrier.blob)
    text = None if isinstance(carrier, (ImageBlock, AudioBlock)) else carrier.text
    return TextContent(text or "")


def formatted_of(carrier: Carrier) -> str | None:
    """Return the text that a model is shown in place of the content; None if it is shown the content."""
    return carrier.formatted if isinstance(carrier, (TextBlock, Resource, ImageBlock, AudioBlock)) else None


def resource_as_shown(resource: Resource) -> Resource:
    """Return `resource` with the content that a model is shown, if it differs."""
    if resource.formatted is None:
        return resource
    return Resource(uri=resource.uri, name=resource.name, title=resource.title, text=resource.formatted)


def as_shown(block: Block) -> Block:
    """Return `block` with the content that a model is shown, if it differs."""
    match block:
        case ResourceBlock(resource=resource):
            return block if resource.formatted is None else ResourceBlock(resource=resource_as_shown(resource))
        case TextBlock() | ImageBlock() | AudioBlock():
            return block if block.formatted is None else TextBlock(text=block.formatted)
        case ResourceLink():
            return block
        case _:
            assert_never(block)


def raw_bytes(content: TextContent | BinaryContent) -> bytes:
    """Return the bytes that are hashed, counted and stored: text as UTF-8."""
    match content:
        case TextContent(text=text):
            return text.encode()
        case BinaryContent(data=data):
            return data
        case _:
            assert_never(content)


def checksum(carrier: Carrier) -> str:
    """Return the sha256 of the raw content, in hex: the identity of a snapshot (RFD 067)."""
    if carrier.sha256 is not None:
        return carrier.sha256
    content = content_of(carrier)
    return "" if isinstance(content, StoredContent) else hashlib.sha256(raw_bytes(content)).hexdigest()


def size_in_bytes(carrier: Carrier) -> int:
    """Return the size of the raw content."""
    if carrier.sha256 is not None:
        return carrier.size or 0
    content = content_of(carrier)
    return 0 if isinstance(content, StoredContent) else len(raw_bytes(content))


INTERRUPTED = "interrupted; effects unknown"
"""The whole text of the error response of a call that was left open: by a repair in the log, or by a view."""

INTERRUPTED_CONTENT = (TextBlock(text=INTERRUPTED),)
"""The same, as the content of a response."""

NOT_STARTED = "not run: the turn was stopped before this call was started, so it had no effects"
"""The error response of a call that was left open where it is known that it was not started."""

NOT_STARTED_CONTENT = (TextBlock(text=NOT_STARTED),)
"""The same, as the content of a response."""


Tag = Literal["attachment", "resource"]

# Compiled where they are used: most requests need none of them.
_TAG = r"(?i)<[\s/]*(?:attachment|resource)"
_MARK_DIGITS = 16
_BREAKS = "[\x00-\x1f\x7f-\x9f\u2028\u2029]"
_ESCAPES = (("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"))


def mark_of(texts: Sequence[str]) -> str:
    """Return what the tags around `texts` carry: nothing, or a mark that occurs in none of them.

    It is made of the texts alone, so that they are framed alike in every request.
    """
    if not any(re.search(_TAG, text) for text in texts):
        return ""
    from hashlib import sha256

    digest = sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\xff")
    digits = digest.hexdigest()
    marks = (digits[start : start + _MARK_DIGITS] for start in range(len(digits) - _MARK_DIGITS))
    # A text that holds a part of its own checksum cannot be found in practice.
    return f"-{next(mark for mark in marks if not any(mark in text.lower() for text in texts))}"


def framed(tag: Tag, attributes: Mapping[str, str | None], text: str, mark: str) -> str:
    """Return `text` between tags; attributes without a value are not there, and no value can leave its quotes."""
    named = "".join(f' {name}="{escaped(value)}"' for name, value in attributes.items() if value)
    return f"<{tag}{mark}{named}>\n{text}\n</{tag}{mark}>"


def escaped(value: str) -> str:
    """Return `value` escaped for the quotes of an attribute."""
    for character, entity in _ESCAPES:
        value = value.replace(character, entity)
    return re.sub(_BREAKS, lambda match: f"&#{ord(match[0])};", value)


def in_one_line(name: str) -> str:
    """Return a name for a line of jp's own words: it neither ends the line nor reads as a tag."""
    shown = re.sub(_BREAKS, lambda match: match[0].encode("unicode_escape").decode(), name)
    return re.sub(_TAG, lambda match: f"&lt;{match[0][1:]}", shown)
