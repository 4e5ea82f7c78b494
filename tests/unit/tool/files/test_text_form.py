from __future__ import annotations

import pytest

from jp.tool.files.write_tools import split_text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a\nb\n", "a\nb\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\r\nb", "a\nb"),
        ("\ufeffa\r\n", "a\n"),
        ("\ufeff\ufeffa", "\ufeffa"),
        ("a\r\nb\n", "a\r\nb\n"),
        ("a\rb\r", "a\rb\r"),
        ("a\r\r\n", "a\r\n"),
        ("", ""),
    ],
)
def test_a_text_and_its_form_are_the_file_again(raw: str, text: str) -> None:
    taken, form = split_text(raw)

    assert taken == text
    assert form.spelled(taken) == raw


def test_what_is_said_of_a_file_with_carriage_returns_may_have_them_or_not() -> None:
    _, returns = split_text("a\r\n")
    _, mixed = split_text("a\r\nb\n")

    assert returns.plain("x\r\ny") == returns.plain("x\ny") == "x\ny"
    assert mixed.plain("x\r\ny") == "x\r\ny"
