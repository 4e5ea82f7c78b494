from __future__ import annotations

import pytest

from jp.compaction.references import cut_handle
from jp.conversation.resource import Carrier, ImageBlock, Payload, Resource, TextBlock, checksum

TEXT = TextBlock(text="all of it")
SUM = checksum(TEXT)


def marked(handle: str) -> str:
    return f"all\n[[cut:n0nce:{handle}:+3]] from offset 3\nit"


@pytest.mark.parametrize(
    "carrier",
    [
        TextBlock(text="all of it", formatted=marked(SUM[:8])),
        Resource(uri="file:///w/a", text="all of it", formatted=f"{marked('0' * 8)}{marked(SUM[:8])}"),
        ImageBlock(mime_type="image/png", blob=b"all of it", formatted=marked(SUM[:8])),
    ],
)
def test_the_handle_of_what_was_cut_stands_in_its_marker(carrier: Carrier) -> None:
    assert cut_handle(carrier) == SUM[:8]


@pytest.mark.parametrize(
    "carrier",
    [
        TEXT,
        Payload(text="all of it"),
        TextBlock(text="all of it", formatted="short"),
        TextBlock(text="all of it", formatted=marked("0" * 8)),
        TextBlock(text=marked(SUM[:8])),
    ],
)
def test_what_was_not_cut_has_no_handle(carrier: Carrier) -> None:
    assert cut_handle(carrier) is None
