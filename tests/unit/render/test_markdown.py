from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from jp.render.blocks import BlockParser, Leaf
from jp.render.markdown import MarkdownStream, render_markdown
from jp.render.tables import cell_width
from jp.render.theme import Look

BARE = Look(width=40)
COLORED = Look(width=40, color=True)
LONG = "word " * 40


def shown(text: str, look: Look = BARE) -> str:
    return render_markdown(text, look)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one\ntwo", ["one two"]),
        ("one  \ntwo", ["one", "two"]),
        ("one\n\n\n\ntwo\n\n", ["one", "", "two"]),
        ("\n\none", ["one"]),
        ("# One\ntext\n## Two", ["# One", "", "text", "", "## Two"]),
        ("text:\n- a\n- b\n\nmore", ["text:", "• a", "• b", "", "more"]),
        ("- a\n\n- b", ["• a", "", "• b"]),
        ("- a\n  - b\n    - c", ["• a", "  • b", "    • c"]),
        ("9. a\n10. b\n    - c", ["9. a", "10. b", "    • c"]),
        ("- - a\n  - b", ["• • a", "  • b"]),
        ("-\n- a", ["•", "• a"]),
        ("a\n- >\n\n  b", ["a", "• │", "", "  b"]),
        ("- [ ] a\n- [x] b", ["• [ ] a", "• [x] b"]),
        ("- a\n\n  b\n\n      c", ["• a", "", "  b", "", "      c"]),
        ("1. a\n   ```\n   b\n\n   c\n   ```\n2. d", ["1. a", "   ```", "   b", "", "   c", "   ```", "2. d"]),
        ("text\n```py\na\n\n  b\n```\nmore", ["text", "", "```py", "a", "", "  b", "```", "", "more"]),
        ("```\nnever closed", ["```", "never closed", "```"]),
        ("    a\n\n    b\n\nc", ["    a", "", "    b", "", "c"]),
        ("> a\n> b\n\nc", ["│ a b", "", "c"]),
        ("> a\n>\n> > b\n> - c", ["│ a", "│", "│ │ b", "│", "│ • c"]),
        ("- > a\n  > b", ["• │ a b"]),
        ("text\n> a", ["text", "", "│ a"]),
        ("a\n\n***\nb", ["a", "", "─" * 40, "", "b"]),
        ("<div>\n  a_b_c\n</div>\n\n**x**", ["<div>", "  a_b_c", "</div>", "", "**x**"]),
        ("where\n$$\na_1 * b_1\n$$\nholds", ["where", "$$", "a_1 * b_1", "$$", "holds"]),
        ("see [a][1]\n\n[1]: b\n[2]: c", ["see [a][1]", "", "[1]: b", "[2]: c"]),
        ("a\n\n| b | c |\n|---|---|\n| d | e |\n\nf", ["a", "", "b │ c", "──┼──", "d │ e", "", "f"]),
        ("One\n===\ntext", ["# One", "", "text"]),
        ("", []),
    ],
)  # fmt: skip
def test_blocks_are_laid_out(text: str, lines: list[str]) -> None:
    assert shown(text) == "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "final", "coming"),
    [
        ("", "", ""),
        ("A short", "", "A short"),
        ("one\ntw", "", "one tw"),
        ("word " * 30, ("word " * 7 + "word\n") * 3, ("word " * 6).rstrip()),
        (
            "- item " + "word " * 30,
            "• item" + " word" * 6 + "\n" + ("  word" + " word" * 6 + "\n") * 2,
            "  word" + " word" * 9,
        ),
        ("# One\n\n- an it", "# One\n", "- an it"),
        ("> - a quote", "", "> - a quote"),
        ("```\na = 1\nb =", "```\na = 1\n", "b ="),
        ("a\x1b[2Jb", "", "ab"),
    ],
)
def test_the_line_that_is_coming_can_be_looked_at(text: str, final: str, coming: str) -> None:
    stream = MarkdownStream(BARE)
    given = stream.feed(text)
    given += stream.feed("")

    assert (given, stream.preview()) == (final, coming)
    assert given + stream.finish() == shown(text)
    assert stream.preview() == ""


