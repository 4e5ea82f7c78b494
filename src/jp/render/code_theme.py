"""Kinds of code to SGR parameters: the terminal's own colours, or those of a Pygments style."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from jp.errors import ConfigurationError
from jp.render.theme import Look

TokenKind = tuple[str, ...]
"""What Pygments calls a token type, such as `("Literal", "String")`."""

Painter = Callable[[TokenKind], str]
"""The SGR parameters for a kind, empty for none."""

_OWN = "ansi"
_OWN_STYLES: dict[TokenKind, str] = {
    ("Comment",): "2",
    ("Comment", "Preproc"): "35",
    ("Keyword",): "35",
    ("Keyword", "Constant"): "36",
    ("Keyword", "Type"): "36",
    ("Literal", "Number"): "36",
    ("Literal", "String"): "32",
    ("Literal", "String", "Escape"): "36",
    ("Literal", "String", "Interpol"): "36",
    ("Name", "Attribute"): "36",
    ("Name", "Builtin"): "36",
    ("Name", "Class"): "1",
    ("Name", "Decorator"): "35",
    ("Name", "Function"): "1",
    ("Name", "Tag"): "35",
    ("Operator", "Word"): "35",
    ("Generic", "Deleted"): "31",
    ("Generic", "Heading"): "1",
    ("Generic", "Inserted"): "32",
    ("Generic", "Prompt"): "2",
    ("Generic", "Subheading"): "36",
}
"""Only what is legible on a dark ground and on a light one: no yellow, white, black, and nothing bright."""

_CUBE = (0, 95, 135, 175, 215, 255)


def check_code_theme(name: str) -> None:
    """Do nothing where `name` is a theme.

    Raises:
        ConfigurationError: it is none.
    """
    if name.startswith(_OWN):
        return
    styles: Any = import_module("pygments.styles")
    names: list[str] = sorted(styles.get_all_styles())
    if name not in names:
        message = f"{name!r} is no theme for code"
        raise ConfigurationError(message, hint=f"Set style.code.theme to 'ansi' or one of: {', '.join(names)}.")


def painter(look: Look) -> Painter:
    """How code is coloured in `look`, whose theme has been checked."""
    if look.code_theme.startswith(_OWN):
        return _own_style
    return _pygments_painter(look.code_theme, truecolor=look.truecolor)


@cache
def _own_style(kind: TokenKind) -> str:
    for size in range(len(kind), 0, -1):
        if (style := _OWN_STYLES.get(kind[:size])) is not None:
            return style
    return ""


@cache
def _pygments_painter(name: str, *, truecolor: bool) -> Painter:
    module: Any = import_module("pygments.styles")
    styles: dict[TokenKind, dict[str, Any]] = {tuple(kind): style for kind, style in module.get_style_by_name(name)}

    @cache
    def style_of(kind: TokenKind) -> str:
        described = styles.get(kind)
        if described is None:
            return style_of(kind[:-1]) if kind else ""
        parameters = [code for key, code in (("bold", "1"), ("italic", "3"), ("underline", "4")) if described[key]]
        if described["color"]:
            parameters.append(_colour(described["color"], truecolor=truecolor))
        return ";".join(parameters)

    return style_of


def _colour(hexadecimal: str, *, truecolor: bool) -> str:
    """The foreground `rrggbb`, or the nearest of 256 colours."""
    channels = [int(hexadecimal[start : start + 2], 16) for start in (0, 2, 4)]
    if truecolor:
        return "38;2;" + ";".join(str(channel) for channel in channels)
    red, green, blue = (min(range(6), key=lambda step: abs(_CUBE[step] - channel)) for channel in channels)
    return f"38;5;{16 + 36 * red + 6 * green + blue}"
