"""The result of a command, which goes to stdout once.

Nothing here decides on color or width: that is `jp.render.theme`.
"""

from __future__ import annotations

import sys
from typing import Any

from jp.cli.options import GlobalOptions
from jp.cli.terminal.streams import SCHEMA, json_text, write_stdout


def print_result(options: GlobalOptions, *, text: str, value: dict[str, Any], nothing: str = "") -> None:
    """Print the result of a command: `text`, or with `--format json` the one JSON object `value` and its `schema`.

    An empty text prints nothing, and `nothing` is what a person is told then, on stderr. A text that lacks its last
    newline gets it. What goes to a terminal cannot steer it.

    Raises:
        JpError: stdout takes no more, for another reason than that its reader has left.
    """
    if options.format == "json":
        write_stdout(f"{json_text({'schema': SCHEMA, **value})}\n")
        return
    if options.format == "pretty" or sys.stdout.isatty():
        from jp.render.sanitize import sanitize

        text = sanitize(text)
    if text:
        write_stdout(text if text.endswith("\n") else f"{text}\n")
    elif nothing:
        options.notice(nothing)
