"""`--cfg NAME`: which files a name means."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from jp.config.assignment import FragmentName
from jp.config.extends import expanded, is_inside, load_group
from jp.config.keys import parse_key
from jp.config.layers import Layer
from jp.config.places import FRAGMENTS, WORKSPACE_DIRECTORY, Places
from jp.config.schema import APP, known_keys
from jp.config.toml import is_file
from jp.errors import ConfigurationError

_SUFFIX = ".toml"


def fragment_layers(fragment: FragmentName, places: Places, load_paths: Sequence[str]) -> list[Layer]:
    """The layers of a named fragment, the least specific first.

    A file relative to the current directory wins. Otherwise each of the user's directory, the workspace and the user's
    directory for this workspace may have one: the first that is found below its `load_paths`, then in its own
    directory for fragments.

    Raises:
        ConfigurationError: nothing has this name, or a file is invalid.
    """
    searched: list[Path] = []
    here = _first(_here(fragment, places), searched)
    found = [here] if here is not None else []
    if here is None and not fragment.forced:
        for paths in _by_root(fragment.name, places, load_paths):
            match = _first(paths, searched)
            if match is not None and not any(match.samefile(other) for other in found):
                found.append(match)
    if not found:
        raise _not_found(fragment.name, searched)
    return [layer for path in found for layer in _layers(path, places)]


def _here(fragment: FragmentName, places: Places) -> Iterator[Path]:
    base = places.cwd / expanded(fragment.name)
    if fragment.forced or base.suffix == _SUFFIX:
        yield base
    if base.suffix != _SUFFIX and fragment.name and base.name:
        yield base.with_name(base.name + _SUFFIX)


def _by_root(name: str, places: Places, load_paths: Sequence[str]) -> Iterator[list[Path]]:
    file = name if name.endswith(_SUFFIX) else name + _SUFFIX
    roots = (
        (None if places.user is None else places.user / FRAGMENTS, "."),
        (places.root, f"{WORKSPACE_DIRECTORY}/{FRAGMENTS}"),
        (None if places.user_workspace is None else places.user_workspace / FRAGMENTS, "."),
    )
    for root, own in roots:
        if root is not None:
            yield [root / expanded(directory) / file for directory in (*load_paths, own)]


def _first(paths: Sequence[Path] | Iterator[Path], searched: list[Path]) -> Path | None:
    for path in paths:
        if path not in searched:
            searched.append(path)
        if is_file(path):
            return path
    return None


def _layers(path: Path, places: Places) -> tuple[Layer, ...]:
    foreign = _is_in_workspace(path, places) and not _is_own(path, places)
    group = load_group(path, kind="cfg", root=places.root, foreign=foreign)
    return () if group is None else group.layers


def _is_in_workspace(path: Path, places: Places) -> bool:
    if places.root is None:
        return False
    # A link in the workspace is the workspace's, wherever it leads.
    return Path(os.path.normpath(path)).is_relative_to(places.root) or is_inside(path, places.root)


def _is_own(path: Path, places: Places) -> bool:
    own = (places.user, places.user_workspace)
    return any(directory is not None and is_inside(path, directory) for directory in own)


def _not_found(name: str, searched: Sequence[Path]) -> ConfigurationError:
    places = ", ".join(os.fspath(path) for path in searched)
    hint = f"Searched: {places}."
    if _is_key(name):
        hint = f"To set that key, write `{name}=VALUE`."
    return ConfigurationError(f"no configuration is called {name!r}", hint=hint)


def _is_key(name: str) -> bool:
    try:
        path = parse_key(name)
    except ConfigurationError:
        return False
    return any(known[: len(path)] == path for known, _ in known_keys(APP))
