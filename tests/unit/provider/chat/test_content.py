from __future__ import annotations

import pytest

from jp.conversation.resource import Resource
from jp.provider.chat.messages import attachment_parts, part
from jp.provider.errors import ProviderError
from jp.provider.transcript import IMAGES, PDF, Media


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [
        ("image/png", {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}),
        ("audio/mpeg", {"type": "input_audio", "input_audio": {"data": "eA==", "format": "mp3"}}),
        ("video/mp4", {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,eA=="}}),
        (
            "application/pdf",
            {"type": "file", "file": {"filename": "n", "file_data": "data:application/pdf;base64,eA=="}},
        ),
    ],
)
def test_each_kind_of_media_has_its_part(media_type: str, expected: object) -> None:
    assert part(Media(data=b"x", media_type=media_type, name="n")) == expected


@pytest.mark.parametrize(
    ("takes", "types"),
    [
        (frozenset[str](), "text"),
        (IMAGES, "text, JPEG, PNG, GIF and WebP"),
        (IMAGES | {PDF, "audio/wav", "audio/mpeg", "video/mp4"}, "text, JPEG, PNG, GIF and WebP, PDF, audio, video"),
    ],
)
def test_what_can_be_attached_is_named(takes: frozenset[str], types: str) -> None:
    resource = Resource(uri="u:1", mime_type="font/woff", blob=b"x")
    with pytest.raises(ProviderError) as caught:
        attachment_parts(resource, takes=takes, provider="p", is_new=True)

    assert caught.value.hint == f"{types} can be attached: ask again without it"
