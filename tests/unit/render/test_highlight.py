from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pygments.lexers import (
    get_lexer_by_name,  # pyright: ignore[reportUnknownVariableType] - Pygments has no types of its own
)
from rich.console import Console
from rich.style import Style
from rich.syntax import SyntaxTheme
from rich.text import Text

from jp.render import highlight
from jp.render.highlight import Highlighter
from jp.render.markdown import render_markdown
from jp.render.theme import Look

LOOK = Look(color=True)
_CONSOLE = Console()

PYTHON = '''\
@decorated
def f(x: int) -> str:
    """A string
    over lines, with 'quotes' and def.
    """
    return f"{x!r:>{width}}" + 'a\\n'  # comment
class A(B):
    pass
'''
JAVASCRIPT = """\
/* a comment
 * over lines: const x = 1 */ const y = `a ${b} template
over lines`; // /* no comment
const t = "/* no comment";
const s = "/* no comment"; const r = /x*/g; /* one line */ f();
"""
HTML = """\
<div class="a">
  <b>text</b> &amp;
</div>
"""


def colored(lines: list[Text]) -> Iterator[tuple[str, Style]]:
    """Each character but white space with its style."""
    for line in lines:
        for part in line.render(_CONSOLE):
            yield from ((character, part.style or Style.null()) for character in part.text if not character.isspace())


def as_a_whole(language: str, code: str) -> Iterator[tuple[str, Style]]:
    theme: SyntaxTheme = highlight.code_theme("ansi")
    lexer: Any = get_lexer_by_name(language)
    for _, kind, value in lexer.get_tokens_unprocessed(code):
        style = theme.get_style_for_token(kind)
        yield from ((character, style) for character in value if not character.isspace())


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", PYTHON),
        ("js", JAVASCRIPT),
        ("html", HTML),
        ("c", "/* a\n b */ int x; /* c */\n#define X \\\n  1\n"),
        ("rust", "/* a /* b */\n c */ fn f<'a>() {}\n"),
        ("json", '{"a": [1, true, null]}\n'),
        ("bash", 'for x in $(ls); do\n  echo "a\n  $x" # c\ndone\n'),
        ("toml", 'a = """\nb\n"""\n[c]\n'),
        ("diff", "@@ -1 +1 @@\n-a\n+b\n"),
    ],
)  # fmt: skip
def test_lines_are_colored_as_the_whole_is(language: str, code: str) -> None:
    highlighter = Highlighter(language, LOOK)

    lines = [highlighter.line(line) for line in code.splitlines()]

    assert list(colored(lines)) == list(as_a_whole(language, code))
    assert [line.plain for line in lines] == code.splitlines()


@pytest.mark.parametrize("info", ["", "no-such-language", "  ", "{"])
def test_code_in_no_known_language_is_plain(info: str) -> None:
    assert Highlighter(info, LOOK).line("def f(): pass") == Text("def f(): pass")


@pytest.mark.parametrize("info", ["python", "Python title=x", "{.python}", "python3"])
def test_the_first_word_is_the_language(info: str) -> None:
    assert [style for _, style in colored([Highlighter(info, LOOK).line("def")])] == [Style.parse("magenta")] * 3


def test_without_color_code_is_plain() -> None:
    assert Highlighter("python", Look(color=False)).line("def f(): pass") == Text("def f(): pass")


def test_a_line_that_is_very_long_is_plain() -> None:
    assert Highlighter("python", LOOK).line("def " * 1000) == Text("def " * 1000)


def test_what_no_rule_matches_is_shown_all_the_same() -> None:
    highlighter = Highlighter("json5", LOOK)

    assert highlighter.line("\u00bf ? \u00bf").plain == "\u00bf ? \u00bf"


def test_a_lexer_that_fails_does_not_cost_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def get_tokens_unprocessed(self, text: str) -> list[tuple[int, tuple[str, ...], str]]:
            if "/*" in text:
                return []
            raise ValueError(text)

    def find(_language: str) -> Broken:
        return Broken()

    monkeypatch.setattr(highlight, "_lexer_for", find)
    highlighter = Highlighter("broken", LOOK)

    assert [highlighter.line("a"), highlighter.line("b")] == [Text("a"), Text("b")]


@pytest.mark.parametrize(
    ("theme", "is_many", "color"), [("monokai", True, "38;2;102;217;239"), ("default", False, "1;38;5;28")]
)
def test_a_pygments_theme_is_shown_in_as_many_colors_as_there_are(theme: str, *, is_many: bool, color: str) -> None:
    look = Look(color=True, code_theme=theme, truecolor=is_many)

    assert f"\x1b[{color}mdef\x1b[0m" in render_markdown("```python\ndef f(): ...\n```", look)


def test_the_terminals_own_colors_are_legible_on_light_and_dark_backgrounds() -> None:
    styles = [Style.parse(style) for style in highlight.OWN_STYLES.values()]

    assert {style.color.name for style in styles if style.color} == {"magenta", "cyan", "green", "red"}
