from __future__ import annotations

import pytest

from jp.tool.files.search_dialect import HIGHEST, complement, forms, white_space, word_characters


@pytest.mark.parametrize(
    ("char", "expected"), [("a", "Aa"), ("A", "Aa"), ("1", "1"), ("ß", "ß"), ("ẞ", "ßẞ"), ("é", "Éé"), ("ⅷ", "Ⅷⅷ")]
)
def test_a_character_has_the_cases_that_are_one_character(char: str, expected: str) -> None:
    assert "".join(map(chr, forms(ord(char)))) == expected


@pytest.mark.parametrize(
    ("chars", "count"),
    [("aé1_中\u0301\u200d\u0663Ⅷ‿Ⓐ\U0001f170", 12), (" -.²€😀", 0)],
)
def test_words_consist_of_what_unicode_says(chars: str, count: int) -> None:
    found = [char for char in chars if any(first <= ord(char) <= last for first, last in word_characters())]

    assert len(found) == count


def test_white_space_is_what_unicode_says() -> None:
    found = {chr(code) for first, last in white_space() for code in range(first, last + 1)}

    assert found >= set("\t\n\v\f\r \x85\xa0\u2028\u3000")
    assert not found & set("\x1c\x1f\u200b\ufeff")


def test_a_complement_is_everything_else_without_halves_of_characters() -> None:
    assert complement([(0, 9), (0x41, 0xE000)]) == ((10, 0x40), (0xE001, HIGHEST))
    assert complement([(0x41, HIGHEST)]) == ((0, 0x40),)
    assert complement([]) == ((0, 0xD7FF), (0xE000, HIGHEST))
    assert complement([(0, 0xDA00)]) == ((0xE000, HIGHEST),)
