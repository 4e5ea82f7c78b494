"""A file with the files that it builds on, in the order in which they are merged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from jp.config.layers import Layer, LayerKind, Origin
from jp.config.merge import MapChange, applied
from jp.config.scan import place_of
from jp.config.toml import InvalidFileError, checked, is_file, read_text
from jp.errors import ConfigurationError

_MOST_FILES = 255
_WILDCARDS = frozenset("*?[")

Strategy = Literal["before", "after"]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The layers of one file; `inherit` is false where it, or a file that it builds on, ends the merging of files."""

    layers: tuple[Layer, ...]
    inherit: bool


def load_group(path: Path, *, kind: LayerKind, root: Path | None, foreign: bool) -> Group | None:
    """Read a file and what it extends; None where there is no such file. A file counts once in a group.

    `root` is the workspace's. In a `foreign` file patterns may not leave it, and what does is kept in `reaches`.

    Raises:
        ConfigurationError: a file cannot be read or is invalid, is missing, extends itself, or they are too many.
    """
    reader = _Reader(kind, root, foreign=foreign)
    layers = reader.load(path, ())
    return None if layers is None else Group(layers=tuple(layers), inherit=reader.inherit)


def expanded(path: str) -> Path:
    """The path, with a `~` that can be resolved as the home directory."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def is_inside(path: Path, root: Path) -> bool:
    """Whether a path lies below `root` (or is it), links followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


class _Naming(msgspec.Struct, frozen=True):
    """The element of `extends` that names a file or a pattern."""

    path: Path
    text: str
    index: int

    def __str__(self) -> str:
        """The file, and where in it, as errors begin."""
        place = place_of(self.text, ("extends", str(self.index)))
        return f"{str(self.path)!r}" if place is None else f"{str(self.path)!r}, {place}"


def _named_by(chain: tuple[str, ...], error: ConfigurationError) -> ConfigurationError:
    """The error of a file, with the files by way of which it was reached."""
    if not chain:
        return error
    by = ", which is extended by ".join(repr(path) for path in reversed(chain))
    error.message = f"{error.message} (extended by {by})"
    return error


def _circular(naming: _Naming, pattern: str, target: Path, chain: tuple[str, ...]) -> InvalidFileError:
    real = os.path.realpath(target)
    ring = (*chain[chain.index(real) :], real)
    msg = f"{naming} extends {pattern!r}, so {str(target)!r} extends itself"
    return InvalidFileError(msg, hint=f"Take it out. By way of: {', '.join(ring)}.")


class _Reader:
    def __init__(self, kind: LayerKind, root: Path | None, *, foreign: bool) -> None:
        self._kind: LayerKind = kind
        self._root = root
        self._foreign = foreign
        self._seen: set[str] = set()
        self.inherit = True

    def load(self, path: Path, chain: tuple[str, ...]) -> list[Layer] | None:
        real = os.path.realpath(path)
        if real in self._seen:
            return []
        if len(self._seen) >= _MOST_FILES:
            msg = f"{chain[0]!r} extends more than {_MOST_FILES} files"
            raise InvalidFileError(msg, hint="Narrow the patterns in `extends`.")
        self._seen.add(real)
        try:
            text = read_text(path)
            change = None if text is None else checked(text, path)
        except ConfigurationError as error:
            raise _named_by(chain, error) from None
        if text is None or change is None:
            return None
        return self._with_extensions(path, text, change, (*chain, real))

    def _with_extensions(self, path: Path, text: str, change: MapChange, chain: tuple[str, ...]) -> list[Layer]:
        entries = dict(change.entries)
        directives = applied(MapChange({name: entries.pop(name) for name in ("inherit", "extends") if name in entries}))
        self.inherit = self.inherit and bool(directives.get("inherit", True))
        around: dict[Strategy, list[Layer]] = {"before": [], "after": []}
        reaches: list[str] = []
        for index, entry in enumerate(directives.get("extends", ())):
            pattern, strategy = _extension(entry)
            for target, layers in self._extended(pattern, _Naming(path, text, index), chain):
                around[strategy] += layers
                if self._leaves(target):
                    reaches.append(os.path.realpath(target))
        own = Layer(
            origin=Origin(kind=self._kind, where=str(path)),
            change=MapChange(entries),
            source=text,
            foreign=self._foreign,
            reaches=tuple(reaches),
            reached=chain[-1] if self._leaves(path) else "",
        )
        return [*around["before"], own, *around["after"]]

    def _leaves(self, path: Path) -> bool:
        """Whether a stranger's file pulls in one that lies outside the workspace."""
        return self._foreign and self._root is not None and not is_inside(path, self._root)

    def _extended(self, pattern: str, naming: _Naming, chain: tuple[str, ...]) -> Iterator[tuple[Path, list[Layer]]]:
        """The files that a pattern means, each with its layers."""
        try:
            targets = list(self._targets(pattern, naming))
        except InvalidFileError as error:
            raise _named_by(chain[:-1], error) from None
        for target in targets:
            if os.path.realpath(target) in chain:
                raise _circular(naming, pattern, target, chain)
            layers = self.load(target, chain)
            if layers is None:
                error = InvalidFileError(
                    f"{naming} extends {pattern!r}, which does not exist",
                    hint=f"There is no {str(target)!r}: create it, or take it out.",
                )
                raise _named_by(chain[:-1], error)
            yield target, layers

    def _targets(self, pattern: str, naming: _Naming) -> Iterator[Path]:
        path = naming.path
        if "\0" in pattern:
            msg = f"{naming} extends {pattern!r}, which is no path"
            raise InvalidFileError(msg, hint="Take the NUL character out of it.")
        parts = expanded(pattern).parts
        literal = next((index for index, part in enumerate(parts) if _WILDCARDS & set(part)), len(parts))
        base = path.parent.joinpath(*parts[:literal])
        if literal == len(parts):
            if base.suffix != ".toml":
                msg = f"{naming} extends {pattern!r}, which is no TOML file"
                raise InvalidFileError(
                    msg, hint="Name a file that ends in '.toml', or a pattern such as 'skill/*.toml'."
                )
            yield base
            return
        if self._leaves(base):
            msg = f"{naming} extends {pattern!r}: a pattern may not leave the workspace"
            raise InvalidFileError(msg, hint="Name the files one by one.")
        yield from self._matches(base, parts[literal:], naming)

    def _matches(self, base: Path, parts: tuple[str, ...], naming: _Naming) -> list[Path]:
        if any("**" in part and part != "**" for part in parts):  # Python 3.13 would read it as '*'
            msg = f"{naming} extends {'/'.join(parts)!r}: '**' must be a whole name between slashes"
            raise InvalidFileError(msg, hint="A pattern looks like 'skill/*.toml'.")
        found = [match for match in base.glob("/".join(parts)) if match.suffix == ".toml" and is_file(match)]
        return sorted(match for match in found if not _is_hidden(match, base) and not match.samefile(naming.path))


def _is_hidden(match: Path, base: Path) -> bool:
    return any(part.startswith(".") for part in match.relative_to(base).parts)


def _extension(entry: Any) -> tuple[str, Strategy]:
    if isinstance(entry, str):
        return entry, "before"
    return entry["path"], entry.get("strategy", "before")
