"""Resources and tool results as content of the Responses API. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import assert_never

from jp.conversation.entries import JsonObject
from jp.conversation.resource import Block, Resource
from jp.provider.abilities import Abilities
from jp.provider.showing import IMAGES, PDF, Media, Shown, Words, attachment, not_shown, not_taken, result, shown_of


def media_taken(abilities: Abilities) -> frozenset[str]:
    """The media types that a model takes besides text."""
    return frozenset({*(IMAGES if abilities.images else ()), *((PDF,) if abilities.documents else ())})


def text_part(text: str) -> JsonObject:
    """Text that goes in."""
    return {"type": "input_text", "text": text}


def _part(shown: Shown) -> JsonObject:
    match shown:
        case Words(text=text):
            return text_part(text)
        case Media(media_type=media_type) if media_type == PDF:
            name = shown.name.rpartition("/")[2] or "attachment"
            filename = name if name.lower().endswith(".pdf") else f"{name}.pdf"
            return {"type": "input_file", "filename": filename, "file_data": shown.data_url}
        case Media():
            return {"type": "input_image", "detail": "auto", "image_url": shown.data_url}
        case _:
            assert_never(shown)


def attachment_parts(resource: Resource, *, takes: Collection[str], provider: str, is_new: bool) -> list[JsonObject]:
    """A resource that the user attached: what it is, then its content.

    `is_new` says that it was attached by the request that is to be answered. What was attached before is in the log
    for good, perhaps for another provider: where the API does not take it, a note stands for it.

    Raises:
        ProviderError: it is new and the model takes no content of that type, of kind `unsupported`.
    """
    shown = attachment(resource, takes=takes)
    if shown is not None:
        return _parts(shown)
    if is_new:
        raise not_taken(resource, provider, _in_words(takes))
    return [text_part(not_shown(resource.uri, resource.mime_type, len(shown_of(resource))))]


def _in_words(takes: Collection[str]) -> str:
    names = ["text", *(["PDF"] if PDF in takes else []), *(["JPEG", "PNG", "GIF"] if IMAGES & set(takes) else [])]
    last = ["WebP"] if IMAGES & set(takes) else []
    return " and ".join([", ".join(names), *last])


def _parts(shown: Iterable[Shown]) -> list[JsonObject]:
    return [_part(piece) for piece in shown]


def output_of(content: Sequence[Block], *, takes: Collection[str], is_error: bool) -> str | list[JsonObject]:
    """What a call returned. The API knows no errors: it is said that it is one."""
    shown = result(content, takes=takes, is_error=is_error)
    if any(isinstance(piece, Media) for piece in shown):
        return _parts(shown)
    text = "\n".join(piece.text for piece in shown if isinstance(piece, Words))
    return f"Error: {text}" if is_error else text
