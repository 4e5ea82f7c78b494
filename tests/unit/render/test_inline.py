from __future__ import annotations

import pytest
from rich.console import Console
from rich.text import Text

from jp.render.blocks import Flow, InlineParser, Segmenter, split
from jp.render.theme import Look

Run = tuple[str, str]

COLORED = InlineParser(Look(color=True))
BARE = InlineParser(Look(color=False))
CONSOLE = Console()


def runs_of(text: Text) -> list[Run]:
    """Parts of the same style, each with its style."""
    return merged([(part.text, str(part.style or "none")) for part in text.render(CONSOLE)])


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
        ("plain", [("plain", "none")]),
        ("a **b** *c*", [("a ", "none"), ("b", "bold"), (" ", "none"), ("c", "italic")]),
        ("**a *b* c**", [("a ", "bold"), ("b", "bold italic"), (" c", "bold")]),
        ("~~a~~ ~b~", [("a", "strike"), (" ~b~", "none")]),
        ("`` a`b ``", [("a`b", "cyan")]),
        ("[a](http://b)", [("a", "underline"), (" (http://b)", "dim")]),
        ('[`a`](b "title")', [("a", "underline cyan"), (" (b)", "dim")]),
        ("[http://b](http://b)", [("http://b", "underline")]),
        ("<http://b> <me@b.c>", [("http://b", "underline"), (" ", "none"), ("me@b.c", "underline")]),
        ("![a](b.png)", [("[image: a] (b.png)", "none")]),
        ("a  \nb\\\nc\nd", [("a", "none"), ("\n", "none"), ("b", "none"), ("\n", "none"), ("c d", "none")]),
        ("&lt;b&gt; <b>", [("<b> <b>", "none")]),
        ("\\*a\\*", [("*a*", "none")]),
        ("snake_case_name", [("snake_case_name", "none")]),
        ("[a][b] [x] c", [("[a][b] [x] c", "none")]),
        ("[a](javascript:b)", [("[a](javascript:b)", "none")]),
    ],
)  # fmt: skip
def test_markup_becomes_style(source: str, runs: list[Run]) -> None:
    assert runs_of(COLORED.parse(source)) == merged(runs)


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
    assert runs_of(COLORED.parse(f"see {source} there")) == [(f"see {source} there", "none")]


def test_markup_around_an_address_is_no_part_of_it() -> None:
    assert runs_of(COLORED.parse("**https://x.y/z** _http://a/b_")) == [
        ("https://x.y/z", "bold"),
        (" ", "none"),
        ("http://a/b", "italic"),
    ]


def test_without_color_the_marks_stay() -> None:
    text = BARE.parse("**a** *b* ~~c~~ `d` [e](f)", "bold")

    assert runs_of(text) == [("**a** *b* ~~c~~ `d` e (f)", "none")]
    assert runs_of(BARE.parse("plain", "bold")) == [("plain", "none")]


def test_a_style_around_everything_is_kept() -> None:
    assert runs_of(COLORED.parse("a `b`", "bold")) == [("a ", "bold"), ("b", "bold cyan")]


@pytest.mark.parametrize("source", ["&#27;[31m", "&#x202e;", "<http://a/\x1b[31m>", "[a](<b\x9b>)", "![\x1b](c)"])
def test_nothing_that_steers_a_terminal_comes_out_of_markup(source: str) -> None:
    text = COLORED.parse(source).plain + BARE.parse(source).plain

    assert all(character.isprintable() for character in text)


def test_a_source_without_end_is_read_in_pieces() -> None:
    source = "[" * 10_000

    assert runs_of(COLORED.parse(source)) == [(source, "none")]


@pytest.mark.parametrize("opening", ["**", "*", "`", "``", "[", "[a](", "~~", "$x", "\\(", "<a "])
def test_a_segment_does_not_end_within_markup_that_may_be_closed(opening: str) -> None:
    segmenter = Segmenter(COLORED)

    assert segmenter.feed(f"a {opening}{'word ' * 30}") == []
    assert segmenter.held.startswith("a ")


@pytest.mark.parametrize(
    "text", ["5 * 3 = 15 ", "snake_case_name ", "a < b ", "[1] ", "**a** ", "`*` ", "https://a.b/c_d*e "]
)
def test_closed_markup_and_plain_signs_hold_nothing_back(text: str) -> None:
    segments = Segmenter(COLORED).feed(text * 100)

    assert len(segments) > 2
    assert max(map(len, segments)) < 100


@pytest.mark.parametrize("text", ["*a ", "`a ", "[a ", "<a ", "x", "日"])
def test_what_nobody_closes_is_released_in_the_end(text: str) -> None:
    segments = Segmenter(COLORED).feed(text * 10_000)

    assert max(map(len, segments)) <= 2000
    assert sum(map(len, segments)) > 10_000 * len(text) - 4000


def test_how_often_a_source_is_parsed_does_not_grow_with_what_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []

    def is_closed(_parser: InlineParser, source: str) -> bool:
        looked_at.append(len(source))
        return False

    monkeypatch.setattr(InlineParser, "is_closed", is_closed)
    segmenter = Segmenter(COLORED)
    for _ in range(20_000):
        segmenter.feed("word ")

    assert sum(looked_at) < 4 * 100_000


def test_segments_mean_together_what_the_whole_means() -> None:
    source = "**a b** *c* `d e` [g](h) <i@j.k> word x_y 5 * 3 " * 20

    assert "".join(COLORED.parse(segment).plain for segment in split(source, COLORED)) == COLORED.parse(source).plain
    assert len(list(split(source, COLORED))) > 5


def test_a_flow_keeps_long_words_whole_but_not_wide_scripts() -> None:
    flow = Flow(CONSOLE)
    lines = [*flow.feed(Text(f"see https://a.b/{'c' * 40} there"), 20), *flow.finish(20)]
    wide = [*flow.feed(Text("日本語" * 20), 20), *flow.finish(20)]

    assert [line.plain for line in lines] == ["see", f"https://a.b/{'c' * 40}", "there"]
    assert {line.cell_len for line in wide} == {20}
