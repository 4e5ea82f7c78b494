from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.context.evidence import (
    MOST_EVIDENCE,
    Observed,
    exit_status,
    first_and_last,
    first_error,
    identifiers,
    matches,
    observe,
    outcome_lines,
    with_identifiers,
)

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


def test_of_many_matches_the_first_are_shown() -> None:
    text = "".join(f"a.py:{number}:x\n" for number in range(1, 9))

    assert matches(text, 100) == ("a.py:1:x", "a.py:2:x", "a.py:3:x")


def test_the_first_error_is_the_first_line_that_names_a_failure() -> None:
    assert first_error("all is well\n  fatal: a\nerror: b\n") == "fatal: a"
    assert first_error("all is well\n") == ""
    assert first_error("") == ""


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Exit code: 2", 2),
        ("exit code 137", 137),
        ("Process exited with code 3.", 3),
        ("command returned non-zero exit status 1", 1),
        ("<exit_code>4</exit_code>", 4),
        ('{"exit_code": 0, "output": "x"}', 0),
        ("exited with 5", 5),
        ("exit status: -9", -9),
        ("Exit code: 1\n...\nExit code: 2", 2),
        ("Exit code: 2\n" + "x\n" * 1_000, 2),
        ("x\n" * 1_000 + "Exit code: 2\n" + "x\n" * 1_000, None),
        ("exit code 4711", None),
        ("the exits are code red 7", None),
        ("", None),
    ],
)
def test_an_exit_code_is_read_where_tools_write_it(text: str, code: int | None) -> None:
    assert exit_status(text) == code


@pytest.mark.parametrize(
    ("kind", "is_error", "lines"),
    [
        ("terminal", False, ("make: error: no rule", "FAILED test_a", "bye", "paths: src/a.py")),
        ("", False, ("make: error: no rule", "FAILED test_a", "bye", "paths: src/a.py")),
        ("write", False, ("paths: src/a.py",)),
        ("read", False, ()),
        ("read", True, ("make: error: no rule", "FAILED test_a", "bye")),
        ("search", False, ("src/a.py:3: hit",)),
    ],
)
def test_what_is_observed_depends_on_the_kind_of_the_tool(kind: str, lines: tuple[str, ...], *, is_error: bool) -> None:
    text = "hello\nmake: error: no rule\nsrc/a.py:3: hit\nplain\nFAILED test_a\nplain\nbye\n"

    assert observe(text, kind=kind, is_error=is_error) == Observed(lines=lines)


def test_paths_are_told_that_no_other_line_names_as_many_as_there_is_room_for() -> None:
    text = "error: src/a.py is bad\nM src/b.py\nM src/b.py and/or\nM src/c.py\nbye\n"

    assert observe(text).lines == ("error: src/a.py is bad", "bye", "paths: src/b.py, src/c.py")
    many = "".join(f"M lib/{'x' * 50}/{number}.py\n" for number in range(9))
    assert [line.count(", ") for line in observe(many).lines if line.startswith("paths: ")] == [1]


def test_evidence_ends_where_there_is_no_room_for_another_line() -> None:
    text = "".join(f"FAILED {letter * 193}\nplain\n" for letter in "abc")

    found = observe(text, kind="terminal").lines

    assert [len(line) for line in found] == [200, 199]
    assert found[1].endswith("…")


def test_an_output_without_a_failure_is_told_by_its_first_and_last_line() -> None:
    assert observe("first\nsecond\nlast\n").lines == ("first", "last")
    assert observe("").lines == ()


@given(text=st.text(max_size=3_000), kind=st.sampled_from(("", "terminal", "search", "web")), is_error=st.booleans())
def test_evidence_is_short_stable_and_free_of_secrets(text: str, kind: str, *, is_error: bool) -> None:
    key = "sk-ant-api03-" + "a1B2c3D4e5F6g7H8" * 3
    text = f"{text}\nerror: {key}\n" * 40

    found = observe(text, kind=kind, is_error=is_error)

    assert found == observe(text, kind=kind, is_error=is_error)
    assert sum(len(line) + 1 for line in found.lines) <= MOST_EVIDENCE + 1
    assert key not in "\n".join(found.lines)
    assert all("\n" not in line for line in found.lines)


def test_lines_that_begin_like_an_error_fill_what_is_left_of_the_room() -> None:
    noise = "all is well here\n" * 30
    text = (
        f"error: one\n{noise}src/a.go:3:9: Error: two\n{noise}E   ValueError: three\n{noise}no error, fine\n4 failed\n"
    )

    lines = observe(text, kind="test").lines

    assert lines == ("error: one", "4 failed", "paths: src/a.go", "src/a.go:3:9: Error: two", "E   ValueError: three")
    assert observe(text, kind="read").lines == ()
    many = "".join(f"error: number {number} of many\n" for number in range(200))
    assert sum(map(len, observe(many, kind="test").lines)) <= MOST_EVIDENCE


def test_identifiers_are_addresses_issues_tickets_and_hashes_and_no_numbers_or_parts_of_words() -> None:
    text = (
        "see https://example.test/a?b=1#c. and (http://example.test/d), #12 and JP-7: 936f90d5 é936f90d6 x936f90d7 "
        f"1234567 deadbeef xA-9 a/#3 {SHA256[:40]} 936f90d5"
    )

    assert identifiers(text) == (
        "https://example.test/a?b=1#c",
        "http://example.test/d",
        "#12",
        "JP-7",
        "936f90d5",
        SHA256[:40],
    )


def test_identifiers_are_named_as_far_as_there_is_room_and_none_that_is_a_secret() -> None:
    key = "sk-ant-api03-" + "a1B2c3D4e5F6g7H8" * 3
    names = ["#1", key, *(f"#{number}" for number in range(2, 9))]
    text = " ".join(names)

    lines, told = with_identifiers(("4 failed, see #8",), names, text)

    assert lines == ("4 failed, see #8", "identifiers: #1, #2, #3, #4, #5")
    assert told == {"#8", "#1", "#2", "#3", "#4", "#5"}
    assert with_identifiers(("x" * 390,), names, text) == (("x" * 390,), frozenset())


@given(text=st.text(max_size=500))
def test_each_identifier_stands_in_its_text_once_named(text: str) -> None:
    found = identifiers(f"{text} #31 {text}")

    assert len(set(found)) == len(found)
    assert all(name in f"{text} #31 {text}" for name in found)


def test_of_a_long_output_the_beginning_and_the_end_are_read() -> None:
    text = "error: the first\n" + "all is well\n" * 20_000 + "error: the last\n"

    assert observe(text, kind="test").lines == ("error: the first", "error: the last")
    assert with_identifiers((), ["#12"], "all is well\n" * 20_000 + "#12\n")[0] == ("identifiers: #12",)
