from __future__ import annotations

from jp.app.drafts import lay_out
from jp.app.query.composer import (
    MOST_CHARS_COMPOSER,
    MOST_CHARS_OF_ONE,
    MOST_TURNS,
    block_quote,
    is_quote_only,
    notes,
)
from jp.conversation.entries import AnyEntry, ChatRequest, ChatResponse, CycleEnd, ToolCallRequest, TurnStart
from jp.conversation.turns import Turn, turns_of

CUT = "<!-- jp 0123abcd: this line and everything below it is not asked -->"


def turns(count: int, *, request: str = "question {}", answer: str = "answer {}", calls: int = 0) -> list[Turn]:
    entries: list[AnyEntry] = []
    for number in range(count):
        entries += [TurnStart(id=f"t{number}"), ChatRequest(id=f"r{number}", content=request.format(number))]
        entries += [ToolCallRequest(id=f"k{number}", call_id="1", name="fs_read_file", arguments={})] * calls
        entries += [ChatResponse(message=answer.format(number)), CycleEnd(attempt=1, finish="stop")]
    return turns_of(entries)


def test_a_page_is_the_text_the_line_and_what_helps() -> None:
    below = notes({"model": "a/b", "tokens": ""}, turns(2, calls=2))

    assert (
        lay_out("my text", "0123abcd", below)
        == f"""\
my text

{CUT}

Write above the line, save, and close the editor to ask. Leave it empty to cancel.

- model: a/b

## Turn 1, answer

> answer 1

## Turn 1, calls of tools

> fs_read_file, fs_read_file

## Turn 1, request

> question 1

## Turn 0, answer

> answer 0

## Turn 0, calls of tools

> fs_read_file, fs_read_file

## Turn 0, request

> question 0
"""
    )


def test_a_quote_cannot_steer_a_terminal() -> None:
    assert block_quote("\n\x1b]0;title\x07a\n\n  b\x1b[2J\n") == "> a\n>\n>   b"


def test_a_quote_with_words_is_more_than_a_quote() -> None:
    assert is_quote_only("> a\n\n>b\n")
    assert is_quote_only("")
    assert not is_quote_only("> a\nb")


def test_facts_are_lines_of_their_own_and_bounded() -> None:
    below = notes({"conversation": "a\x1b[31m title\n" + "x" * 1000}, ())

    assert below.splitlines()[2].startswith("- conversation: a title xxx")
    assert below.endswith(" more characters)\n")
    assert len(below) < 400


def test_only_the_last_turns_are_shown_and_only_the_beginning_of_what_is_long() -> None:
    below = notes({}, turns(MOST_TURNS + 5, answer="y" * (MOST_CHARS_OF_ONE + 7)))

    assert "## Turn 14, answer" in below
    assert "## Turn 4, " not in below
    assert " … (7 more characters)\n" in below
    assert len(below) < MOST_CHARS_COMPOSER + 2000


def test_many_long_turns_have_a_bound_together() -> None:
    long = "z" * MOST_CHARS_OF_ONE
    below = notes({}, turns(MOST_TURNS, request=long, answer=long, calls=30))

    assert "fs_read_file, …\n" in below
    assert MOST_CHARS_COMPOSER * 0.8 < len(below) < MOST_CHARS_COMPOSER + 2000
