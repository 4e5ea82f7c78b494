"""What a command says: its result on stdout, once; everything about getting there on stderr.

Nothing here decides on color or width: that is `jp.render.theme`.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import msgspec

from jp.cli.options import GlobalOptions
from jp.cli.streams import write_stderr, write_stdout

SCHEMA = 1
"""The version of everything that is printed as JSON. Fields are only added within a version."""


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
        notice(options, nothing)


def json_text(value: object) -> str:
    """`value` as JSON. What of a file's name is not UTF-8 is replaced: JSON has no way to say it."""
    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode("utf-8")
    except UnicodeEncodeError:
        return msgspec.json.encode(_readable(msgspec.to_builtins(value, enc_hook=_plain))).decode("utf-8")


def _readable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        case dict():
            return {_readable(name): _readable(below) for name, below in cast("dict[str, Any]", value).items()}
        case list():
            return [_readable(item) for item in cast("list[Any]", value)]
        case _:
            return value


def _plain(value: object) -> str:
    """A text of a type of its own, such as an id, as the text that it is.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    return str(value)


def notice(options: GlobalOptions, text: str) -> None:
    """Say something that the user may want to know, on stderr, unless `--quiet`."""
    if not options.quiet:
        _to_stderr(options, "note", text)


def log(options: GlobalOptions, text: str, *, level: int = 1) -> None:
    """Say how things are done, on stderr, where `-v` was given at least `level` times.

    Secrets are replaced: those in the environment, and what looks like one.
    """
    if options.verbosity >= level:
        _to_stderr(options, "log", text)


def _to_stderr(options: GlobalOptions, kind: str, text: str) -> None:
    from jp.context.redaction import redact

    text = redact(text).text
    if options.format == "json":
        write_stderr(json_text({"schema": SCHEMA, kind: text}) + "\n")
    else:
        write_stderr(f"{kind}: {text}\n")
