from __future__ import annotations

import pytest

from escapes import decode
from jp.render.sanitize import escape, escape_line, printable, tokens


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain text, C:\\n and äöü 漢字 שלום", "plain text, C:\\n and äöü 漢字 שלום"),
        ("a\x1b]0;title\x07b", "a⟨ESC⟩]0;title⟨BEL⟩b"),
        ("\x9b2K\x9d0;x\x9c", "⟨U+009B⟩2K⟨U+009D⟩0;x⟨U+009C⟩"),
        ("safe\rrm\x08\x08", "safe⟨CR⟩rm⟨BS*2⟩"),
        ("\u202egnp.exe\u2066", "⟨U+202E⟩gnp.exe⟨U+2066⟩"),
        ("a\u200bb\u200d\ufeff", "a⟨U+200B⟩b⟨U+200D⟩⟨U+FEFF⟩"),
        ("\U000e0041\U000e007f", "⟨U+E0041⟩⟨U+E007F⟩"),
        ("a\ufe0f\U000e0100", "a⟨U+FE0F⟩⟨U+E0100⟩"),
        ("\ud800\ue000\u0378\uffff", "⟨U+D800⟩⟨U+E000⟩⟨U+0378⟩⟨U+FFFF⟩"),
        ("a\u00a0b\u3000c\u2028d\u2800\u3164", "a⟨U+00A0⟩b⟨U+3000⟩c⟨U+2028⟩d⟨U+2800⟩⟨U+3164⟩"),
        ("x" + " " * 100_000 + "y", "x⟨space*100000⟩y"),
        ("a \nb  ", "a⟨space⟩\nb⟨space*2⟩"),
        ("\tx\t\t", "⟨tab⟩x⟨tab*2⟩"),
        ("a" + "\n" * 500 + "b", "a\n⟨newline*498⟩\nb"),
        ("⟨ESC⟩〈", "⟨U+27E8⟩ESC⟨U+27E9⟩⟨U+3008⟩"),
        ("e\u0301" + "\u0301" * 50, "e⟨U+0301*51⟩"),
        ("e\u0301\u0323\u0301", "e\u0301\u0323⟨U+0301⟩"),
        ("=\u0338 \u0336 a\u20dd", "=⟨U+0338⟩ ⟨U+0336⟩ a⟨U+20DD⟩"),
        ("p\u0430ypal \u0441\u043e\u0440\u0443", "p⟨U+0430⟩ypal \u0441\u043e\u0440\u0443"),
        ("a\u037eb \u212a \U0001d41a", "a⟨U+037E⟩b ⟨U+212A⟩ ⟨U+1D41A⟩"),
    ],
)
def test_nothing_is_invisible_and_nothing_passes_for_something_else(text: str, escaped: str) -> None:
    assert escape(text) == escaped
    assert decode(escaped) == text


def test_a_line_stays_a_line() -> None:
    assert escape_line("a\n\n\n\nb c ") == "a⟨newline*4⟩b c⟨space⟩"
    assert escape_line("plain") == "plain"


def test_what_was_composed_is_escaped_where_it_was_forgotten() -> None:
    assert printable("⟨ESC⟩ \x1b\n") == "⟨ESC⟩ ⟨ESC⟩\n"


def test_tokens_are_told_from_text_also_where_a_row_cuts_them() -> None:
    assert list(tokens("B⟩a⟨ESC⟩b⟨U+2")) == [("B⟩", True), ("a", False), ("⟨ESC⟩", True), ("b", False), ("⟨U+2", True)]
