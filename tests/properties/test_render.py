from __future__ import annotations

import re

from hypothesis import assume, given
from hypothesis import strategies as st
from rich.text import Text

from jp.render.blocks import InlineParser, Segmenter
from jp.render.markdown import MarkdownStream, render_markdown
from jp.render.sanitize import Sanitizer, sanitize
from jp.render.tables import cell_width
from jp.render.theme import Look

_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_COLOR = re.compile("\x1b\\[[0-9;:]*m")

_hostile = st.lists(
    st.one_of(
        st.sampled_from([
            "\x1b",
            "[",
            "]",
            "0;",
            "\x07",
            "\\",
            "m",
            "31",
            "8",
            "\r",
            "\n",
            "\x9b",
            "\x9d",
            "\x9c",
            "P",
        ]),
        st.sampled_from(["\x18", "\u202e", "\ud800", " ", "?", "x" * 4090, "text"]),
        st.characters(codec=None),
    )
).map("".join)


@st.composite
def _pieces(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> list[str]:
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(_pieces(_hostile))
def test_nothing_that_steers_a_terminal_survives_however_the_text_is_cut(pieces: list[str]) -> None:
    sanitizer = Sanitizer()

    shown = "".join(sanitizer.feed(piece) for piece in pieces) + sanitizer.finish()

    assert shown == sanitize("".join(pieces))
    assert _FORBIDDEN.search(shown) is None
    assert sanitize(shown) == shown


@given(_pieces(_hostile))
def test_of_what_steers_a_terminal_only_colors_are_kept(pieces: list[str]) -> None:
    sanitizer = Sanitizer(keep_colors=True)

    shown = "".join(sanitizer.feed(piece) for piece in pieces) + sanitizer.finish()

    assert shown == sanitize("".join(pieces), keep_colors=True)
    assert _FORBIDDEN.search(_COLOR.sub("", shown)) is None
    assert _COLOR.sub("", shown) == sanitize("".join(pieces))


_LOREM = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore "
_inline = st.sampled_from([
    "a",
    "word ",
    " ",
    "**",
    "*",
    "_",
    "`",
    "``",
    "~~",
    "[",
    "](",
    ")",
    "<",
    ">",
    "$",
    "\\(",
    "\\)",
    "\\",
    "&amp;",
    "|",
    "![",
    "https://a.b/c_d_e ",
    "&#27;[31m",
    "日本語",
    "、",
    "🎉",
    "é",
    "\t",
    "  ",
    "x" * 90,
    _LOREM,
    "\x1b[31m",
    "!",
    ".",
])
_starts = st.sampled_from([
    "",
    "",
    "",
    "# ",
    "> ",
    "- ",
    "* ",
    "1. ",
    "7) ",
    "    ",
    "  ",
    "```",
    "~~~",
    "```py",
    "| a | b |",
    "|---|:-:|",
    "---",
    "===",
    "<div>",
    "<!--",
    "-->",
    "$$",
    "[a]: b",
    "\\[",
])
_lines = st.tuples(_starts, st.lists(_inline, max_size=8).map("".join)).map("".join)
_markdown = st.lists(_lines, max_size=12).map("\n".join)
_looks = st.builds(
    Look,
    width=st.sampled_from([20, 40, 80, 200]),
    wrap=st.sampled_from([0, 60]),
    color=st.booleans(),
    unicode=st.booleans(),
)


@given(_pieces(_markdown), _looks)
def test_markdown_is_shown_the_same_however_it_is_cut(pieces: list[str], look: Look) -> None:
    stream = MarkdownStream(look)

    steps = [stream.feed(piece) for piece in pieces]
    steps.append(stream.finish())

    shown = "".join(steps)
    assert shown == render_markdown("".join(pieces), look)
    assert all(step.endswith("\n") for step in steps if step)


@given(st.one_of(_markdown, _hostile), _looks)
def test_of_markdown_only_our_own_styles_steer_the_terminal(text: str, look: Look) -> None:
    shown = render_markdown(text, look)

    plain = _COLOR.sub("", shown)
    assert _FORBIDDEN.search(plain) is None
    assert look.color or plain == shown
    # Every style ends with its line, so nothing that is shown later is styled by it.
    assert all(line.rfind("\x1b[") == line.rfind("\x1b[0m") for line in shown.split("\n"))


@given(
    st.lists(st.sampled_from(["lorem", "ipsum", "**dolor**", "`sit`", "日本語", "a", "\n"]), max_size=80),
    st.integers(20, 60),
)
def test_lines_of_running_text_fit_and_lose_nothing(words: list[str], width: int) -> None:
    text = " ".join(words).replace(" \n ", "\n").strip()

    shown = render_markdown(text, Look(width=width))

    assert all(cell_width(line) <= width for line in shown.splitlines())
    assert "".join(shown.split()) == "".join(text.split())


@given(_pieces(st.lists(_inline, max_size=60).map("".join)))
def test_a_paragraph_is_cut_at_the_same_places_however_it_comes(pieces: list[str]) -> None:
    inline = InlineParser(Look(color=True))
    piecewise, whole = Segmenter(inline), Segmenter(inline)

    segments = [segment for piece in pieces for segment in piecewise.feed(piece)]
    rest = piecewise.rest()

    assert segments == whole.feed("".join(pieces))
    assert rest == whole.rest()
    assert "".join(segments) + rest == "".join(pieces)


class _InOneGo(InlineParser):
    def parse_whole(self, source: str) -> Text:
        """Parse without cutting the source into segments."""
        text = Text()
        self._append(text, self._tokens(source), "")
        return text


_CLOSED_MARKUP = st.sampled_from([
    "**a b** ",
    "*c* ",
    "`d e` ",
    "~~f~~ ",
    "[g](h) ",
    "<i@j.k> ",
    "word ",
    "x_y ",
    "5 * 3 ",
    "$1 ",
])


@given(st.lists(_CLOSED_MARKUP, max_size=60).map("".join))
def test_the_segments_of_a_paragraph_mean_together_what_the_whole_means(text: str) -> None:
    inline = _InOneGo(Look(color=False))

    assert inline.parse(text).plain == inline.parse_whole(text).plain


_containers = st.lists(st.sampled_from(["> ", ">", "- ", "* ", "+ ", "1. ", "2) ", "10. "]), max_size=3).map("".join)
_bodies = st.sampled_from([
    "foo",
    "foo bar",
    "# head",
    "## h ##",
    "---",
    "***",
    "===",
    "```",
    "~~~",
    "```py",
    "<div>",
    "</div>",
    "<b>",
    "text <b>",
    "",
    "",
    "- - x",
    "#",
    "foo  ",
    "foo\\",
    "```x`",
    "_ _ _",
    "--",
    "| a |",
    "<!-- c",
    "-->",
])
_soup = st.lists(
    st.tuples(st.sampled_from(["", "", " ", "  ", "   "]), _containers, _bodies).map("".join), min_size=1, max_size=9
).map(lambda lines: "\n".join(lines) + "\n")


class _WholeText(MarkdownStream):
    def render(self, text: str) -> str:
        """Render a text that markdown-it parses at once."""
        self._pending = text.split("\n")
        self._read(is_last=True)
        self._layout.end_leaf()
        return self._layout.take()


_cells = st.sampled_from(["a", "b c", "`d`", "", "e \\| f", "**g**"])
_rows = st.lists(_cells, min_size=1, max_size=4).map(lambda cells: f"| {' | '.join(cells)} |")
_delimiters = st.lists(st.sampled_from(["---", ":--", "--:", ":-:"]), min_size=1, max_size=4).map(
    lambda cells: f"|{'|'.join(cells)}|"
)
_tables = st.tuples(_rows, _delimiters, st.lists(_rows, max_size=3)).map(
    lambda table: "\n".join([table[0], table[1], *table[2]])
)


@given(st.one_of(_soup, st.lists(_tables, max_size=3).map("\n".join)), st.sampled_from([20, 80]))
def test_blocks_that_are_parsed_as_they_come_are_those_of_the_whole_text(text: str, width: int) -> None:
    # markdown-it departs from the specification in numbers and markers after empty items.
    assume(re.search("(?m)(?:[-*+]|[0-9][.)]) *$", text) is None)
    text = text.rstrip("\n")

    assert render_markdown(text, Look(width=width)) == _WholeText(Look(width=width)).render(text)


@given(_soup)
def test_every_word_of_the_source_is_shown(text: str) -> None:
    shown = render_markdown(text, Look(width=200))

    for word in ("foo", "bar", "head", "div", "x"):
        assert len(re.findall(rf"\b{word}\b", shown)) >= len(re.findall(rf"\b{word}\b", text))
