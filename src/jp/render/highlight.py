"""Syntax highlighting of code line by line while it streams, with Pygments' lexers and rich's themes.

Pygments lexes whole texts. Here each line is lexed once, from the states in which the line before it ended, so that a
string over several lines stays one. Only block comments are followed separately: most lexers match them as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax, SyntaxTheme
from rich.text import Text

from jp.render.theme import OWN_CODE_THEME, Look

OWN_STYLES = {
    "Comment": "dim",
    "Comment.Preproc": "magenta",
    "Keyword": "magenta",
    "Keyword.Constant": "cyan",
    "Keyword.Type": "cyan",
    "Literal.Number": "cyan",
    "Literal.String": "green",
    "Literal.String.Escape": "cyan",
    "Literal.String.Interpol": "cyan",
    "Name.Attribute": "cyan",
    "Name.Builtin": "cyan",
    "Name.Class": "bold",
    "Name.Decorator": "magenta",
    "Name.Function": "bold",
    "Name.Tag": "magenta",
    "Operator.Word": "magenta",
    "Generic.Deleted": "red",
    "Generic.Heading": "bold",
    "Generic.Inserted": "green",
    "Generic.Prompt": "dim",
    "Generic.Subheading": "cyan",
}
"""Only what is legible on a dark background and on a light one: no yellow, white, black, and nothing bright."""

_LONGEST_LINE = 2000
"""Longer lines (data, minified code) are not colored: some lexers take more than linear time."""

_LANGUAGE = re.compile(r"[\w+#.-]+")
_COMMENT_OPEN, _COMMENT_CLOSE = "/*", "*/"


class Highlighter:
    """Colors the lines of one piece of code. `info` follows the opening fence; its first word is the language."""

    def __init__(self, info: str, look: Look) -> None:
        found = _LANGUAGE.search(info) if look.color else None
        self._lexer = _lexer_for(found[0].lower().removeprefix(".")) if found else None
        self._theme = code_theme(look.code_theme)
        self._states = ["root"]
        self._in_comment = False

    def line(self, text: str) -> Text:
        """Return the next line of the code, without its line feed."""
        if self._lexer is None or len(text) > _LONGEST_LINE:
            return Text(text)
        shown = Text()
        for kind, value in self._tokens(text):
            shown.append(value, _without_background(self._theme.get_style_for_token(kind)))
        return shown if shown.plain == text else Text(text)

    def _tokens(self, text: str) -> Iterable[tuple[Any, str]]:
        kinds: Any = import_module("pygments.token")
        comment = ""
        if self._in_comment:
            comment, close, text = text.partition(_COMMENT_CLOSE)
            comment += close
            self._in_comment = not close
        elif text.lstrip().startswith(_COMMENT_OPEN) and _COMMENT_CLOSE not in text and self._states == ["root"]:
            self._in_comment = _has_block_comments(self._lexer)
            comment, text = (text, "") if self._in_comment else ("", text)
        if comment:
            yield kinds.Comment, comment
        yield from self._lexed(self._lexer, f"{text}\n")

    def _lexed(self, lexer: Any, line: str) -> list[tuple[Any, str]]:
        """Lex a line from the current states. A lexer that fails must not cost the answer: it gets no more lines."""
        lexers: Any = import_module("pygments.lexer")
        try:
            if isinstance(lexer, lexers.RegexLexer):
                context = lexers.LexerContext(line, 0, list(self._states))
                found = list(lexers.ExtendedRegexLexer.get_tokens_unprocessed(lexer, context=context))
                self._states = context.stack
            else:
                found = list(lexer.get_tokens_unprocessed(line))
        except Exception:  # noqa: BLE001 - some lexers have rules that want no context, or are at fault
            self._lexer = None
            return [(import_module("pygments.token").Text, line.removesuffix("\n"))]
        return [(kind, value.removesuffix("\n")) for _, kind, value in found]


@cache
def _without_background(style: Style) -> Style:
    """Return a style on the background of the terminal."""
    return Style(color=style.color, bold=style.bold, italic=style.italic, underline=style.underline, dim=style.dim)


@cache
def code_theme(name: str) -> SyntaxTheme:
    """Return the styles of the theme `name`, which has been checked."""
    if not name.startswith(OWN_CODE_THEME):
        return Syntax.get_theme(name)
    kinds: Any = import_module("pygments.token")
    return ANSISyntaxTheme({kinds.string_to_tokentype(kind): Style.parse(style) for kind, style in OWN_STYLES.items()})


@cache
def _lexer_for(language: str) -> Any:
    """Return the Pygments lexer, which has no types of its own; None for an unknown language."""
    lexers: Any = import_module("pygments.lexers")
    try:
        return lexers.get_lexer_by_name(language)
    except import_module("pygments.util").ClassNotFound:
        return None


@cache
def _has_block_comments(lexer: Any) -> bool:
    comment = import_module("pygments.token").Comment
    lexed = [kind for _, kind, value in lexer.get_tokens_unprocessed("/* x */") if value.strip()]
    return bool(lexed) and all(kind in comment for kind in lexed)
