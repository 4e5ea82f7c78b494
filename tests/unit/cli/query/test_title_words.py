from __future__ import annotations

import pytest

from jp.app.query.earlier_turns import LONGEST, as_title, heading_of, title_in, title_thread
from jp.conversation.thread import UserText


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# The lexer\n\nWhy does it loop?", "The lexer"),
        ("\ufeff\n  \n### *The lexer* ###\r\nmore", "The lexer"),
        ("# C# and F#", "C# and F#"),
        ("#hashtag", ""),
        ("#!/bin/sh", ""),
        ("####### seven", ""),
        ("#", ""),
        ("#  \nmore", ""),
        ("words\n# The lexer", ""),
        ("", ""),
        ("# a\x1b[31mb\u202ec", "abc"),
    ],
)
def test_a_heading_in_the_first_line_is_a_title(text: str, title: str) -> None:
    assert heading_of(text) == title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("  A\ttitle\n in lines. ", "A title in lines"),
        ('"Quoted."', "Quoted"),
        ("`code` in it", "code` in it"),
        ("\x1b]0;gone\x07\x00", ""),
        ("x" * LONGEST, "x" * LONGEST),
        ("x" * (LONGEST + 1), "x" * (LONGEST - 1) + "…"),
        ("one two three, " * 9, "one two three, one two three, one two three, one…"),
        ("x" * 45 + " and more words", "x" * 45 + " and…"),
        ("a " + "x" * 60, "a " + "x" * (LONGEST - 3) + "…"),
    ],
)
def test_a_title_is_one_short_line(text: str, title: str) -> None:
    assert as_title(text) == title
    assert len(title) <= LONGEST


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ('{"title": "The lexer"}', "The lexer"),
        ('Here it is:\n```json\n{"title": "The lexer."}\n```', "The lexer"),
        ('{"title": 7}', ""),
        ('{"name": "x"}', ""),
        ('["title"]', ""),
        ("The lexer", "The lexer"),
        (' "The lexer." \n', "The lexer"),
        ("The lexer\nand more", ""),
        ("x" * LONGEST, "x" * LONGEST),
        ("x" * (LONGEST + 1), ""),
        ('{"title": "The', ""),
        ("", ""),
    ],
)
def test_the_title_is_found_in_the_answer(answer: str, title: str) -> None:
    assert title_in(answer) == title


def test_a_model_is_shown_the_beginnings_of_the_requests() -> None:
    thread = title_thread("small", ["why?", "x" * 5000])

    (event,) = thread.events
    assert isinstance(event, UserText)
    assert "<request>\nwhy?\n</request>\n\n<request>\nxxx" in event.text
    assert event.text.count("x") == 2000
    assert thread.schema is not None
    assert (thread.model, thread.tools, thread.parameters.reasoning) == ("small", (), "off")
