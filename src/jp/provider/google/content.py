"""Resources and tool results as parts of a content. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.resource import Resource
from jp.provider.abilities import Abilities
from jp.provider.arrangement import Answered
from jp.provider.showing import PDF, Media, Shown, Words, attachment, not_shown, not_taken, result, shown_of

_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
_RECORDINGS = frozenset({
    *("audio/wav", "audio/x-wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"),
    *("video/mp4", "video/mpeg", "video/quicktime", "video/x-msvideo", "video/x-flv", "video/webm", "video/3gpp"),
})
_IN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp", PDF})
"""What the API takes beside the words of a function's response."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The part that answers a call, and what has to be shown after all answers, because it may not stand in it."""

    part: JsonObject
    beside: tuple[JsonObject, ...] = ()


def text_part(text: str) -> JsonObject:
    """A part of text. The API refuses an empty one: so must the caller."""
    return {"text": text}


def _taken(abilities: Abilities) -> frozenset[str]:
    taken = _IMAGES if abilities.images else frozenset[str]()
    if abilities.documents:
        taken |= {PDF}
    return taken | _RECORDINGS if abilities.recordings else taken


def _inline(media: Media) -> JsonObject:
    return {"inlineData": {"mimeType": media.media_type, "data": media.base64}}


def _part(shown: Shown) -> JsonObject:
    match shown:
        case Words(text=text):
            return text_part(text)
        case Media():
            return _inline(shown)
        case _:
            assert_never(shown)


def _types(abilities: Abilities) -> str:
    kinds = ["text", *(["PDF"] if abilities.documents else []), *(["PNG, JPEG, WebP"] if abilities.images else [])]
    if abilities.recordings:
        kinds.append("the usual formats of audio and video")
    return ", ".join(kinds)


def attachment_parts(resource: Resource, abilities: Abilities, *, provider: str, is_new: bool) -> list[JsonObject]:
    """A resource that the user attached.

    `is_new` says that it was attached by the request that is to be answered. What was attached before is in the log
    for good, perhaps for another provider: where the model does not take it, a note stands for it.

    Raises:
        ProviderError: it is new and the model takes no content of that type, of kind `unsupported`.
    """
    shown = attachment(resource, takes=_taken(abilities))
    if shown is not None:
        return [_part(piece) for piece in shown]
    if is_new:
        raise not_taken(resource, provider, _types(abilities))
    return [text_part(not_shown(resource.uri, resource.mime_type, len(shown_of(resource))))]


def function_response(answered: Answered, abilities: Abilities) -> Response:
    """The result of a call. The API wants the function's name again, and an object."""
    taken = _taken(abilities) & _IN_RESULTS
    pieces = result(answered.content, takes=taken, is_error=answered.is_error)
    text = "\n".join(piece.text for piece in pieces if isinstance(piece, Words))
    media = [piece for piece in pieces if isinstance(piece, Media)]
    response: JsonObject = {
        "id": answered.wire_id,
        "name": answered.call.name,
        "response": {"error" if answered.is_error else "output": text},
    }
    if not media or abilities.media_in_results:
        within: JsonObject = {"parts": [_inline(piece) for piece in media]} if media else {}
        return Response(part={"functionResponse": {**response, **within}})
    heading = text_part(f"What {answered.call.name!r} ({answered.wire_id}) returned besides text:")
    return Response(part={"functionResponse": response}, beside=(heading, *_all_inline(media)))


def _all_inline(media: Sequence[Media]) -> list[JsonObject]:
    return [_inline(piece) for piece in media]
