"""What is attached and what tools return, as parts of messages. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.resource import Resource
from jp.provider.arrangement import Answered
from jp.provider.showing import (
    IMAGES,
    PDF,
    Media,
    Shown,
    Words,
    attachment,
    not_shown,
    not_taken,
    result,
    shown_of,
)

_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_NAMES = {"image": "images", "audio": "audio", "video": "video"}

NO_OUTPUT = "The tool returned nothing."
"""What stands for an empty result, which not every server takes."""


def text_part(text: str) -> JsonObject:
    """A part of a message that is text."""
    return {"type": "text", "text": text}


def part(shown: Shown) -> JsonObject:
    """A part of a user's message."""
    match shown:
        case Words(text=text):
            return text_part(text)
        case Media(media_type=media_type):
            return _media_part(shown, media_type)
        case _:
            assert_never(shown)


def _media_part(media: Media, media_type: str) -> JsonObject:
    kind = media_type.partition("/")[0]
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": media.data_url}}
    if media_type in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": media.base64, "format": _AUDIO[media_type]}}
    if kind == "video":
        return {"type": "video_url", "video_url": {"url": media.data_url}}
    return {"type": "file", "file": {"filename": media.name, "file_data": media.data_url}}


def _types(takes: frozenset[str]) -> str:
    """The media types that can be attached, in words."""
    words = ["text"]
    if takes >= IMAGES:
        words.append("JPEG, PNG, GIF and WebP")
    if PDF in takes:
        words.append("PDF")
    kinds = dict.fromkeys(media_type.partition("/")[0] for media_type in sorted(takes) if media_type not in IMAGES)
    words += [_NAMES[kind] for kind in kinds if kind in _NAMES]
    return ", ".join(words)


def attachment_parts(resource: Resource, *, takes: frozenset[str], provider: str, is_new: bool) -> list[JsonObject]:
    """A resource that the user attached.

    `is_new` says that it was attached by the request that is to be answered. What was attached before is in the log
    for good, perhaps for another model: where this one does not take it, a note stands for it.

    Raises:
        ProviderError: it is new and of a type that is not taken, of kind `unsupported`.
    """
    shown = attachment(resource, takes=takes)
    if shown is not None:
        return [part(piece) for piece in shown]
    if is_new:
        raise not_taken(resource, provider, _types(takes))
    return [text_part(not_shown(resource.uri, resource.mime_type, len(shown_of(resource))))]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's result: `text` for the tool's message, which holds nothing else, and `parts` for the user's after it."""

    text: str
    parts: Sequence[JsonObject]


def result_of(answered: Answered, *, takes: frozenset[str]) -> Result:
    """What a tool returned. An error says that it is one."""
    lines: list[str] = []
    parts: list[JsonObject] = []
    for piece in result(answered.content, takes=takes, is_error=answered.is_error):
        if isinstance(piece, Words):
            lines.append(piece.text)
        else:
            lines.append(f"[{piece.name}: {piece.media_type}, shown after the results]")
            parts += [text_part(f"{piece.name}, which {answered.call.name!r} returned:"), part(piece)]
    text = "\n".join(lines) or NO_OUTPUT
    return Result(text=f"Error: {text}" if answered.is_error else text, parts=parts)
