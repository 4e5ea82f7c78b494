from __future__ import annotations

from jp.context.evidence import first_and_last, first_error, matches, outcome_lines, symbols

KEY = "MIIEpAIBAAKCAQEA7bq2u4xkq9sKQ0d1UoZ5r8mV3xQ2wAbCdEf"
SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def test_a_long_line_is_shown_to_its_limit() -> None:
    assert outcome_lines("error: " + "x" * 1_000 + "\nend") == ("error: " + "x" * 193, "end")


def test_of_many_errors_the_first_and_the_last_are_shown() -> None:
    assert outcome_lines("a\nerror: b\nerror: c\nerror: d\ne") == ("error: b", "error: d", "e")


def test_at_most_five_lines_are_shown_each_once() -> None:
    text = "error: a\nFAILED one\nFAILED two\nFAILED three\nFAILED four\nfatal: b\nsame\nend\n"

    assert outcome_lines(text) == ("error: a", "FAILED one", "FAILED two", "FAILED three", "fatal: b")
    assert outcome_lines("end\nend\nend") == ("end",)


def test_a_line_out_of_the_middle_of_a_key_is_not_shown() -> None:
    assert first_and_last(f"{KEY}\nmiddle\n{KEY}\n") == ()
    assert matches(f"key.pem:2:{KEY}\na.py:1:x\n", 100) == ("a.py:1:x",)
    assert first_and_last(f"{SHA256}\n") == (SHA256,)


def test_what_a_source_defines_is_named_after_a_whole_word() -> None:
    words = ["def", "class", "func", "fn", "function", "struct", "interface", "type", "enum", "trait", "module", "impl"]
    source = "\n".join(f"{word} A{number} x{word} B{number} é{word} C{number}" for number, word in enumerate(words))

    assert symbols(source, most=20) == tuple(f"A{number}" for number in range(len(words)))


def test_the_first_error_is_the_first_line_that_names_a_failure() -> None:
    assert first_error("all is well\n  fatal: a\nerror: b\n") == "fatal: a"
    assert first_error("all is well\n") == ""
    assert first_error("") == ""
