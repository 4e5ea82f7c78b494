"""Print results, in the appearance that the command line and the configuration ask for."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from jp.cli.options import GlobalOptions
from jp.cli.terminal.streams import SCHEMA, json_text, write_stdout
from jp.config.model import StyleConfig
from jp.render.stream import Streams
from jp.render.theme import Look, Preferences, columns_of, display_width, is_live, look_at

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import PurePath

    from jp.render.tables import Result


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


def is_drawn(options: GlobalOptions) -> bool:
    """Return whether results are drawn for a person: on a terminal that can show more than plain lines."""
    return options.format == "pretty" and is_live(sys.stdout, os.environ)


def print_result(
    options: GlobalOptions,
    *,
    text: Result,
    value: dict[str, Any],
    nothing: str = "",
    paths: Mapping[str, PurePath] | None = None,
) -> None:
    """Print the result of a command: `text`, or with `--format json` the one JSON object `value` and its `schema`.

    An empty text prints nothing, and `nothing` is what a person is told then, on stderr. A text that lacks its last
    newline gets it. What goes to a terminal cannot steer it. There, web addresses are links, and so are the words of
    `paths`, each to its absolute path.

    Raises:
        JpError: stdout takes no more, for another reason than that its reader has left.
    """
    if options.format == "json":
        write_stdout(f"{json_text({'schema': SCHEMA, **value})}\n")
        return
    written = _written(options, text)
    if written:
        from jp.cli.terminal.pager import write_paged

        if paths and look_of_stdout(options, StyleConfig()).links:
            from jp.render.sanitize import link_words

            written = link_words(written, {word: str(path) for word, path in paths.items()})
        write_paged(written if written.endswith("\n") else f"{written}\n")
    elif nothing:
        options.notice(nothing)


def _written(options: GlobalOptions, text: Result) -> str:
    """Return a result as text: drawn on a terminal, else plain."""
    from jp.cli.terminal.wording import worded
    from jp.render.sanitize import link_addresses
    from jp.render.tables import draw, plain_text

    text = text if isinstance(text, str) else [worded(part) if isinstance(part, str) else part for part in text]
    is_live_there = is_drawn(options)
    if not isinstance(text, str) and is_live_there:
        return draw(text, look_of_stdout(options, StyleConfig()))
    is_shown = options.format == "pretty" or sys.stdout.isatty()
    plain = plain_text(text, width=width_of_stdout(options), is_shown=is_shown)
    return link_addresses(plain) if is_live_there and look_of_stdout(options, StyleConfig()).links else plain
