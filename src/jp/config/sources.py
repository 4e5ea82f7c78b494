"""Layers from outside a conversation: files, the environment, `--cfg` and other options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import assert_never

import msgspec

from jp.config.assignment import Assignment, FragmentName, JsonPatch, assign, change_of, parse_cfg, read_partial
from jp.config.files import Candidate, Group, InvalidFileError, Places, candidates, fragment_layers, is_file, load_group
from jp.config.layers import Layer, Origin
from jp.config.model import JsonObject
from jp.config.schema import (
    APP,
    Free,
    InvalidValueError,
    Items,
    KeyPath,
    MergedText,
    Names,
    Node,
    Scalar,
    Table,
    is_index,
    key_text,
    nearest_key,
)
from jp.config.trust import load_paths
from jp.errors import ConfigurationError

PREFIX = "JP_CFG_"


def environment_assignments(environ: Mapping[str, str]) -> list[tuple[str, Assignment]]:
    """Return the assignment of each variable, sorted by name. An empty variable counts as not set.

    Raises:
        ConfigurationError: a variable means no key, more than one, or its value is not accepted.
    """
    return [(name, _assignment(name, environ[name])) for name in sorted(environ) if _is_set(name, environ)]


def _is_set(name: str, environ: Mapping[str, str]) -> bool:
    return name.startswith(PREFIX) and bool(environ[name])


def _assignment(variable: str, value: str) -> Assignment:
    path = key_of(variable)
    _check_text(variable, value)
    prefix = next((prefix for prefix in (":+", ":", "+") if value.startswith(prefix)), "")
    try:
        return assign(path, prefix, value.removeprefix(prefix))
    except InvalidValueError as error:
        raise error.within(f"environment variable {variable}") from None


def _check_text(variable: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        message = f"environment variable {variable} is not UTF-8: {value.encode(errors='surrogateescape')!r}"
        raise ConfigurationError(message, hint=f"export {variable}=… again, in UTF-8") from None


def key_of(variable: str, root: Table = APP) -> KeyPath:
    """Return the key that a variable means. A key that holds a value precedes a table with free names.

    Raises:
        ConfigurationError: it means none, or more than one.
    """
    groups = [part.split("_") for part in variable.removeprefix(PREFIX).lower().split("__")]
    words = tuple(word for group in groups for word in group)
    ends = frozenset(sum(len(group) for group in groups[:count]) for count in range(1, len(groups)))
    found = dict(_Words(words, ends).paths(root, 0)) if all(words) else {}
    values = {path: node for path, node in found.items() if not isinstance(node, Table | Names)}
    paths = sorted(values or found)
    if len(paths) == 1:
        return paths[0]
    if paths:
        choices = " and ".join(repr(key_text(path)) for path in paths)
        msg = f"environment variable {variable} may mean {choices}"
        raise ConfigurationError(msg, hint="Put `__` where one name ends and the next begins.")
    nearest = nearest_key(words, root)
    msg = f"environment variable {variable} means no known key; the nearest known key is {nearest!r}"
    raise ConfigurationError(msg, hint=f"Its variable is {PREFIX}{nearest.upper().replace('.', '_')}.")


class _Words(msgspec.Struct, frozen=True):
    """A variable's words, and the indexes at which a name has to end."""

    words: tuple[str, ...]
    ends: frozenset[int]

    def paths(self, node: Node, start: int) -> Iterator[tuple[KeyPath, Node]]:
        """Yield the keys below `node` that the words from `start` on spell, with their schemas."""
        if start == len(self.words):
            yield (), node
            return
        for stop, name, below in self._names(node, start):
            if self.ends.isdisjoint(range(start + 1, stop)):
                for path, end in self.paths(below, stop):
                    yield (name, *path), end

    def _names(self, node: Node, start: int) -> Iterator[tuple[int, str, Node]]:
        match node:
            case Table():
                yield from self._known_names(node, start)
            case Free() | Names(value=Free()):
                stop = min((end for end in self.ends if end > start), default=len(self.words))
                yield stop, self._spelled(start, stop), Free()
            case Names(value=below):
                stops = range(start + 1, len(self.words) + 1)
                yield from ((stop, self._spelled(start, stop), below) for stop in stops)
            case Items(element=element):
                if is_index(self.words[start]):
                    yield start + 1, self.words[start], element
            case Scalar() | MergedText():
                pass
            case _:
                assert_never(node)

    def _known_names(self, table: Table, start: int) -> Iterator[tuple[int, str, Node]]:
        for name, field in table.fields.items():
            stop = start + name.count("_") + 1
            if self._spelled(start, stop) == name:
                yield stop, name, field.node
        if table.others is not None:
            yield from self._names(Names(table.others.value), start)

    def _spelled(self, start: int, stop: int) -> str:
        return "_".join(self.words[start:stop])