def test_styles_are_those_of_every_terminal() -> None:
    text = "# One\n\na **b** `c`\n\n> d\n\n- e\n\n```python\ndef f(): ...\n```\n\n***\n"

    assert shown(text, COLORED) == (
        "\x1b[1;35m# One\x1b[0m\n"
        "\n"
        "a \x1b[1mb\x1b[0m \x1b[36mc\x1b[0m\n"
        "\n"
        "\x1b[2m│\x1b[0m d\n"
        "\n"
        "• e\n"
        "\n"
        "\x1b[2m```python\x1b[0m\n"
        "\x1b[35mdef\x1b[0m \x1b[1mf\x1b[0m(): ...\n"
        "\x1b[2m```\x1b[0m\n"
        "\n"
        "\x1b[2m────────────────────────────────────────\x1b[0m\n"
    )


def test_a_terminal_without_unicode_gets_ascii() -> None:
    text = "- a\n\n> b\n\n***\n\n| c | d |\n|---|---|\n"

    assert shown(text, Look(width=20, unicode=False)).isascii()


@pytest.mark.parametrize("width", [20, 80, 200])
def test_text_is_as_wide_as_it_may_be(width: int) -> None:
    text = f"{LONG}\n\n- {LONG}\n\n> > {LONG}\n\n{'日本語' * 60}\n\n| a | b |\n|---|---|\n| {LONG} | {LONG} |\n"

    lines = shown(text, Look(width=width)).splitlines()

    assert width - 5 <= max(map(cell_width, lines)) <= width


def test_running_text_is_narrower_than_the_terminal_but_tables_are_not() -> None:
    row = f"| {LONG} | {LONG} |"
    lines = shown(f"{LONG}\n\n| a | b |\n|---|---|\n{row}\n", Look(width=200, wrap=60)).splitlines()

    assert max(map(cell_width, lines[:4])) <= 60
    assert max(map(cell_width, lines[4:])) > 190


def test_addresses_stay_whole() -> None:
    address = f"https://example.com/{'a/' * 60}b_c"

    assert address in shown(f"see {address} there").splitlines()


def test_deep_nesting_leaves_room_for_text() -> None:
    lines = shown("> " * 15 + LONG, Look(width=40)).splitlines()

    assert min(len(line.replace("│ ", "")) for line in lines[:-1]) == len("word word")


def test_nothing_that_steers_a_terminal_is_shown() -> None:
    text = "\x1b[2Ja\x1b]0;pwned\x07 &#27;[31m `\x1b[8m`\r\n```\n\x9b31m\n```\n| \x1b |\n|---|\n"

    assert re.fullmatch("[\n -~\u2500-\u257f\ufffd]*", shown(text))


def test_lines_are_shown_when_they_are_final_and_never_again() -> None:
    stream = MarkdownStream(BARE)
    pieces = [
        "Some text that is",
        " longer than a line of forty cells, so that it is ",
        "wrapped",
        ".\n\n",
        "- a\n",
        "- b",
        "\n```\n",
        "co",
        "de\n",
    ]

    steps = [stream.feed(piece) for piece in pieces]

    assert steps == [
        "",
        "",
        "",
        "Some text that is longer than a line of\nforty cells, so that it is wrapped.\n",
        "",
        "",
        "\n• a\n• b\n\n```\n",
        "",
        "code\n",
    ]
    assert stream.finish() == "```\n"


def test_progress_is_shown_within_a_line_that_is_still_coming() -> None:
    stream = MarkdownStream(BARE)

    steps = [stream.feed("word ") for _ in range(40)]

    assert "".join(steps).count("\n") >= 3


@pytest.mark.parametrize("beginning", ["# ", "```", "| ", "    ", "[a]: ", "<b "])
def test_what_is_not_running_text_is_shown_when_its_line_ends(beginning: str) -> None:
    stream = MarkdownStream(BARE)

    assert [stream.feed(piece) for piece in (beginning, *["word "] * 200)] == [""] * 201


def test_running_text_can_be_shown_before_it_is_known_to_end() -> None:
    stream = MarkdownStream(BARE)

    assert stream.feed("Let me look") == ""
    assert stream.settle() == "Let me look\n"
    assert stream.settle() == ""
    assert stream.feed(" at it.\n\n```\ncode") == "at it.\n\n```\n"
    assert stream.settle() == ""
    assert stream.feed(" goes on\n") == "code goes on\n"
    assert stream.finish() == "```\n"


