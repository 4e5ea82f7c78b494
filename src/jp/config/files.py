"""Configuration files: where they lie, what they extend, and fragments."""

from __future__ import annotations

import functools
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from jp.config.assignment import FragmentName, Refuse, raising, read_partial
from jp.config.layers import Layer, LayerKind, MapChange, Origin, UnsupportedSetting, applied
from jp.config.schema import APP, FILE, InvalidValueError, Table, known_keys, parse_key
from jp.config.toml import load_toml
from jp.errors import ConfigurationError
from jp.file_access import read_beginning

TOML = ".toml"
SUFFIXES = (TOML, ".json", ".json5", ".yaml", ".yml")
"""The endings of configuration files, of which the original JP reads all; jp writes TOML."""

FILE_NAME = "config.toml"
DIRECTORY_FILE_NAME = ".jp.toml"
WORKSPACE_DIRECTORY = ".jp"
FRAGMENTS = "config"
"""The directory for fragments, beside each `config.toml`."""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The directories that are looked in; None: there is none.

    `user` holds the user's own configuration, `root` is the workspace's root, `user_workspace` holds what the user
    keeps for this workspace outside it. The latter is found by an id in the workspace: with `is_id_known` false,
    another workspace may have brought the same id along.
    """

    cwd: Path
    user: Path | None = None
    root: Path | None = None
    user_workspace: Path | None = None
    is_id_known: bool = True


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is read if it is there."""

    kind: LayerKind
    path: Path
    foreign: bool = False
    """It comes with the workspace or by its id, so that a stranger may have chosen it."""
    others: tuple[Path, ...] = ()
    """Files in the same place with other endings."""


def candidates(places: Places) -> Iterator[Candidate]:
    """Yield the files, least specific first."""
    if places.user is not None:
        yield _candidate("user", places.user / FILE_NAME)
    if places.root is not None:
        yield _candidate("workspace", places.root / WORKSPACE_DIRECTORY / FILE_NAME, foreign=True)
        for directory in _down(places.root, places.cwd):
            yield _candidate("directory", directory / DIRECTORY_FILE_NAME, foreign=True)
    if places.user_workspace is not None:
        yield _candidate("user-workspace", places.user_workspace / FILE_NAME, foreign=not places.is_id_known)


def has_settings(directory: Path) -> bool:
    """Return whether a directory has a configuration file or fragments."""
    names = (*(FILE_NAME.removesuffix(TOML) + suffix for suffix in SUFFIXES), FRAGMENTS)
    return any(os.path.exists(directory / name) for name in names)  # noqa: PTH110 - a third of the time of `Path.exists`


def _candidate(kind: LayerKind, path: Path, *, foreign: bool = False) -> Candidate:
    """Return the file `path`, or the one that is there instead with another ending."""
    beginning = str(path).removesuffix(TOML)
    names = (beginning + suffix for suffix in SUFFIXES[1:])
    others = [Path(name) for name in names if os.path.exists(name)]  # noqa: PTH110 - a third of the time of `Path.exists`
    if others and not path.exists():
        path = others.pop(0)
    return Candidate(kind=kind, path=path, foreign=foreign, others=tuple(others))


def require_one_format(candidate: Candidate) -> None:
    """Refuse a place in which several files could be meant.

    Raises:
        InvalidFileError: there are several.
    """
    if candidate.others:
        names = " and ".join(repr(str(path)) for path in (candidate.path, *candidate.others))
        raise InvalidFileError(f"only one of {names} can count", hint="keep one of them, and move the others away")


def _down(root: Path, cwd: Path) -> Iterator[Path]:
    if not cwd.is_relative_to(root):
        root, cwd = root.resolve(), cwd.resolve()
    parts = cwd.relative_to(root).parts if cwd.is_relative_to(root) else ()
    yield root
    for count in range(1, len(parts) + 1):
        yield root.joinpath(*parts[:count])


_LARGEST = 1024 * 1024
_LONGEST_QUOTE = 80
# Compiled where they are used: a file without an error needs none of them.
_POSITION = r"\s*\(at line (\d+), column (\d+)\)$"
_REMEDIES: Mapping[type[OSError], str] = {
    PermissionError: "check its permissions with `ls -l`",
    IsADirectoryError: "a configuration is a file: move the directory away",
}
_END = r"\s*\(at end of document\)$"


class InvalidFileError(ConfigurationError):
    """A configuration file could not be read, or is not of its format."""


