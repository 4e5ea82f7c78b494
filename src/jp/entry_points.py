"""Entry points of other packages, found once and then cached in a file.

Reading the metadata of every installed package takes longer than all other work before a request. The cache is valid
until a directory on `sys.path` changes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from jp.file_access import read_beginning

_LARGEST = 16 * 1024 * 1024


class _Cache(msgspec.Struct, frozen=True, kw_only=True):
    """The cache file. `directories` are those of `sys.path`, with their modification times in nanoseconds."""

    directories: tuple[tuple[str, int], ...]
    entries: dict[str, str]


def entries_of(group: str, cache: Path | None) -> dict[str, str]:
    """Return the entry points of a group: a value such as `package.module:Handler` for each name.

    Of two entry points with one name, the first by its value is used. `cache` is a file that may be missing or not
    writable; every call searches again then.
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
        # The next run searches again.
        with suppress(OSError):
            temporary.unlink()


def load_entry(value: str) -> object:
    """Return the object that an entry point names. The import runs the package's code, which may raise anything."""
    module, _, path = value.partition("[")[0].strip().partition(":")
    # Unlike `import_module`, this import is recorded by `python -X importtime`.
    __import__(module.strip())
    found: object = sys.modules[module.strip()]
    for name in path.strip().split("."):
        found = getattr(found, name)
    return found


def package_of(group: str, name: str, value: str) -> str:
    """Return an entry point and its package as text, for an error message."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=group):
        if entry.name.lower() == name and entry.value == value and entry.dist is not None:
            return f"{value!r} of the package {entry.dist.name!r}"
    return repr(value)
