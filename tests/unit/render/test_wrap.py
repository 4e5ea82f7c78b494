from __future__ import annotations

import pytest

from jp.render.wrap import Wrapper, line_width, paint


def wrapped(width: int, *texts: str, break_words: bool = False) -> list[str]:
    wrapper = Wrapper(width, break_words=break_words)
    for text in texts:
        wrapper.add(text)
    return [paint(line) for line in wrapper.finish()]


@pytest.mark.parametrize(
    ("width", "texts", "lines"),
    [
        (11, ["hello world"], ["hello world"]),
        (10, ["hello world"], ["hello", "world"]),
        (10, ["hel", "lo wor", "ld"], ["hello", "world"]),
        (5, ["hello ", " world"], ["hello", "world"]),
        (20, ["  a \n b\t\tc "], ["a b c"]),
        (4, ["a wide-word b"], ["a", "wide-word", "b"]),
        (4, ["wide-word"], ["wide-word"]),
        (8, ["日本語の文章"], ["日本語の", "文章"]),
        (6, ["日本語、の文"], ["日本", "語、の", "文"]),
        (8, ["日本語「の」"], ["日本語", "「の」"]),
        (7, ["ab 日本語"], ["ab 日本", "語"]),
        (3, ["é é é"], ["é é", "é"]),
        (3, ["éééé é"], ["éééé", "é"]),
        (20, [""], []),
    ],
)
def test_lines_are_filled_greedily_and_words_stay_whole(width: int, texts: list[str], lines: list[str]) -> None:
    assert wrapped(width, *texts) == lines


@pytest.mark.parametrize(
    ("width", "text", "lines"),
    [
        (4, "a wide-word b", ["a", "wide", "-wor", "d b"]),
        (3, "éééé é", ["ééé", "é é"]),
        (1, "日本", ["日", "本"]),
        (2, "ab", ["ab"]),
    ],
)
def test_words_are_cut_where_they_have_to_fit(width: int, text: str, lines: list[str]) -> None:
    assert wrapped(width, text, break_words=True) == lines


def test_styles_end_with_their_line_and_go_on_in_the_next() -> None:
    wrapper = Wrapper(12)
    wrapper.add("plain ")
    wrapper.add("bold words ", "1")
    wrapper.add("here", "1")
    wrapper.add("!", "")

    lines = wrapper.finish()

    assert [paint(line) for line in lines] == ["plain \x1b[1mbold\x1b[0m", "\x1b[1mwords here\x1b[0m!"]
    assert [line_width(line) for line in lines] == [10, 11]


def test_a_line_is_given_out_as_soon_as_the_next_has_begun() -> None:
    wrapper = Wrapper(10)

    wrapper.add("hello wor")
    assert wrapper.take() == []
    wrapper.add("ld")
    assert wrapper.take() == [[("hello", "")]]
    assert wrapper.finish() == [[("world", "")]]


def test_a_line_may_be_ended_anywhere() -> None:
    wrapper = Wrapper(10)
    wrapper.add("a ")
    wrapper.newline()
    wrapper.newline()
    wrapper.add(" b")

    assert [paint(line) for line in wrapper.finish()] == ["a", "", "b"]


@pytest.mark.parametrize("character", ["x", "e\u0301"])
def test_a_word_without_end_is_cut_at_last(character: str) -> None:
    lines = wrapped(20, *[character * 1000] * 5)

    assert len(lines) > 1
    assert "".join(lines) == character * 5000
