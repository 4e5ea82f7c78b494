"""One TOML file, read; and where in it an error lies."""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jp.config.invalid import InvalidValueError
from jp.config.merge import MapChange
from jp.config.partial import read_partial
from jp.config.scan import load_toml, place_of
from jp.config.schema import FILE
from jp.errors import ConfigurationError
from jp.reading import read_beginning

_LARGEST = 1024 * 1024
_LONGEST_QUOTE = 80
# Compiled where they are used: a file without an error needs none of them.
_POSITION = r"\s*\(at line (\d+), column (\d+)\)$"
_REMEDIES: Mapping[type[OSError], str] = {
    PermissionError: "Check its permissions with `ls -l`.",
    IsADirectoryError: "A configuration is a file: move the directory away.",
}
_END = r"\s*\(at end of document\)$"


class InvalidFileError(ConfigurationError):
    """A configuration file could not be read, or is no TOML."""


def is_file(path: Path) -> bool:
    """Whether there is a file, or a pipe, that may be read; directories that cannot be looked into have none."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def read_text(path: Path) -> str | None:
    """The text of a file, or None where there is none.

    Raises:
        InvalidFileError: it cannot be read, is too large for a configuration, or no UTF-8.
    """
    try:
        data = read_beginning(path, _LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        msg = f"{str(path)!r} cannot be read: {error.strerror}"
        raise InvalidFileError(msg, hint=_REMEDIES.get(type(error), "")) from None
    if len(data) > _LARGEST:
        msg = f"{str(path)!r} is larger than {_LARGEST} bytes"
        raise InvalidFileError(msg, hint="No configuration is that long: is it the right file?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = len(data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode()) + 1
        msg = f"{str(path)!r}, line {line}, column {column}: the file is no UTF-8"
        raise InvalidFileError(msg, hint="Convert it first: `iconv -f latin1 -t utf-8`.") from None


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """The data of a file.

    Raises:
        InvalidFileError: it is no TOML; names line and column, and quotes the line.
    """
    import tomllib

    try:
        return load_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise _malformed(text, path, str(error)) from None
    except RecursionError:
        msg = f"{str(path)!r} is nested too deeply"
        raise InvalidFileError(msg, hint="Take out what stands in so many brackets.") from None


def _malformed(text: str, path: Path, problem: str) -> InvalidFileError:
    lines = text.split("\n")
    match = re.search(_POSITION, problem)
    line, column = (int(match[1]), int(match[2])) if match is not None else (len(lines), len(lines[-1]) + 1)
    what = re.sub(_END, " before the file's end", re.sub(_POSITION, "", problem))
    quoted = lines[min(line, len(lines)) - 1].strip()[:_LONGEST_QUOTE]
    return InvalidFileError(
        f"{str(path)!r}, line {line}, column {column}: {what[:1].lower()}{what[1:]}: {quoted!r}",
        hint='Texts stand in quotes, and every key has a value: `key = "value"`.',
    )


def checked(text: str, path: Path) -> MapChange:
    """What a file with this text asks for, `inherit` and `extends` included.

    Raises:
        ConfigurationError: it is malformed, has an unknown key, or a key with a value of another kind.
    """
    try:
        return read_partial(parse_toml(text, path), FILE)
    except InvalidValueError as error:
        place = place_of(text, error.path, of_value=not error.of_key)
        raise error.within(f"{str(path)!r}" if place is None else f"{str(path)!r}, {place}") from None
