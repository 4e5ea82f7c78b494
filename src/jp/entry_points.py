"""What other packages add by entry point; found once, then remembered in a file.

Looking through the metadata of every installed package takes longer than everything else that a query does before
it is sent. What was found holds as long as no directory from which Python imports has changed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import msgspec

from jp.file_access import read_beginning

_LARGEST = 16 * 1024 * 1024


class _Cache(msgspec.Struct, frozen=True, kw_only=True):
    """`directories` are those of `sys.path` and when they changed, in nanoseconds."""

    directories: tuple[tuple[str, int], ...]
    entries: dict[str, str]


def entries_of(group: str, cache: Path | None) -> dict[str, str]:
    """The entry points of a group: for each name a value such as `package.module:Handler`.

    Of two with one name the first by its value counts. `cache` is a file that may be missing or not writable: then
    every call looks anew.
    """
    directories = tuple(_changes(sys.path))
    if cache is None:
        return _installed(group)
    known = _read(cache)
    if known is None or known.directories != directories:
        known = _Cache(directories=directories, entries=_installed(group))
        _write(cache, known)
    return known.entries


def _changes(paths: Iterable[str]) -> Iterable[tuple[str, int]]:
    for path in paths:
        try:
            yield path, os.stat(path or ".").st_mtime_ns  # noqa: PTH116  sys.path is text
        except OSError:
            continue


def _installed(group: str) -> dict[str, str]:
    from importlib.metadata import entry_points

    found = sorted((entry.name, entry.value) for entry in entry_points(group=group))
    return dict(reversed(found))


def _read(path: Path) -> _Cache | None:
    try:
        return msgspec.json.decode(read_beginning(path, _LARGEST), type=_Cache)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def _write(path: Path, cache: _Cache) -> None:
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(msgspec.json.encode(cache))
        temporary.replace(path)
    except OSError:
        # The next run looks anew.
        with suppress(OSError):
            temporary.unlink()


def load_entry(value: str) -> object:
    """The object that an entry point's value names. Importing it runs the package's code, which may raise anything."""
    module, _, path = value.partition("[")[0].strip().partition(":")
    found: object = import_module(module.strip())
    for name in path.strip().split("."):
        found = getattr(found, name)
    return found


def package_of(group: str, name: str, value: str) -> str:
    """An entry point in words, with the package that it comes from. Only looked for when something is wrong."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=group):
        if entry.name.lower() == name and entry.value == value and entry.dist is not None:
            return f"{value!r} of the package {entry.dist.name!r}"
    return repr(value)
