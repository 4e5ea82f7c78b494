from __future__ import annotations

import pytest

from jp.render.sanitize import STRING_BOUND, Sanitizer, one_line, sanitize


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("\x1b]0;pwned\x07title", "title"),
        ("\x1b]8;;http://example.com\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r0m\x1b\\dcs \x1b_apc\x1b\\apc \x1b^pm\x1b\\pm \x1bXsos\x1b\\sos", "dcs apc pm sos"),
        ("\x1bcreset \x1b(Bset \x1b7save", "reset set save"),
        ("\x9b31mc1 \x9d0;pwned\x9ctitle \x90dcs\x9cend", "c1 title end"),
        ("bell\x07 back\x08space del\x7f nel\x85 nul\x00", "bell backspace del nel nul"),
        ("one\r\ntwo\rthree\n\rfour", "one\ntwo\nthree\n\nfour"),
        ("user\u202etxt.exe \u2066isolate\u2069 mark\u200e join\u200d", "usertxt.exe isolate mark\u200e join\u200d"),
        ("lone \udc9b surrogate", "lone \ufffd surrogate"),
        ("cut \x1b", "cut "),
        ("cut \x1b[31", "cut 31"),
        ("\x1b]0;one\x1b]0;two\x07three", "three"),
        ("\x1b]0;cancelled\x18shown", "shown"),
        ("\x1b[3\x001mnot a sequence", "31mnot a sequence"),
    ],
)
def test_what_steers_a_terminal_is_removed(raw: str, clean: str) -> None:
    assert sanitize(raw) == clean


def test_a_string_without_an_end_hides_nothing() -> None:
    text = "x" * (STRING_BOUND + 1)

    assert sanitize(f"\x1b]{text}\x07 end") == f"{text} end"
    assert sanitize("\x1b]0;never closed") == "0;never closed"


def test_a_long_string_without_an_end_is_released_while_it_streams() -> None:
    sanitizer = Sanitizer()

    shown = "".join(sanitizer.feed(piece) for piece in ["\x1b]", *["x"] * (STRING_BOUND + 5)])

    assert shown == "x" * (STRING_BOUND + 5)


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        ("\x1b[mreset", "\x1b[mreset"),
        ("\x1b[8mhidden", "hidden"),
        ("\x1b[1;08;31mhidden", "\x1b[1;31mhidden"),
        ("\x1b[38;5;8mgrey", "\x1b[38;5;8mgrey"),
        ("\x1b[48;2;8;8;8mgrey", "\x1b[48;2;8;8;8mgrey"),
        ("\x1b[38;8mbroken", "\x1b[38mbroken"),
        ("\x1b[38:5:8mgrey", "\x1b[38:5:8mgrey"),
        ("\x1b[?25mprivate", "private"),
        ("\x1b[1 mintermediate", "intermediate"),
        ("\x1b[2Kerase", "erase"),
        ("\x9b31mred", "\x1b[31mred"),
    ],
)
def test_colors_of_tools_may_stay_but_nothing_hides(raw: str, kept: str) -> None:
    assert sanitize(raw, keep_colors=True) == kept


def test_a_sequence_that_is_cut_does_not_leak() -> None:
    sanitizer = Sanitizer()

    shown = [sanitizer.feed(piece) for piece in ("a\x1b", "[3", "1mb\x1b]0;pw", "ned", "\x07c\r", "\nd")]

    assert shown == ["a", "", "b", "", "c\n", "d"]
    assert sanitizer.finish() == ""


def test_a_finished_sanitizer_starts_anew() -> None:
    sanitizer = Sanitizer()
    sanitizer.feed("a\r")
    sanitizer.finish()

    assert sanitizer.feed("\nb") == "\nb"


def test_one_line_is_one_line() -> None:
    assert one_line("a\n b\tc\u2028d\x1b[2J ") == "a b c d"
