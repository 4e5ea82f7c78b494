from __future__ import annotations

from base64 import b64encode

import msgspec
import pytest

from jp.context.budget import PER_IMAGE
from jp.provider.base import Sections, SentMessage
from jp.turn.measuring import prompt_size

PICTURE = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(90_000)).decode()
PDF = b64encode(b"%PDF-1.7\n" + bytes(9_000)).decode()


def sections(*blocks: object) -> Sections:
    return Sections(
        tools=(b"t" * 400,),
        system=(b"s" * 80,),
        messages=(SentMessage((b'"user"', *map(msgspec.json.encode, blocks))),),
    )


def test_every_section_is_estimated() -> None:
    size = prompt_size(sections("x" * 4000))

    assert (size.tools, size.system) == (100, 20)
    assert abs(size.messages - 1002) <= 1
    assert size.total == size.tools + size.system + size.messages
    assert size.encoded == 0


def test_a_size_is_scaled_by_what_a_model_takes() -> None:
    size = prompt_size(sections("x" * 4000)).scaled(1.5)

    assert (size.tools, size.system) == (150, 30)


@pytest.mark.parametrize(
    "block",
    [
        {"source": {"data": PICTURE, "media_type": "image/png", "type": "base64"}},
        {"image_url": f"data:image/png;base64,{PICTURE}"},
        {"inlineData": {"data": PICTURE, "mimeType": "image/png"}},
        {"images": [PICTURE]},
        {"data": b64encode(b"\xff\xd8\xff\xe0" + bytes(9000)).decode()},
    ],
)
def test_a_picture_costs_what_pictures_do(block: object) -> None:
    size = prompt_size(sections(block))

    assert size.encoded == 1
    assert PER_IMAGE < size.messages < PER_IMAGE + 60


def test_a_document_costs_what_its_bytes_would_and_is_no_text() -> None:
    size = prompt_size(sections({"data": PDF}))

    assert size.encoded == 1
    assert size.messages > len(PDF) / 5


def test_a_picture_in_a_text_is_text() -> None:
    said = f'here is "{PICTURE}" and "data:image/png;base64,{PICTURE}"'
    size = prompt_size(sections({"text": said}))

    assert size.encoded == 0
    assert size.messages > len(PICTURE) / 3
