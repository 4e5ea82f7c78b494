"""The appearance of output, from the command line and the configuration."""

from __future__ import annotations

import os
import sys

from jp.cli.options import GlobalOptions
from jp.config.model import StyleConfig
from jp.render.stream import Streams
from jp.render.theme import Look, Preferences, columns_of, display_width, look_at


def standard_streams() -> Streams:
    """Return the standard streams of this process."""
    return Streams(out=sys.stdout, err=sys.stderr, environment=os.environ)


def preferences(options: GlobalOptions, style: StyleConfig) -> Preferences:
    """Return the user's preferences for color, width and code."""
    return Preferences(
        color=options.color, width=options.width, wrap=style.markdown.wrap_width, code_theme=style.code.theme
    )


def check_theme(options: GlobalOptions, style: StyleConfig) -> None:
    """Refuse a theme for code that does not exist, where code is going to be colored.

    Raises:
        ConfigurationError: it does not exist.
    """
    if options.format == "pretty":
        from jp.render.theme import check_code_theme

        check_code_theme(style.code.theme)


def look_of_stdout(options: GlobalOptions, style: StyleConfig) -> Look:
    """Return the appearance of text on stdout.

    Raises:
        ConfigurationError: the theme for code does not exist.
    """
    check_theme(options, style)
    return look_at(sys.stdout, preferences(options, style), os.environ, siblings=[sys.stderr])


def width_of_stdout(options: GlobalOptions) -> int | None:
    """Return the width of a table on stdout, None if nothing is cut: in a pipe or a file."""
    if options.format == "text":
        return None
    return display_width(options.width, os.environ, columns=columns_of(sys.stdout, sys.stderr))