def test_a_heading_is_not_shown_before_it_is_known_to_end() -> None:
    stream = MarkdownStream(BARE)
    stream.feed("# Head")

    assert stream.settle() == ""
    assert stream.feed("ing\n") == "# Heading\n"


def test_a_finished_stream_starts_another_text() -> None:
    stream = MarkdownStream(BARE)
    stream.feed("```\n- a \x1b]0;open")

    assert stream.finish() == "- a 0;open\n```\n"
    assert stream.feed("- b\n") + stream.finish() == "• b\n"


@pytest.mark.parametrize(
    ("beginning", "repeated"),
    [
        ("", "word "),
        ("# ", "word "),
        ("", "word\n"),
        ("", "- item\n"),
        ("", "   - item\n"),
        ("", "> text\n"),
        ("> " * 40, "x\n"),
        ("", f"{'> ' * 40}x\n"),
        ("```py\n", "code\n"),
        ("- ```\n", "  code\n"),
        ("    code\n", "    code\n"),
        ("    code\n", "\n"),
        ("<div>\n", "text\n"),
        ("<!--\n", "text\n\n"),
        ("$$\n", "text\n"),
        ("| a | b |\n|---|---|\n", "| c | d |\n"),
        ("", "a | b\n"),
        ("", "-\n"),
        ("", ">\n"),
    ],
)
def test_no_source_is_parsed_again_and_again(beginning: str, repeated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parse, sizes = BlockParser.parse, list[int]()

    def counted(parser: BlockParser, lines: Sequence[str], *arguments: object, **options: bool) -> list[Leaf]:
        sizes.append(sum(map(len, lines)))
        return parse(parser, lines, *arguments, **options)  # pyright: ignore[reportArgumentType] - passed on

    monkeypatch.setattr(BlockParser, "parse", counted)
    stream = MarkdownStream(BARE)
    text = beginning + repeated * 500
    for start in range(0, len(text), 4):
        stream.feed(text[start : start + 4])
    stream.finish()

    assert max(sizes[:-1], default=0) <= max(400, 20 * len(repeated))
    assert len(sizes) <= 3 * text.count("\n") + 5


def test_a_long_table_is_shown_before_it_ends_and_repeats_its_head() -> None:
    stream = MarkdownStream(BARE)
    shown = stream.feed("| a | b |\n|---|--:|\n" + "| c | d |\n" * 100)

    assert shown.count("a │ b") == 2
    assert shown.count("c │ d") == 80
    assert stream.finish().count("c │ d") == 20


def test_columns_are_aligned_and_no_wider_than_their_cells() -> None:
    text = "|name|count|what|\n|---|--:|:-:|\n|a|1|x|\n|日本語|1000|long|\n"

    assert [line.rstrip() for line in shown(text, Look(width=80)).splitlines()] == [
        "name   │ count │ what",
        "───────┼───────┼─────",
        "a      │     1 │  x",
        "日本語 │  1000 │ long",
    ]


def test_a_table_with_too_many_columns_is_shown_row_by_row() -> None:
    text = "|one|two|three|\n|---|---|---|\n|a|b|c|\n|d|\n"

    assert [line.rstrip() for line in shown(text, Look(width=20)).splitlines()] == [
        "one: a",
        "two: b",
        "three: c",
        "",
        "one: d",
        "two:",
        "three:",
    ]


def test_cells_without_a_column_are_not_lost() -> None:
    assert "1 │ 2 | 3" in shown("|a|b|\n|---|---|\n|1|2|3|\n")


def test_lines_are_as_wide_as_the_terminal_is_when_they_are_laid_out() -> None:
    width = 40
    stream = MarkdownStream(BARE, lambda: width)

    wide = stream.feed("word " * 60)
    width = 20
    narrow = stream.feed("word " * 60) + stream.finish()

    assert {len(line) for line in wide.splitlines()} == {39}
    assert {len(line) for line in narrow.splitlines()[:-1]} == {19}
    assert (wide + narrow).split() == ["word"] * 120
