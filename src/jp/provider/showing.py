"""Content of resources and tool results for the model, before it is encoded for a vendor. Pure."""

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
    """An image, a document or other data that is not text, of a type that the model accepts."""

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
    """Return a media type in lower case without its parameters."""
    bare = (mime_type or "").partition(";")[0].strip().lower()
    return _SPELLINGS.get(bare, bare)


def at_hand(carrier: Carrier, name: str) -> str | bytes:
    """Return the content of a resource or a block.

    Raises:
        ProviderError: the content has not been loaded.
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
    """Return the content of a resource for the model: `formatted` before the content itself."""
    return at_hand(resource, resource.uri) if resource.formatted is None else resource.formatted


def title_of(resource: Resource) -> str:
    """Return the title of a resource, in one line."""
    return in_one_line(resource.title or resource.name or resource.uri)


def empty_attachment(resource: Resource) -> str:
    """Return the note for an attachment without content, which no provider accepts."""
    return f"{title_of(resource)} ({in_one_line(resource.uri)}) is attached and empty."


def not_shown(name: str, mime_type: str | None, size: int) -> str:
    """Return the note in place of content that the model cannot be shown; `size` is in bytes."""
    return f"[{in_one_line(name)}: {in_one_line(mime_type or 'binary')}, {size} bytes, cannot be shown to this model]"


def not_taken(resource: Resource, provider: str, types: str) -> ProviderError:
    """Return the error for a new attachment that has none of the `types` that a provider accepts, in words."""
    message = f"{resource.uri!r} is {resource.mime_type or 'binary'!r}, which {provider} does not accept"
    return ProviderError(message, kind="unsupported", hint=f"{types} can be attached: ask again without it")


def attachment(resource: Resource, *, takes: Collection[str]) -> Iterator[Shown] | None:
    """Yield an attached resource for providers without documents of their own, with its text between tags.

    `takes` are the media types that the model accepts besides text. None if this one has no such type.
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
    # Always an entity: earlier requests of a conversation must keep their bytes.
    named = {"uri": resource.uri, "title": title, "description": resource.description}
    return framed(
        "attachment", {key: (value or "").replace("&", "&amp;") for key, value in named.items()}, text, mark_of((text,))
    )


def result(content: Sequence[Block], *, takes: Collection[str], is_error: bool) -> list[Shown]:
    """Return the content of a tool result, possibly empty, with notes in place of what the model cannot be shown.

    `takes` are the media types that a result may contain besides text; an error contains only text.
    """
    mark = None if len(content) == 1 else mark_of([*_texts(content)])
    pieces = [piece for block in content for piece in _block(block, takes=takes, mark=mark)]
    if is_error:
        pieces = [piece if isinstance(piece, Words) else Words(f"[{_kind(piece.media_type)}]") for piece in pieces]
    seen = [piece for piece in pieces if isinstance(piece, Media) or piece.text.strip()]
    return seen or ([Words(SILENT_FAILURE)] if is_error else [])


def result_text(content: Sequence[Block], *, is_error: bool) -> str:
    """Return a tool result for a provider that accepts only text; an error is marked as one."""
    pieces = result(content, takes=(), is_error=is_error)
    text = "\n".join(piece.text for piece in pieces if isinstance(piece, Words))
    return f"Error: {text}" if is_error else text


def _kind(media_type: str) -> str:
    return "document" if media_type == PDF else media_type.partition("/")[0]


def _texts(content: Sequence[Block]) -> Iterator[str]:
    """Yield every text of a result as the model reads it."""
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
    """Yield a resource that a tool returned; beside other blocks (`mark`) with its name."""
    shown = shown_of(resource)
    if isinstance(shown, str):
        yield Words(shown if mark is None else framed("resource", {"uri": resource.uri}, shown, mark))
        return
    if mark is not None:
        yield Words(f"{in_one_line(resource.uri)}:")
    yield _media(shown, resource.mime_type, in_one_line(resource.uri), takes)


def _media(data: str | bytes, mime_type: str | None, name: str, takes: Collection[str]) -> Shown:
    """Return an image or a document that a tool returned, or a note in place of any other type.

    A tool's output must not make a conversation unsendable.
    """
    media_type = media_type_of(mime_type)
    if isinstance(data, bytes) and data and media_type in takes:
        return Media(data=data, media_type=media_type, name=name)
    return Words(not_shown(name, mime_type, len(data)))
