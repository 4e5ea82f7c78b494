"""What a model gets to see of resources and of tools' results, before it has a vendor's form. Pure."""

from __future__ import annotations

import binascii
from collections.abc import Collection, Iterator, Sequence
from typing import assert_never

import msgspec

from jp.conversation.resource import (
    AudioBlock,
    BinaryContent,
    Block,
    Carrier,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    StoredContent,
    TextBlock,
    TextContent,
    content_of,
    framed,
    in_one_line,
    mark_of,
)
from jp.provider.errors import ProviderError

PDF = "application/pdf"
IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_SPELLINGS = {"image/jpg": "image/jpeg"}

SILENT_FAILURE = "The tool failed without saying why."


class Words(msgspec.Struct, frozen=True):
    """Text as the model reads it."""

    text: str


class Media(msgspec.Struct, frozen=True, kw_only=True):
    """An image, a document or another thing that is not text, of a type that the model takes."""

    data: bytes
    media_type: str
    name: str

    @property
    def base64(self) -> str:
        """The data in base64."""
        return binascii.b2a_base64(self.data, newline=False).decode()

    @property
    def data_url(self) -> str:
        """The data as a `data:` URL."""
        return f"data:{self.media_type};base64,{self.base64}"


Shown = Words | Media


def media_type_of(mime_type: str | None) -> str:
    """A media type without its parameters, in its usual spelling."""
    bare = (mime_type or "").partition(";")[0].strip().lower()
    return _SPELLINGS.get(bare, bare)


def at_hand(carrier: Carrier, name: str) -> str | bytes:
    """The content of a resource or a block.

    Raises:
        ProviderError: it is still where it was stored.
    """
    content = content_of(carrier)
    match content:
        case TextContent(text=text):
            return text
        case BinaryContent(data=data):
            return data
        case StoredContent():
            message = f"the content of {name!r} has not been read"
            raise ProviderError(message, kind="other")
        case _:
            assert_never(content)


def shown_of(resource: Resource) -> str | bytes:
    """What the model gets to see of a resource: `formatted` wins over the content."""
    return at_hand(resource, resource.uri) if resource.formatted is None else resource.formatted


def title_of(resource: Resource) -> str:
    """What a resource is called, in one line."""
    return in_one_line(resource.title or resource.name or resource.uri)


def empty_attachment(resource: Resource) -> str:
    """What is said of an attachment without content, which no provider takes."""
    return f"{title_of(resource)} ({in_one_line(resource.uri)}) is attached and empty."


def not_shown(name: str, mime_type: str | None, size: int) -> str:
    """The note in place of what the model cannot be shown; `size` is in bytes."""
    return f"[{in_one_line(name)}: {in_one_line(mime_type or 'binary')}, {size} bytes, cannot be shown to this model]"


def not_taken(resource: Resource, provider: str, types: str) -> ProviderError:
    """The error of a new attachment that is of none of the `types` that a provider takes, in words."""
    message = f"{resource.uri!r} is {resource.mime_type or 'binary'!r}, which {provider} does not take"
    return ProviderError(message, kind="unsupported", hint=f"{types} can be attached: ask again without it")


def attachment(resource: Resource, *, takes: Collection[str]) -> Iterator[Shown] | None:
    """A resource that the user attached, for providers without documents of their own: text stands between tags.

    `takes` are the media types that the model takes besides text. None where this one is of no such type.
    """
    shown = shown_of(resource)
    if not shown.strip():
        return iter((Words(empty_attachment(resource)),))
    if isinstance(shown, str):
        return iter((Words(_tagged(resource, shown)),))
    media_type = media_type_of(resource.mime_type)
    if media_type not in takes:
        return None
    media = Media(data=shown, media_type=media_type, name=title_of(resource))
    return iter((Words(f"{title_of(resource)} ({in_one_line(resource.uri)}):"), media))


def _tagged(resource: Resource, text: str) -> str:
    title = resource.title or resource.name
    # An ampersand was always told as an entity here.
    named = {"uri": resource.uri, "title": title, "description": resource.description}
    return framed(
        "attachment", {key: (value or "").replace("&", "&amp;") for key, value in named.items()}, text, mark_of((text,))
    )


def result(content: Sequence[Block], *, takes: Collection[str], is_error: bool) -> list[Shown]:
    """What a tool returned, possibly nothing. A note stands for what the model cannot be shown.

    `takes` are the media types that may stand in a result besides text; an error is told in words only.
    """
    mark = None if len(content) == 1 else mark_of([*_texts(content)])
    pieces = [piece for block in content for piece in _block(block, takes=takes, mark=mark)]
    if is_error:
        pieces = [piece if isinstance(piece, Words) else Words(f"[{_kind(piece.media_type)}]") for piece in pieces]
    seen = [piece for piece in pieces if isinstance(piece, Media) or piece.text.strip()]
    return seen or ([Words(SILENT_FAILURE)] if is_error else [])


def result_text(content: Sequence[Block], *, is_error: bool) -> str:
    """A tool's result for a provider that takes words only; an error says that it is one."""
    pieces = result(content, takes=(), is_error=is_error)
    text = "\n".join(piece.text for piece in pieces if isinstance(piece, Words))
    return f"Error: {text}" if is_error else text


def _kind(media_type: str) -> str:
    return "document" if media_type == PDF else media_type.partition("/")[0]


def _texts(content: Sequence[Block]) -> Iterator[str]:
    """Every text of a result as the model reads it."""
    for block in content:
        match block:
            case TextBlock():
                yield str(at_hand(block, "text")) if block.formatted is None else block.formatted
            case ResourceBlock(resource=resource):
                shown = shown_of(resource)
                yield shown if isinstance(shown, str) else ""
            case ImageBlock() | AudioBlock():
                yield block.formatted or ""
            case ResourceLink():
                pass
            case _:
                assert_never(block)


def _block(block: Block, *, takes: Collection[str], mark: str | None) -> Iterator[Shown]:
    match block:
        case TextBlock():
            yield Words(str(at_hand(block, "text")) if block.formatted is None else block.formatted)
        case ResourceBlock(resource=resource):
            yield from _delivered(resource, takes=takes, mark=mark)
        case ImageBlock(formatted=None) | AudioBlock(formatted=None):
            yield _media(at_hand(block, block.mime_type), block.mime_type, "content", takes)
        case ImageBlock(formatted=words) | AudioBlock(formatted=words):
            yield Words(words or "")
        case ResourceLink():
            name = in_one_line(block.title or block.name or "")
            uri = in_one_line(block.uri)
            yield Words(f"[resource {name}: {uri}]" if name else f"[resource {uri}]")
        case _:
            assert_never(block)


def _delivered(resource: Resource, *, takes: Collection[str], mark: str | None) -> Iterator[Shown]:
    """A resource that a tool returned. Where other blocks stand beside it (`mark`), it says which one it is."""
    shown = shown_of(resource)
    if isinstance(shown, str):
        yield Words(shown if mark is None else framed("resource", {"uri": resource.uri}, shown, mark))
        return
    if mark is not None:
        yield Words(f"{in_one_line(resource.uri)}:")
    yield _media(shown, resource.mime_type, in_one_line(resource.uri), takes)


def _media(data: str | bytes, mime_type: str | None, name: str, takes: Collection[str]) -> Shown:
    """An image or a document that a tool returned, and a note in place of anything else.

    A tool's output must not make a conversation unsendable.
    """
    media_type = media_type_of(mime_type)
    if isinstance(data, bytes) and data and media_type in takes:
        return Media(data=data, media_type=media_type, name=name)
    return Words(not_shown(name, mime_type, len(data)))
