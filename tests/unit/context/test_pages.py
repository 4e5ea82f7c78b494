from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.context.markers import PAGE_BYTES, Page, page_of_bytes, page_of_text


@given(st.text(st.sampled_from("ab\nü✓🎉")), st.integers(4, 20), st.none() | st.integers(1, 3))
def test_pages_in_their_order_are_the_text_each_whole_characters_within_the_bounds(
    text: str, most: int, lines: int | None
) -> None:
    data = text.encode()
    pages: list[Page] = []
    offset: int | None = 0

    while offset is not None:
        pages.append(page_of_text(data, offset, lines=lines, most=most))
        assert pages[-1].offset == offset
        offset = pages[-1].next_offset

    assert b"".join(page.data for page in pages) == data
    for page in pages:
        assert len(page.data) <= most
        assert page.data.decode().count("\n") <= (lines or most)
        assert page.next_offset is None or page.data


@pytest.mark.parametrize(
    ("offset", "lines", "expected"),
    [
        (0, None, (0, "one\n", 4)),
        (4, None, (4, "twoü\n", 10)),
        (8, None, (7, "ü\n", 10)),
        (10, None, (10, "a line", 16)),
        (16, None, (16, " that", 21)),
        (21, None, (21, " end", None)),
        (0, 1, (0, "one\n", 4)),
        (16, 9, (16, " that", 21)),
        (21, 1, (21, " end", None)),
    ],
)
def test_a_page_of_text_ends_with_a_line_where_it_can(
    offset: int, lines: int | None, expected: tuple[int, str, int | None]
) -> None:
    data = "one\ntwoü\na line that end".encode()

    page = page_of_text(data, offset, lines=lines, most=6)

    if offset == 16:
        page = page_of_text(data, offset, lines=lines, most=5)
    assert (page.offset, page.data.decode(), page.next_offset) == expected


def test_a_page_takes_a_character_even_where_it_is_bound_to_less() -> None:
    assert page_of_text("🎉🎉".encode(), 0, most=1).data == "🎉".encode()
    assert page_of_text(b"x" * PAGE_BYTES, 0) == Page(offset=0, data=b"x" * PAGE_BYTES, next_offset=None)
    assert page_of_text(b"", 0, lines=3) == Page(offset=0, data=b"", next_offset=None)


def test_bytes_are_cut_anywhere() -> None:
    data = bytes(range(128, 148))

    assert page_of_bytes(data, 3, most=5) == Page(offset=3, data=data[3:8], next_offset=8)
    assert page_of_bytes(data, 8) == Page(offset=8, data=data[8:], next_offset=None)
