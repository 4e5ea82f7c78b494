"""Schemes that other packages add, by entry point; found once, then remembered in a file.

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
from typing import cast

import msgspec

from jp.attachment.base import AttachmentError, AttachmentHandler

GROUP = "jp.attachments"
"""The entry point group. The name of an entry is its scheme, its value a callable that gives a handler."""

_REMEDY = "Update or uninstall the package that provides it."
_CACHE_NAME = "attachment-schemes.json"


class _Cache(msgspec.Struct, frozen=True, kw_only=True):
    """`directories` are those of `sys.path` and when they changed, in nanoseconds."""

    directories: tuple[tuple[str, int], ...]
    schemes: dict[str, str]


def third_party_schemes(cache_directory: Path | None) -> dict[str, str]:
    """The entry points of other packages: a value such as `package.module:Handler` for each scheme.

    `cache_directory` may be missing or not writable: then every call looks anew.
    """
    directories = tuple(_changes(sys.path))
    if cache_directory is None:
        return _installed()
    path = cache_directory / _CACHE_NAME
    cache = _read(path)
    if cache is None or cache.directories != directories:
        cache = _Cache(directories=directories, schemes=_installed())
        _write(path, cache)
    return cache.schemes


def _changes(paths: Iterable[str]) -> Iterable[tuple[str, int]]:
    for path in paths:
        try:
            yield path, os.stat(path or ".").st_mtime_ns  # noqa: PTH116  sys.path is text
        except OSError:
            continue


def _installed() -> dict[str, str]:
    from importlib.metadata import entry_points

    found = sorted((entry.name.lower(), entry.value) for entry in entry_points(group=GROUP))
    return dict(reversed(found))


def _read(path: Path) -> _Cache | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Cache)
    except (OSError, msgspec.DecodeError):
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


def load(scheme: str, value: str) -> AttachmentHandler:
    """Import the handler that an entry point names.

    Raises:
        AttachmentError: it cannot be imported, or is no handler.
    """
    module, _, path = value.partition("[")[0].strip().partition(":")
    try:
        found: object = import_module(module.strip())
        for name in path.strip().split("."):
            found = getattr(found, name)
        handler = found() if callable(found) else found
    except (Exception, SystemExit) as error:
        message = f"the attachment scheme {scheme!r} comes from {_source(scheme, value)}, which failed to load: {error}"
        raise AttachmentError(message, hint=_REMEDY) from error
    if not (callable(getattr(handler, "canonical", None)) and callable(getattr(handler, "resolve", None))):
        message = f"the attachment scheme {scheme!r} comes from {_source(scheme, value)}, which is not a handler"
        raise AttachmentError(message, hint=_REMEDY)

    from jp.attachment.guard import Guarded

    return Guarded(cast("AttachmentHandler", handler), scheme, lambda: _source(scheme, value))


def _source(scheme: str, value: str) -> str:
    """The entry point's value and the package that it comes from. Only looked for when something is wrong."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        if entry.name.lower() == scheme and entry.value == value and entry.dist is not None:
            return f"{value!r} of the package {entry.dist.name!r}"
    return repr(value)
