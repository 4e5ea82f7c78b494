from __future__ import annotations

import pytest

from jp.provider.reader import Split, ThinkSplitter


@pytest.mark.parametrize(
    ("text", "reasoning", "message"),
    [
        ("Hi", "", "Hi"),
        ("<think>\nhm\n</think>\n\nHi", "hm", "Hi"),
        (" \n<think>hm</think>Hi", "hm", "Hi"),
        ("<think></think>Hi", "", "Hi"),
        ("<think>\n\n</think>\n", "", ""),
        ("<think>hm", "hm", ""),
        ("<think>a < b </thin b</think>c", "a < b </thin b", "c"),
        ("a<think>hm</think>", "", "a<think>hm</think>"),
        ("<think>a</think><think>b</think>", "a", "<think>b</think>"),
        ("<thought>a", "", "<thought>a"),
        ("<th", "", "<th"),
        (" ", "", " "),
        ("", "", ""),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 100])
def test_only_a_thought_at_the_beginning_is_one(text: str, reasoning: str, message: str, size: int) -> None:
    splitter = ThinkSplitter()
    found = [splitter.feed(text[start : start + size]) for start in range(0, len(text), size)]
    found.append(splitter.finish())

    assert "".join(split.reasoning for split in found) == reasoning
    assert "".join(split.text for split in found) == message


def test_text_and_thoughts_come_as_soon_as_they_are_certain() -> None:
    splitter = ThinkSplitter()

    assert splitter.feed("<think>one ") == Split(reasoning="one")
    assert splitter.feed("two</") == Split(reasoning=" two")
    assert splitter.feed("think> three ") == Split(text="three ")
    assert splitter.feed("four") == Split(text="four")
