"""Which file somebody may have meant whose path leads to nothing."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path

from jp.attachment.base import ResolveContext
from jp.attachment.files.location import parts_below
from jp.attachment.files.names import joined
from jp.attachment.likeness import alikeness
from jp.likeness import ALIKE

_NAMES_COMPARED = 5_000
_NAMES_WALKED = 5_000
_MOST = 2


def proposals(path: str, context: ResolveContext) -> list[Path]:
    """At most two paths for `path`, which names nothing, the likeliest first; none where nothing is like it.

    A name that differs in case only comes before just this name elsewhere in the root, and that before a name with a
    typing error. Few names are looked at.
    """
    place = first_missing(path)
    names = _names(place.parent)
    certain = [place.parent / name for name in names if name.casefold() == place.name.casefold()]
    certain += [found for found in _elsewhere(path, place.parent, context) if found not in certain]
    if certain:
        return certain[:_MOST]
    scores = [(alikeness(place.name, name), name) for name in names]
    likeliest = max(scores, default=(0.0, ""), key=lambda scored: scored[0])
    return [place.parent / likeliest[1]] if likeliest[0] >= ALIKE else []


def first_missing(path: str) -> Path:
    """Where `path` leads to nothing first: in a directory that is there."""
    place = Path(path)
    while not place.parent.is_dir():
        place = place.parent
    return place


def _names(directory: Path) -> Sequence[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.name for entry in islice(entries, _NAMES_COMPARED))
    except OSError:
        return ()


def _elsewhere(path: str, near: Path, context: ResolveContext) -> list[Path]:
    """What has the same name in the root, that with the likest path first."""
    root = os.path.realpath(context.root)
    start = os.path.realpath(near)
    if parts_below(start, root) is None:
        return []
    name = Path(path).name
    found = [found for found in _walked((start, root)) if found.name == name]
    return sorted(set(found), key=lambda place: (-SequenceMatcher(None, path, str(place)).ratio(), str(place)))


def _walked(starts: Sequence[str]) -> Iterator[Path]:
    """What lies below some directories, level by level, up to a bound; nothing that is hidden or ignored."""
    from jp.attachment.files.ignore import IgnoreRules

    rules = IgnoreRules.around(starts[0], starts[-1])
    todo, seen, count = deque(starts), set[str](), 0
    while todo and count < _NAMES_WALKED:
        directory = todo.popleft()
        if directory in seen:
            continue
        seen.add(directory)
        for name, is_directory in _listed(directory, _NAMES_WALKED - count):
            count += 1
            if name.startswith(".") or rules.ignores(directory, name, is_directory=is_directory):
                continue
            if is_directory:
                todo.append(joined(directory, name))
            yield Path(directory, name)


def _listed(directory: str, most: int) -> list[tuple[str, bool]]:
    try:
        with os.scandir(directory) as entries:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, most)]
    except OSError:
        return []