def is_file(path: Path) -> bool:
    """Return whether there is a file or a pipe that can be read; a directory without permission has none."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def read_text(path: Path) -> str | None:
    """Return the text of a file, or None if there is none.

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
        raise InvalidFileError(msg, hint="no configuration is that long: is it the right file?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = len(data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode()) + 1
        msg = f"{str(path)!r}, line {line}, column {column}: the file is no UTF-8"
        raise InvalidFileError(msg, hint="convert it first: `iconv -f latin1 -t utf-8`") from None


def parse(text: str, path: Path) -> dict[str, Any]:
    """Return the data of a file, whose ending says the format; without a known one it is TOML.

    Raises:
        InvalidFileError: it is not of that format; names line and column, and quotes the line.
    """
    import tomllib

    try:
        return load_toml(text) if path.suffix not in SUFFIXES[1:] else _parse_other(text, path)
    except tomllib.TOMLDecodeError as error:
        raise _malformed(text, path, str(error)) from None
    except RecursionError:
        msg = f"{str(path)!r} is nested too deeply"
        raise InvalidFileError(msg, hint="remove some of the nested brackets") from None


def _parse_other(text: str, path: Path) -> dict[str, Any]:
    from jp.config.formats import MalformedError, load

    try:
        return load(text, path.suffix)
    except MalformedError as error:
        raise _quoting(text, path, error.problem, error.line, error.column, hint=error.hint) from None


def _malformed(text: str, path: Path, problem: str) -> InvalidFileError:
    lines = text.split("\n")
    match = re.search(_POSITION, problem)
    line, column = (int(match[1]), int(match[2])) if match is not None else (len(lines), len(lines[-1]) + 1)
    what = re.sub(_END, " before the file's end", re.sub(_POSITION, "", problem))
    hint = 'strings must be quoted, and every key has a value: `key = "value"`'
    return _quoting(text, path, what, line, column, hint=hint)


def _quoting(text: str, path: Path, what: str, line: int, column: int, *, hint: str) -> InvalidFileError:
    lines = text.split("\n")
    quoted = lines[min(line, len(lines)) - 1].strip()[:_LONGEST_QUOTE]
    return InvalidFileError(
        f"{str(path)!r}, line {line}, column {column}: {what[:1].lower()}{what[1:]}: {quoted!r}", hint=hint
    )


class Spelled(msgspec.Struct, frozen=True):
    """The change that settings ask for, and what of them jp ignores or reads as something else.

    `data` are the settings in jp's spelling.
    """

    change: MapChange
    data: Mapping[str, Any]
    unsupported: tuple[UnsupportedSetting, ...] = ()


def read_spelled(raw: Mapping[str, Any], root: Table, *, refuse: Refuse = raising) -> Spelled:
    """Return the change that `raw` asks for, in jp's spelling or that of the original JP."""
    refused: list[InvalidValueError] = []
    change = read_partial(raw, root, refuse=refused.append)
    if not refused:
        return Spelled(change, raw)

    from jp.config.original import adapt

    adapted, unsupported = adapt(dict(raw), refuse=refuse)
    return Spelled(read_partial(adapted, root, refuse=refuse), adapted, unsupported)


def checked(text: str, path: Path) -> Spelled:
    """Return the change that a file with this text asks for, with `inherit` and `extends`.

    Raises:
        ConfigurationError: it is malformed, has an unknown key, or a key with a value of another kind.
    """
    try:
        return read_spelled(parse(text, path), FILE)
    except InvalidValueError as error:
        from jp.config.positions import place_of

        place = place_of(text, error.path, of_value=not error.of_key)
        raise error.within(f"{str(path)!r}" if place is None else f"{str(path)!r}, {place}") from None


_MOST_FILES = 255
_WILDCARDS = frozenset("*?[")

Strategy = Literal["before", "after"]


MISSING = "there is no such file"


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
    if _is_missing(path):
        return None
    reader = _Reader(kind, root, foreign=foreign)
    layers = reader.load(path, ())
    return None if layers is None else Group(layers=tuple(layers), inherit=reader.inherit)


def _is_missing(path: Path) -> bool:
    """Return whether nothing has this name, in a directory that can be searched."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def expanded(path: str) -> Path:
    """Return the path with `~` expanded to the home directory if there is one."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def is_inside(path: Path, root: Path) -> bool:
    """Return whether a path is `root` or lies below it, with links resolved."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


class _Naming(msgspec.Struct, frozen=True):
    """The element of `extends` that names a file or a pattern."""

    path: Path
    text: str
    index: int

    def __str__(self) -> str:
        """Return the file and the position in it, as errors begin."""
        from jp.config.positions import place_of

        place = place_of(self.text, ("extends", str(self.index)))
        return f"{str(self.path)!r}" if place is None else f"{str(self.path)!r}, {place}"


def _named_by(chain: tuple[str, ...], error: ConfigurationError) -> ConfigurationError:
    """Return the error of a file with the files that extend it."""
    if not chain:
        return error
    by = ", which is extended by ".join(repr(path) for path in reversed(chain))
    error.message = f"{error.message} (extended by {by})"
    return error


def _circular(naming: _Naming, pattern: str, target: Path, chain: tuple[str, ...]) -> InvalidFileError:
    real = os.path.realpath(target)
    ring = (*chain[chain.index(real) :], real)
    msg = f"{naming} extends {pattern!r}, so {str(target)!r} extends itself"
    return InvalidFileError(msg, hint=f"remove it; the files are {', '.join(ring)}")


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
            raise InvalidFileError(msg, hint="narrow the patterns in `extends`")
        self._seen.add(real)
        try:
            text = read_text(path)
            read = None if text is None else checked(text, path)
        except ConfigurationError as error:
            raise _named_by(chain, error) from None
        if text is None or read is None:
            return None
        return self._with_extensions(path, text, read, (*chain, real))

    def _with_extensions(self, path: Path, text: str, read: Spelled, chain: tuple[str, ...]) -> list[Layer]:
        entries = dict(read.change.entries)
        directives = applied(MapChange({name: entries.pop(name) for name in ("inherit", "extends") if name in entries}))
        self.inherit = self.inherit and bool(directives.get("inherit", True))
        around: dict[Strategy, list[Layer]] = {"before": [], "after": []}
        reaches: list[str] = []
        missing: list[UnsupportedSetting] = []
        for index, entry in enumerate(directives.get("extends", ())):
            pattern, strategy = _extension(entry)
            for target, layers in self._extended(pattern, _Naming(path, text, index), chain):
                if layers is None:
                    missing.append(UnsupportedSetting(path=("extends", str(index)), value=pattern, reading=MISSING))
                    continue
                around[strategy] += layers
                if self._leaves(target):
                    reaches.append(os.path.realpath(target))
        own = Layer(
            origin=Origin(kind=self._kind, where=str(path)),
            change=MapChange(entries),
            source=text,
            foreign=self._foreign,
            reaches=tuple(reaches),
            reached=chain[-1] if self._is_outside(chain[-1]) else "",
            unsupported=(*missing, *read.unsupported),
        )
        return [*around["before"], own, *around["after"]]

    def _leaves(self, path: Path) -> bool:
        """Return whether the path lies outside the workspace of a foreign file."""
        return self._real_root is not None and self._is_outside(os.path.realpath(path))

    def _is_outside(self, real_path: str) -> bool:
        return self._real_root is not None and not Path(real_path).is_relative_to(self._real_root)

    @functools.cached_property
    def _real_root(self) -> Path | None:
        """The root of the workspace of a foreign file, with links resolved."""
        return Path(os.path.realpath(self._root)) if self._foreign and self._root is not None else None

    def _extended(
        self, pattern: str, naming: _Naming, chain: tuple[str, ...]
    ) -> Iterator[tuple[Path, list[Layer] | None]]:
        """Yield the files that match a pattern, each with its layers; None for one that a workspace's file misses.

        The original JP goes on without it, and a workspace's files can do no more than it would let them do with it.
        """
        try:
            targets = list(self._targets(pattern, naming))
        except InvalidFileError as error:
            raise _named_by(chain[:-1], error) from None
        for target in targets:
            if os.path.realpath(target) in chain:
                raise _circular(naming, pattern, target, chain)
            layers = self.load(target, chain)
            if layers is None and not self._foreign:
                error = InvalidFileError(
                    f"{naming} extends {pattern!r}, which does not exist",
                    hint=f"there is no {str(target)!r}: create it, or remove it",
                )
                raise _named_by(chain[:-1], error)
            yield target, layers

    def _targets(self, pattern: str, naming: _Naming) -> Iterator[Path]:
        path = naming.path
        if "\0" in pattern:
            msg = f"{naming} extends {pattern!r}, which is no path"
            raise InvalidFileError(msg, hint="take the NUL character out of it")
        parts = expanded(pattern).parts
        literal = next((index for index, part in enumerate(parts) if _WILDCARDS & set(part)), len(parts))
        base = path.parent.joinpath(*parts[:literal])
        if literal == len(parts):
            if base.suffix not in SUFFIXES:
                msg = f"{naming} extends {pattern!r}, which is no configuration file"
                hint = "name a file that ends in '.toml', or a pattern such as 'skill/*.toml'"
                raise InvalidFileError(msg, hint=hint)
            yield _there(base)
            return
        if self._leaves(base):
            msg = f"{naming} extends {pattern!r}: a pattern may not leave the workspace"
            raise InvalidFileError(msg, hint="name the files one by one")
        yield from self._matches(base, parts[literal:], naming)

    def _matches(self, base: Path, parts: tuple[str, ...], naming: _Naming) -> list[Path]:
        if any("**" in part and part != "**" for part in parts):  # Python 3.13 would read it as '*'
            msg = f"{naming} extends {'/'.join(parts)!r}: '**' must be a whole name between slashes"
            raise InvalidFileError(msg, hint="a pattern looks like 'skill/*.toml'")
        found = [match for match in base.glob("/".join(parts)) if match.suffix in SUFFIXES and is_file(match)]
        return sorted(match for match in found if not _is_hidden(match, base) and not match.samefile(naming.path))


def _there(path: Path) -> Path:
    """Return the path, or that of the same file in another format, as which it may have been rewritten."""
    return path if is_file(path) else next(filter(is_file, map(path.with_suffix, SUFFIXES)), path)


def _is_hidden(match: Path, base: Path) -> bool:
    return any(part.startswith(".") for part in match.relative_to(base).parts)


def _extension(entry: Any) -> tuple[str, Strategy]:
    if isinstance(entry, str):
        return entry, "before"
    return entry["path"], entry.get("strategy", "before")


def fragment_layers(fragment: FragmentName, places: Places, load_paths: Sequence[str]) -> list[Layer]:
    """Return the layers of a named fragment, least specific first.

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
    if fragment.forced or base.suffix in SUFFIXES:
        yield base
    if base.suffix not in SUFFIXES and fragment.name and base.name:
        yield from (base.with_name(base.name + suffix) for suffix in SUFFIXES)


def _by_root(name: str, places: Places, load_paths: Sequence[str]) -> Iterator[list[Path]]:
    files = [name] if name.endswith(SUFFIXES) else [name + suffix for suffix in SUFFIXES]
    roots = (
        (None if places.user is None else places.user / FRAGMENTS, "."),
        (places.root, f"{WORKSPACE_DIRECTORY}/{FRAGMENTS}"),
        (None if places.user_workspace is None else places.user_workspace / FRAGMENTS, "."),
    )
    for root, own in roots:
        if root is not None:
            yield [root / expanded(directory) / file for directory in (*load_paths, own) for file in files]


def _first(paths: Sequence[Path] | Iterator[Path], searched: list[Path]) -> Path | None:
    for path in paths:
        if path not in searched and path.suffix not in SUFFIXES[1:]:
            searched.append(path)
        if is_file(path):
            return path
    return None


def _layers(path: Path, places: Places) -> tuple[Layer, ...]:
    foreign = _is_foreign(path, places)
    group = load_group(path, kind="cfg", root=places.root, foreign=foreign)
    return () if group is None else group.layers


def _is_in_workspace(path: Path, places: Places) -> bool:
    if places.root is None:
        return False
    # A link in the workspace is the workspace's, wherever it leads.
    return Path(os.path.normpath(path)).is_relative_to(places.root) or is_inside(path, places.root)


def _is_foreign(path: Path, places: Places) -> bool:
    if places.user is not None and is_inside(path, places.user):
        return False
    if places.user_workspace is not None and is_inside(path, places.user_workspace):
        return not places.is_id_known
    return _is_in_workspace(path, places)


def _not_found(name: str, searched: Sequence[Path]) -> ConfigurationError:
    places = ", ".join(os.fspath(path) for path in searched)
    hint = f"searched: {places}"
    if _is_key(name):
        hint = f"to set that key, write `{name}=VALUE`"
    return ConfigurationError(f"no configuration is called {name!r}", hint=hint)


def _is_key(name: str) -> bool:
    try:
        path = parse_key(name)
    except ConfigurationError:
        return False
    return any(known[: len(path)] == path for known, _ in known_keys(APP))
