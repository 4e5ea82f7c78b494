"""`JP_CFG_*` variables: which key a variable means, and what it asks for.

`_` separates names and stands in them too: `JP_CFG_ASSISTANT_MODEL_PARAMETERS_MAX_TOKENS` is resolved against the
known keys. `__` always separates. The value's prefix says how it is read: `:` JSON, `+` add, `:+` both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

import msgspec

from jp.config.assignment import Assignment, assign
from jp.config.invalid import InvalidValueError
from jp.config.keys import KeyPath, is_index, key_text
from jp.config.schema import APP, Free, Items, MergedText, Names, Node, Scalar, Table, nearest_key
from jp.errors import ConfigurationError

PREFIX = "JP_CFG_"


def environment_assignments(environ: Mapping[str, str]) -> list[tuple[str, Assignment]]:
    """Every variable with what it asks for, sorted by name. An empty variable counts as not set.

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
    """The key that a variable means. One that holds a value goes before a table with free names.

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
        """The keys below `node` that the words from `start` on spell, with what stands there."""
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
