"""The arguments of a tool that is run by hand."""

from __future__ import annotations

from pathlib import Path

import msgspec

from jp.cli.options import GlobalOptions
from jp.cli.output import notice
from jp.conversation.entries import JsonObject
from jp.errors import UsageError, reason_of
from jp.reading import read_beginning

_FORM = 'an object such as {"path": "README.md"}'
_MOST_BYTES = 10 * 1024 * 1024


async def read_arguments(options: GlobalOptions, text: str | None) -> JsonObject:
    """What `--arguments` says: JSON, or where it lies.

    Raises:
        UsageError: it cannot be read, or is no JSON object.
    """
    if text is None:
        return {}
    if text == "-":
        from jp.cli.stdin import read_piped, stdin_source

        source = stdin_source(asked=True, refused=False)
        piped = await read_piped(source, on_idle=lambda: notice(options, "reading arguments from standard input …"))
        return _object("" if piped is None else piped.text)
    return _object(_content(text[1:]) if text.startswith("@") else text)


def _content(name: str) -> str:
    path = Path(name).expanduser()
    try:
        data = read_beginning(path, _MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UsageError(f"{str(path)!r} has more than {_MOST_BYTES:,} bytes", hint=f"arguments are {_FORM}")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(
            f"the arguments {str(path)!r} cannot be read: {error.strerror or error}",
            hint="a path is relative to the current directory",
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is not UTF-8: byte {error.start:,} does not fit", hint=_FORM) from None


def _object(text: str) -> JsonObject:
    try:
        return msgspec.json.decode(text, type=JsonObject)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UsageError(f"the arguments are no JSON object: {reason_of(error)}", hint=f"write {_FORM}") from None
