"""Formatting configuration files: which, and writing those that change."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from jp.config.extends import is_inside, load_group
from jp.config.format import UnformattableError, formatted
from jp.config.places import Places, candidates
from jp.config.toml import InvalidFileError, checked, is_file, read_text
from jp.config.writing import exclusive, replace_file


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """A file, and whether it has the one layout."""

    path: Path
    is_formatted: bool


def files_read(places: Places) -> tuple[list[Path], list[Path]]:
    """The files that are read, those that they extend included, and of these the ones that lie elsewhere.

    Elsewhere is outside the workspace and the user's own directories.

    Raises:
        ConfigurationError: a file cannot be read or is invalid.
    """
    found: dict[str, Path] = {}
    for candidate in candidates(places):
        group = load_group(candidate.path, kind=candidate.kind, root=places.root, foreign=candidate.foreign)
        for layer in () if group is None else group.layers:
            found.setdefault(os.path.realpath(layer.origin.where), Path(layer.origin.where))
    homes = [home for home in (places.root, places.user, places.user_workspace) if home is not None]
    inside = [path for path in found.values() if any(is_inside(path, home) for home in homes)]
    return inside, [path for path in found.values() if path not in inside]


def format_files(paths: Sequence[Path], *, write: bool, report: Callable[[Layout], None]) -> None:
    """Format files; without `write` only look. Nothing is written where one of them is invalid.

    `report` hears of each file, as soon as it has the layout.

    Raises:
        ConfigurationError: a file is missing, invalid, or written in a way that cannot be formatted.
        StorageError: one could not be written.
    """
    layouts = [Layout(path=path, is_formatted=_formatted(path)[0]) for path in paths]
    for layout in layouts:
        if write and not layout.is_formatted:
            _write(layout.path)
        report(layout)


def _write(path: Path) -> None:
    with exclusive(path.parent):
        is_formatted, text = _formatted(path)
        if not is_formatted:
            replace_file(path, text)


def _formatted(path: Path) -> tuple[bool, str]:
    """Whether a file has the layout, and its text in it."""
    text = read_text(path) if is_file(path) or not path.exists() else None
    if text is None:
        message = f"{str(path)!r} is no file" if path.exists() else f"there is no file {str(path)!r}"
        raise InvalidFileError(message, hint="`jp config path` prints which files are read.")
    checked(text, path)
    try:
        new = formatted(text)
    except UnformattableError as error:
        raise UnformattableError(f"{str(path)!r}: {error.message}", hint=error.hint) from None
    return new == text, new
