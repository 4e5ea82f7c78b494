"""The typed words of a query, of which `@path` stands for the text of a file."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec

from jp.cli.stdin import MOST_BYTES, decode
from jp.errors import UsageError

_MARK = "@"
_STDIN = "-"


class Part(msgspec.Struct, frozen=True):
    """A part of what was typed: its first line there, counted from 1, and the file that it is of, empty for words."""

    line: int
    file: str


class Typed(msgspec.Struct, frozen=True):
    """What was typed, and of what it is made, in its order."""

    text: str
    parts: tuple[Part, ...]


async def typed_text(words: Sequence[str]) -> Typed:
    """What was typed. A word `@path` becomes a paragraph with the file's text, `@@x` is the word `@x`.

    A word that is only `@`, or that has white space in it, stays as it is; `-`, which asks for standard input, is left
    out.

    Raises:
        UsageError: a file cannot be read, is too large, or is no text.
    """
    paragraphs: list[tuple[str, str]] = []
    run: list[str] = []
    for word in words:
        if _names_file(word):
            paragraphs += [(" ".join(run), ""), (await _text_of(word[1:]), word[1:])]
            run = []
        elif word != _STDIN:
            run.append(word[1:] if _is_word(word) and word.startswith(_MARK * 2) else word)
    said = [(text, file) for text, file in (*paragraphs, (" ".join(run), "")) if text.strip()]
    parts: list[Part] = []
    line = 1
    for text, file in said:
        parts.append(Part(line, file))
        line += text.count("\n") + 2
    return Typed("\n\n".join(text for text, _ in said), tuple(parts))


def files_among(words: Sequence[str]) -> list[str]:
    """Those of the words that are paths of files, as they stand behind `--attach *.py` once a shell has expanded it."""
    return [word for word in words if _is_word(word) and os.path.isfile(word)]  # noqa: PTH113 - False for any text


def _is_word(text: str) -> bool:
    return not any(character.isspace() for character in text)


def _names_file(word: str) -> bool:
    return word.startswith(_MARK) and word != _MARK and not word.startswith(_MARK * 2) and _is_word(word)


async def _text_of(name: str) -> str:
    try:
        path, mode = _found(name)
        content = _read(path) if stat.S_ISREG(mode) else await _read_slowly(name, path, mode)
    except (OSError, ValueError, RuntimeError) as error:
        raise _unreadable(name, error) from None
    if len(content) > MOST_BYTES:
        raise UsageError(
            f"the file {name!r} has more than {MOST_BYTES:,} bytes", hint="attach a part of it, or ask about less"
        )
    text = decode(content)
    if text.is_damaged or "\0" in text.text:
        raise UsageError(f"the file {name!r} is no text", hint=f"attach it: `jp query --attach {name} …`")
    return text.text


def _found(name: str) -> tuple[Path, int]:
    path = Path(name).expanduser()
    return path, path.stat().st_mode


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        chunks: list[bytes] = []
        room = MOST_BYTES + 1
        while room and (chunk := os.read(descriptor, min(room, 1 << 20))):
            chunks.append(chunk)
            room -= len(chunk)
        return b"".join(chunks)
    finally:
        os.close(descriptor)


async def _read_slowly(name: str, path: Path, mode: int) -> bytes:
    """Read what may have to be waited for, such as the pipe of a shell's `<(command)`."""
    from anyio.to_thread import run_sync

    if stat.S_ISDIR(mode):
        raise UsageError(f"{name!r} is a directory", hint=f"attach what is in it: `jp query --attach {name} …`")
    return await run_sync(_read, path, abandon_on_cancel=True)


def _unreadable(name: str, error: Exception) -> UsageError:
    reason = (isinstance(error, OSError) and error.strerror) or str(error)
    literal = f"{_MARK * 2}{name} is the word itself"
    near = _near_names(name) if isinstance(error, FileNotFoundError) else []
    hint = f"did you mean {' or '.join(f'{_MARK}{other}' for other in near)}? {literal}" if near else literal
    return UsageError(f"cannot read the file {name!r}: {reason}", hint=hint)


def _near_names(name: str) -> list[str]:
    """Files in the same directory whose names are like this one's, written as it is."""
    from jp.likeness import nearest

    directory, slash, base = name.rpartition("/")
    try:
        names = [path.name for path in Path(directory + slash or ".").expanduser().iterdir()]
    except (OSError, RuntimeError):
        return []
    return [f"{directory}{slash}{near}" for near in nearest(base, names, most=3)]
