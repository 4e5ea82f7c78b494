"""Abilities of a stream (color, width, characters), and the styles of tool calls and code."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, TextIO

import msgspec

from jp.config.entries import ToolStyleConfig
from jp.errors import ConfigurationError

ColorChoice = Literal["auto", "always", "never"]

FALLBACK_WIDTH = 80
OWN_CODE_THEME = "ansi"
"""Names of themes that use the terminal's own colors begin with this."""

_LEAST_WIDTH = 20


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """The appearance of text. Without `color` no SGR sequence is written, and marks replace styles.

    `width` is the terminal's, in cells; `wrap` bounds the width of running text, 0 does not. `code_theme` is a Pygments
    style, or begins with `ansi`: then code has the terminal's own colors. `truecolor`: the terminal has more than 256
    colors. `links`: it can show links.
    """

    width: int = FALLBACK_WIDTH
    wrap: int = 0
    color: bool = False
    unicode: bool = True
    code_theme: str = "ansi"
    truecolor: bool = False
    links: bool = False

    @property
    def text_width(self) -> int:
        """The width of running text."""
        return min(self.width, self.wrap) if self.wrap else self.width


Measure = Callable[[], int]
"""A function that returns the present width of a terminal, in cells."""


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """The user's settings for the appearance: `--color`, `--width`, `style`."""

    color: ColorChoice = "auto"
    width: int | None = None
    wrap: int = 0
    code_theme: str = "ansi"


def look_at(
    stream: TextIO | None,
    preferences: Preferences,
    environment: Mapping[str, str],
    *,
    siblings: Sequence[TextIO | None] = (),
) -> Look:
    """Return the appearance of text on `stream`. If it has no width, that of a sibling that is a terminal is used."""
    color = use_color(preferences.color, environment, is_terminal=is_terminal(stream))
    return Look(
        width=display_width(preferences.width, environment, columns=columns_of(stream, *siblings)),
        wrap=preferences.wrap,
        color=color,
        unicode=shows_unicode(stream),
        code_theme=preferences.code_theme,
        truecolor=use_truecolor(environment),
        links=color and reads_osc(stream, environment),
    )


def use_color(choice: ColorChoice, environment: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Return whether to use colors: by `--color`, `NO_COLOR`, `FORCE_COLOR` and `CLICOLOR_FORCE`, or the stream.

    The first of them that is set decides. An empty variable counts as unset, and so does a forcing one that is `0`.
    """
    if choice != "auto":
        return choice == "always"
    if environment.get("NO_COLOR"):
        return False
    if any(environment.get(name, "0") not in {"", "0"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return is_terminal and environment.get("TERM") != "dumb"


def display_width(requested: int | None, environment: Mapping[str, str], *, columns: int | None) -> int:
    """Return the width: `--width`, else `COLUMNS`, else the terminal's `columns`, else 80; 20 at least.

    A value that is not a positive number counts as unset.
    """
    declared = environment.get("COLUMNS", "")
    for width in (requested, int(declared) if declared.isascii() and declared.isdigit() else None, columns):
        if width is not None and width > 0:
            return max(width, _LEAST_WIDTH)
    return FALLBACK_WIDTH


def use_truecolor(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal reports 24-bit colors."""
    return environment.get("COLORTERM", "") in {"truecolor", "24bit"}


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether `stream` is a terminal; a closed or missing one is not."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def is_live(stream: TextIO | None, environment: Mapping[str, str]) -> bool:
    """Return whether `stream` is a terminal on which a line can be erased."""
    return is_terminal(stream) and environment.get("TERM", "dumb") != "dumb"


def reads_osc(stream: TextIO | None, environment: Mapping[str, str]) -> bool:
    """Return whether `stream` is a terminal that ignores the operating system commands (OSC) that it does not know.

    The console of Linux prints them.
    """
    return is_live(stream, environment) and environment.get("TERM") != "linux"


def columns_of(*streams: TextIO | None) -> int | None:
    """Return the width of the first of `streams` that is a terminal and reports it."""
    for stream in streams:
        if stream is None:
            continue
        try:
            columns = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError):
            continue
        if columns > 0:
            return columns
    return None


def shows_unicode(stream: TextIO | None) -> bool:
    """Return whether `stream` can encode more than ASCII."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return encoding.lower().replace("_", "-").startswith("utf")


StyleOf = Callable[[str], ToolStyleConfig]
"""Return the style of calls of the tool with this name."""

_USUAL = ToolStyleConfig()


def usual_style(name: str) -> ToolStyleConfig:
    """Return the style of tools without settings."""
    del name
    return _USUAL


def check_code_theme(name: str) -> None:
    """Check that `name` is a theme for code.

    Raises:
        ConfigurationError: it is not one.
    """
    if name.startswith(OWN_CODE_THEME):
        return
    styles: Any = import_module("pygments.styles")
    names: list[str] = sorted(styles.get_all_styles())
    if name not in names:
        message = f"{name!r} is no theme for code"
        raise ConfigurationError(message, hint=f"set style.code.theme to 'ansi' or one of: {', '.join(names)}")


def styled(text: str, style: str) -> str:
    """Return `text` in the style with these SGR parameters; an empty style is none."""
    return f"\x1b[{style}m{text}\x1b[0m" if style else text
