from __future__ import annotations

import pytest
from mcp_types import ContentBlock, ResourceLink, TextContent

from jp.mcp.definitions import worth_reading


def link(uri: str, mime_type: str | None = None, size: int | None = None) -> ResourceLink:
    return ResourceLink(name=uri, uri=uri, mime_type=mime_type, size=size)


@pytest.mark.parametrize(
    ("linked", "is_read"),
    [
        (link("a"), True),
        (link("a", "text/markdown", 1000), True),
        (link("a", "application/json"), True),
        (link("a", "application/ld+json"), True),
        (link("a", "image/png"), False),
        (link("a", "application/zip"), False),
        (link("a", "text/plain", 10_000_000), False),
        (TextContent(text="a"), False),
    ],
)
def test_a_link_to_a_small_text_is_read_at_once(linked: ContentBlock, *, is_read: bool) -> None:
    assert bool(worth_reading([linked])) is is_read


def test_many_links_are_a_list_and_stay_one() -> None:
    assert len(worth_reading([link(str(number)) for number in range(4)])) == 4
    assert worth_reading([link(str(number)) for number in range(5)]) == []