def lower_layers(places: Places, environ: Mapping[str, str]) -> list[Layer]:
    """Return the layers of the files and the environment, which are below a conversation's.

    Raises:
        ConfigurationError: a file or a variable is invalid.
    """
    return [*file_layers(places), *environment_layers(environ)]


def file_layers(places: Places) -> list[Layer]:
    """Return the files' layers, least specific first, up to `inherit = false`, which in foreign files ends only these.

    Raises:
        ConfigurationError: one cannot be read or is invalid.
    """
    return [layer for _, group in _groups(places) if group is not None for layer in group.layers]


def unread_files(places: Places) -> list[Path]:
    """Return the files that exist and are not read, because an earlier one has `inherit = false`.

    Raises:
        ConfigurationError: one that counts cannot be read or is invalid.
    """
    read = [candidate for candidate, _ in _groups(places)]
    return [candidate.path for candidate in candidates(places) if candidate not in read and is_file(candidate.path)]


def _groups(places: Places) -> Iterator[tuple[Candidate, Group | None]]:
    """Yield the files that are read, each with its layers. A foreign file never excludes one of the user's own."""
    enders: set[bool] = set()
    for candidate in candidates(places):
        if False in enders or (candidate.foreign and enders):
            continue
        group = load_group(candidate.path, kind=candidate.kind, root=places.root, foreign=candidate.foreign)
        if group is not None and not group.inherit:
            enders.add(candidate.foreign)
        yield candidate, group


def environment_layers(environ: Mapping[str, str]) -> list[Layer]:
    """Return the layers of the `JP_CFG_*` variables, by name.

    Raises:
        ConfigurationError: a variable means no key, or its value is not accepted.
    """
    return [
        Layer(origin=Origin(kind="environment", where=name), change=change_of(assignment))
        for name, assignment in environment_assignments(environ)
    ]


def cfg_layers(values: Sequence[str], places: Places, below: Sequence[Layer]) -> list[Layer]:
    """Return the layers of `--cfg`, in order. `below` and earlier values configure where a name is searched.

    Raises:
        ConfigurationError: a value has no meaning, a name means no file, or a file is invalid.
    """
    layers: list[Layer] = []
    for text in values:
        try:
            value = parse_cfg(text)
            layers += _cfg_value(value, text, places, [*below, *layers])
        except InvalidValueError as error:
            raise error.within(f"--cfg {text!r}") from None
        except InvalidFileError as error:
            raise InvalidFileError(f"--cfg {text!r}: {error.message}", hint=error.hint) from None
    return layers


def _cfg_value(
    value: FragmentName | JsonPatch | Assignment, text: str, places: Places, below: Sequence[Layer]
) -> list[Layer]:
    match value:
        case FragmentName():
            return fragment_layers(value, places, load_paths(below, str(places.root)))
        case JsonPatch() | Assignment():
            return [Layer(origin=Origin(kind="cfg", where=text), change=change_of(value))]
        case _:
            assert_never(value)


def flag_layer(option: str, partial: JsonObject) -> Layer:
    """Return the layer of a command's option, such as `--model`; `option` is how it was typed.

    Raises:
        InvalidValueError: the option's value is not accepted.
    """
    try:
        return Layer(origin=Origin(kind="flag", where=option), change=read_partial(partial))
    except InvalidValueError as error:
        raise error.within(option) from None
