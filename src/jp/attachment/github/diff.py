"""A unified diff by files, and what is left out of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

import msgspec

LOCK_FILES = frozenset({
    "Cargo.lock",
    "Gemfile.lock",
    "Pipfile.lock",
    "bun.lock",
    "composer.lock",
    "deno.lock",
    "flake.lock",
    "go.sum",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pubspec.lock",
    "uv.lock",
    "yarn.lock",
})
"""What programs write and nobody reads."""

_START = re.compile(r"^diff --git ", re.MULTILINE)
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_AROUND_TWICE = len("a/ b/")
_OCTAL_DIGITS = 3


class FileDiff(msgspec.Struct, frozen=True):
    """What changed in one file. `path` is its new one, or the old one of a file that is gone."""

    path: str
    text: str

    @property
    def line_count(self) -> int:
        """How many lines say so."""
        return self.text.count("\n")


def file_diffs(text: str) -> Iterator[FileDiff]:
    """The files of what `git diff` or GitHub writes. What stands before the first is dropped."""
    starts = [match.start() for match in _START.finditer(text)]
    for start, end in pairwise([*starts, len(text)]):
        piece = text[start:end]
        yield FileDiff(path=_path(piece), text=piece)


def _path(piece: str) -> str:
    """The path of a file's piece. Where only its mode changed, or it is binary, the first line alone has it, twice."""
    first, *lines = piece.partition("\n@@ ")[0].split("\n")
    for opening, prefix in (("+++ ", "b/"), ("rename to ", ""), ("--- ", "a/")):
        names = [_unquoted(line.removeprefix(opening)) for line in lines if line.startswith(opening)]
        if names and names[0] != "/dev/null":
            return names[0].removeprefix(prefix)
    both = first.removeprefix("diff --git ")
    if both.endswith('"'):
        return _unquoted(both[both.rindex(' "') + 1 :]).removeprefix("b/")
    return both[len(both) - (len(both) - _AROUND_TWICE) // 2 :]


def _unquoted(name: str) -> str:
    """A name as git writes it: in quotes with escaped bytes where it has others than plain ones."""
    plain = name.rstrip("\t\r")
    if not plain.startswith('"'):
        return plain
    return _ESCAPE.sub(_byte, plain.strip('"').encode()).decode("utf-8", "replace")


def _byte(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    if len(escaped) == _OCTAL_DIGITS:
        return bytes([int(escaped, 8) & 0xFF])
    return _ESCAPES.get(escaped, escaped)


def reason_to_leave_out(path: str, globs: Sequence[str], *, lock_files: bool) -> str:
    """Why the file at `path` is left out; empty where it is not. With `lock_files`, these are.

    A glob without a slash is for names at any depth, one that ends in a slash for everything below a directory; in the
    others `*` stands for slashes too.
    """
    name = path.rpartition("/")[2]
    for glob in globs:
        pattern = f"{glob}*" if glob.endswith("/") else glob
        if fnmatchcase(path if "/" in pattern else name, pattern):
            return f"'exclude={glob}'"
    return "lock files are, without 'no_defaults'" if lock_files and name in LOCK_FILES else ""
