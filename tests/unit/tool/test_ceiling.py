from __future__ import annotations

import pytest

from jp.conversation.entries import Facts
from jp.conversation.resource import Block, ImageBlock, Resource, ResourceBlock, ResourceLink, TextBlock
from jp.tool.base import ToolOutput
from jp.tool.coordinator import within_ceiling

FACTS = Facts(kind="read")
LINK = ResourceLink(uri="a:b", description="c")


def bounded(*content: Block, most_blocks: int = 9) -> tuple[Block, ...]:
    output = within_ceiling(ToolOutput(content=content, facts=FACTS), ceiling=10, most_blocks=most_blocks)
    assert output.facts == FACTS
    return output.content


def note(size: int, parts: int) -> TextBlock:
    return TextBlock(text=f"[Only the beginning of the result was kept: it had {size} bytes in {parts} parts.]")


def test_what_fits_is_kept_as_it_is() -> None:
    content = (TextBlock(text="12345"), LINK, TextBlock(text="6"))

    assert bounded(*content) == content


def test_as_many_parts_as_are_allowed_are_kept_and_no_more() -> None:
    parts = tuple(TextBlock(text=str(number)) for number in range(4))

    assert bounded(*parts, most_blocks=4) == parts
    assert bounded(*parts, most_blocks=3) == (*parts[:3], note(4, 4))


def test_what_is_as_large_as_is_allowed_is_kept() -> None:
    assert bounded(TextBlock(text="1234567890")) == (TextBlock(text="1234567890"),)
    assert bounded(TextBlock(text="12345678901")) == (TextBlock(text="1234567890"), note(11, 1))


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        (TextBlock(text="1234567"), TextBlock(text="1234")),
        (TextBlock(text="123äöü"), TextBlock(text="123")),
        (
            ResourceBlock(resource=Resource(uri="file:///a", text="1234567")),
            ResourceBlock(resource=Resource(uri="file:///a", text="1234")),
        ),
    ],
)
def test_the_beginning_of_a_text_that_is_too_long_is_kept(block: Block, kept: Block) -> None:
    size = 9 if "ä" in str(block) else 7
    assert bounded(TextBlock(text="123456"), block, LINK) == (TextBlock(text="123456"), kept, note(size + 10, 3))


def test_of_what_is_no_text_nothing_is_kept_where_it_is_too_long() -> None:
    image = ImageBlock(mime_type="image/png", blob=b"12345678901")

    assert bounded(LINK, image, LINK) == (LINK, note(19, 3))


def test_of_too_many_parts_the_first_are_kept() -> None:
    assert bounded(LINK, LINK, most_blocks=1) == (LINK, note(8, 2))
