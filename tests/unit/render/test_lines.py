from __future__ import annotations

import pytest

from jp.render import lines
from jp.render.lines import Marker, Rest


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("a", Rest(0, "a")),
        ("  a ", Rest(2, "a ")),
        ("\ta", Rest(4, "a", lead="\t")),
        ("  \ta", Rest(4, "a", lead="  \t")),
        ("   ", Rest(3, "")),
    ],
)
def test_leading_white_space_is_counted_in_columns(text: str, rest: Rest) -> None:
    assert lines.measure(text) == rest


def test_a_tab_after_a_marker_reaches_to_the_next_multiple_of_four() -> None:
    assert lines.measure("-\ta").after(1) == Rest(3, "a", 1, "\t")


def test_tabs_stay_where_nothing_is_taken_of_them() -> None:
    rest = lines.measure("\t\ta")

    assert rest.text == "\t\ta"
    assert rest.dedent(0).text == "\t\ta"
    assert rest.dedent(3).text == "     a"


@pytest.mark.parametrize("body", ["---", "* * *", "___", "- - -  ", "*" * 200])
def test_a_rule_is_three_of_one_kind(body: str) -> None:
    assert lines.is_rule(body)


@pytest.mark.parametrize("body", ["--", "-*-", "--- a", "===", "", "* *"])
def test_what_is_no_rule(body: str) -> None:
    assert not lines.is_rule(body)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("# a", (1, "a")),
        ("###### a b  ", (6, "a b")),
        ("## a ##", (2, "a")),
        ("## a#", (2, "a#")),
        ("## ##", (2, "")),
        ("#", (1, "")),
        ("#\ta", (1, "a")),
        ("####### a", None),
        ("#a", None),
        ("a", None),
    ],
)
def test_headings(body: str, found: tuple[int, str] | None) -> None:
    assert lines.heading(body) == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("```", ("```", "")),
        ("```` py  ", ("````", "py")),
        ("~~~ a ` b", ("~~~", "a ` b")),
        ("``` a`", None),
        ("``", None),
        ("a", None),
    ],
)
def test_fences(body: str, found: tuple[str, str] | None) -> None:
    assert lines.fence(body) == found


@pytest.mark.parametrize(
    ("opening", "rest", "closes"),
    [
        ("```", Rest(0, "```"), True),
        ("```", Rest(3, "`````  "), True),
        ("```", Rest(4, "```"), False),
        ("```", Rest(0, "``"), False),
        ("```", Rest(0, "~~~"), False),
        ("```", Rest(0, "``` a"), False),
    ],
)
def test_a_fence_is_closed_by_as_many_of_its_kind(opening: str, rest: Rest, *, closes: bool) -> None:
    assert lines.closes_fence(opening, rest) is closes


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("- a", Marker("-", None, 1)),
        ("+", Marker("+", None, 1)),
        ("*\ta", Marker("*", None, 1)),
        ("1. a", Marker(".", 1, 2)),
        ("123456789) a", Marker(")", 123456789, 10)),
        ("1234567890. a", None),
        ("-a", None),
        ("1.a", None),
        ("a", None),
        ("٣. a", None),
    ],
)
def test_markers(body: str, found: Marker | None) -> None:
    assert lines.marker(body) == found


@pytest.mark.parametrize(("body", "level"), [("===", 1), ("-", 2), ("---  ", 2), ("=-", 0), ("a", 0), ("", 0)])
def test_underlines(body: str, level: int) -> None:
    assert lines.setext_level(body) == level


@pytest.mark.parametrize(
    ("body", "interrupts", "end"),
    [
        ("<div>", True, ""),
        ("</details>", True, ""),
        ("<pre>x", True, "</pre>"),
        ("<!-- a", True, "-->"),
        ("<?php", True, "?>"),
        ("<!DOCTYPE html", True, ">"),
        ("<![CDATA[", True, "]]>"),
        ('<custom-tag a="1" b>', False, ""),
        ("</custom>  ", False, ""),
    ],
)
def test_html_begins_and_ends(body: str, end: str, *, interrupts: bool) -> None:
    found, pattern = lines.html_end(body, interrupts=interrupts)

    assert found
    assert (pattern is None) if not end else (pattern is not None and pattern.search(end) is not None)


@pytest.mark.parametrize("body", ["a", "< div>", "<b> text", "<b", "<" + "b" * 2000 + ">", "<divx y"])
def test_what_is_no_html(body: str) -> None:
    assert not lines.html_end(body, interrupts=False)[0]


def test_a_tag_that_stands_alone_does_not_end_a_paragraph() -> None:
    assert not lines.html_end("<b>", interrupts=True)[0]


@pytest.mark.parametrize(
    ("body", "is_one"),
    [("[1]: http://a", True), ("[^1]: note", True), ("[a]:", True), ("[ ]: a", False), ("[a] b", False)],
)
def test_definitions(body: str, *, is_one: bool) -> None:
    assert lines.is_definition(body) is is_one


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("|---|:--|--:|:-:|", [None, "left", "right", "center"]),
        ("--|--", [None, None]),
        ("---", [None]),
        ("-", None),
        ("- --|", None),
        ("| a |", None),
        ("|--||--|", None),
        ("| ", None),
        ("", None),
    ],
)
def test_delimiter_rows(body: str, found: list[lines.Alignment | None] | None) -> None:
    assert lines.alignments(body) == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("| a | b |", ["a", "b"]),
        ("a|b", ["a", "b"]),
        ("| a \\| b | c", ["a | b", "c"]),
        ("| | a |", ["", "a"]),
        ("|", []),
    ],
)
def test_rows(body: str, found: list[str]) -> None:
    assert lines.cells(body) == found


@pytest.mark.parametrize(
    ("body", "is_text"),
    [
        ("Some text", True),
        ("**bold** text", True),
        ("`code` first", True),
        ("5 apples", True),
        ("# heading", False),
        ("| row", False),
        ("a | b", False),
        ("x" * lines.LOOK_AHEAD + " | b", True),
        ("***", False),
        ("```", False),
        ("<b>", False),
        ("[a]: b", False),
        ("$$", False),
        ("\\[", False),
        ("===", False),
        ("", False),
    ],
)
def test_what_is_running_text_for_certain(body: str, *, is_text: bool) -> None:
    assert lines.is_running_text(body) is is_text
