from __future__ import annotations

import pytest

from jp.render.inline import Inline
from jp.render.theme import Look
from jp.render.wrap import Run

COLOURED = Inline(Look(colour=True))
BARE = Inline(Look(colour=False))


def merged(runs: list[Run]) -> list[Run]:
    found: list[Run] = []
    for text, style in runs:
        if found and found[-1][1] == style:
            found[-1] = (found[-1][0] + text, style)
        else:
            found.append((text, style))
    return found


@pytest.mark.parametrize(
    ("source", "runs"),
    [
        ("plain", [("plain", "")]),
        ("a **b** *c* `d`", [("a ", ""), ("b", "1"), (" ", ""), ("c", "3"), (" ", ""), ("d", "36")]),
        ("**a *b* c**", [("a ", "1"), ("b", "1;3"), (" c", "1")]),
        ("~~a~~ ~b~", [("a", "9"), (" ~b~", "")]),
        ("`` a`b ``", [("a`b", "36")]),
        ("[a](http://b)", [("a", "4"), (" (http://b)", "2")]),
        ('[`a`](b "title")', [("a", "4;36"), (" (b)", "2")]),
        ("[http://b](http://b)", [("http://b", "4")]),
        ("<http://b> <me@b.c>", [("http://b", "4"), (" ", ""), ("me@b.c", "4")]),
        ("![a](b.png)", [("[image: a] (b.png)", "")]),
        ("a  \nb\\\nc\nd", [("a", ""), ("\n", ""), ("b", ""), ("\n", ""), ("c d", "")]),
        ("&lt;b&gt; <b>", [("<b> <b>", "")]),
        ("\\*a\\*", [("*a*", "")]),
        ("snake_case_name", [("snake_case_name", "")]),
        ("[a][b] [x] c", [("[a][b] [x] c", "")]),
        ("[a](javascript:b)", [("[a](javascript:b)", "")]),
    ],
)  # fmt: skip
def test_markup_becomes_style(source: str, runs: list[Run]) -> None:
    assert merged(COLOURED.runs(source)) == merged(runs)


@pytest.mark.parametrize(
    "source",
    [
        r"\(a_1 * b_2 * c\)",
        r"\[x_1 * y_1\]",
        "$x_1*y*z$",
        "$$a_1 b_1$$",
        "https://x.y/_foo_/bar_baz*?a=b_c&d",
        "it costs $5 and $6",
        "2 * 3 * 4",
        "* a",
    ],
)
def test_formulas_addresses_and_signs_stay_as_they_are(source: str) -> None:
    assert merged(COLOURED.runs(f"see {source} there")) == [(f"see {source} there", "")]


def test_markup_around_an_address_is_no_part_of_it() -> None:
    assert merged(COLOURED.runs("**https://x.y/z** _http://a/b_")) == [
        ("https://x.y/z", "1"),
        (" ", ""),
        ("http://a/b", "3"),
    ]


def test_without_colour_the_marks_stay() -> None:
    runs = BARE.runs("**a** *b* ~~c~~ `d` [e](f)", "1")

    assert merged(runs) == [("**a** *b* ~~c~~ `d` e (f)", "")]
    assert BARE.runs("plain", "1") == [("plain", "")]


def test_a_style_around_everything_is_kept() -> None:
    assert COLOURED.runs("a `b`", "1") == [("a ", "1"), ("b", "1;36")]


@pytest.mark.parametrize("source", ["&#27;[31m", "&#x202e;", "<http://a/\x1b[31m>", "[a](<b\x9b>)", "![\x1b](c)"])
def test_nothing_that_steers_a_terminal_comes_out_of_markup(source: str) -> None:
    text = "".join(text for text, _ in [*COLOURED.runs(source), *BARE.runs(source)])

    assert all(character.isprintable() for character in text)


def test_a_source_without_end_is_read_in_pieces() -> None:
    source = "[" * 10_000

    assert merged(COLOURED.runs(source)) == [(source, "")]
