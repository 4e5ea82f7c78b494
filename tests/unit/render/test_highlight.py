from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pygments.lexers import (
    get_lexer_by_name,  # pyright: ignore[reportUnknownVariableType] - Pygments has no types of its own
)

from jp.render import highlight
from jp.render.code_theme import painter
from jp.render.highlight import Highlighter
from jp.render.theme import Look

LOOK = Look(colour=True)
_SGR = re.compile("\x1b\\[([0-9;]*)m")

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


def coloured(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Each character but white space with its style."""
    for line in lines:
        style = ""
        for part in re.split("(\x1b\\[[0-9;]*m)", line):
            if found := _SGR.fullmatch(part):
                style = "" if found[1] == "0" else found[1]
            else:
                yield from ((character, style) for character in part if not character.isspace())


def as_a_whole(language: str, code: str) -> Iterator[tuple[str, str]]:
    style_of = painter(LOOK)
    lexer: Any = get_lexer_by_name(language)
    for _, kind, value in lexer.get_tokens_unprocessed(code):
        yield from ((character, style_of(tuple(kind))) for character in value if not character.isspace())


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
def test_lines_are_coloured_as_the_whole_is(language: str, code: str) -> None:
    highlighter = Highlighter(language, LOOK)

    lines = [highlighter.line(line) for line in code.splitlines()]

    assert list(coloured(lines)) == list(as_a_whole(language, code))
    assert [_SGR.sub("", line) for line in lines] == code.splitlines()


@pytest.mark.parametrize("info", ["", "no-such-language", "  ", "{"])
def test_code_in_no_known_language_is_plain(info: str) -> None:
    assert Highlighter(info, LOOK).line("def f(): pass") == "def f(): pass"


@pytest.mark.parametrize("info", ["python", "Python title=x", "{.python}", "python3"])
def test_the_first_word_is_the_language(info: str) -> None:
    assert Highlighter(info, LOOK).line("def") == "\x1b[35mdef\x1b[0m"


def test_without_colour_code_is_plain() -> None:
    assert Highlighter("python", Look(colour=False)).line("def f(): pass") == "def f(): pass"


def test_a_line_that_is_very_long_is_plain() -> None:
    assert Highlighter("python", LOOK).line("def " * 1000) == "def " * 1000


def test_what_no_rule_matches_is_shown_all_the_same() -> None:
    highlighter = Highlighter("json5", LOOK)

    assert _SGR.sub("", highlighter.line("\u00bf ? \u00bf")) == "\u00bf ? \u00bf"


def test_a_lexer_that_fails_does_not_cost_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def get_tokens_unprocessed(self, text: str) -> list[tuple[int, tuple[str, ...], str]]:
            if "/*" in text:
                return []
            raise ValueError(text)

    def find(_language: str) -> Broken:
        return Broken()

    monkeypatch.setattr(highlight, "_lexer", find)
    highlighter = Highlighter("broken", LOOK)

    assert [highlighter.line("a"), highlighter.line("b")] == ["a", "b"]
