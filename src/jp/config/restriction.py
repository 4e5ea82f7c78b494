"""The stricter of two configurations, key by key: one with what untrusted layers say, and one without. Pure."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from jp.config.aliases import resolve_alias
from jp.config.direction import (
    NEEDS_TRUST,
    Attachments,
    Direction,
    InsideWorkspace,
    Limit,
    ModelChoice,
    NeedsTrust,
    Neutral,
    NewNames,
    Ordered,
    entry,
    is_same,
    lapses,
)
from jp.config.keys import KeyPath
from jp.config.model import JsonObject
from jp.config.schema import APP, Free, Names, Node, Table
from jp.config.tool_restriction import TOOLS, Note, default_of, restricted_tools
from jp.errors import ConfigurationError

MODEL: KeyPath = ("assistant", "model", "id")
_ALIASES: KeyPath = ("providers", "llm", "aliases")
_SCHEME = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)|(mcp)\+[^+/\s]+\+", re.IGNORECASE)


_Place = tuple[Node, Direction | None]


class Restriction:
    """Compares what comes of all layers with what comes of the user's own, where untrusted ones say anything."""

    def __init__(self, note: Note, root: str, *, lapsing: bool = False) -> None:
        self._note = note
        self._root = root
        self._lapsing = lapsing

    def restricted(self, full: JsonObject, own: JsonObject, paths: Collection[KeyPath]) -> JsonObject:
        """`full`, at these keys no looser than `own`; `full` itself where it is so already."""
        plain = full
        for path in dict.fromkeys(paths):
            before = _at(plain, path)
            after = self._value(_place(path), path, before, _at(own, path))
            plain = plain if is_same(before, after) else _with(plain, path, after)
        if not self._lapsing and any(overlap(path, MODEL) for path in paths):
            plain = self._with_model(plain, own)
        return plain

    def _with_model(self, plain: JsonObject, own: JsonObject) -> JsonObject:
        chosen, users = _at(plain, MODEL), _at(own, MODEL)
        if is_same(chosen, users) or not isinstance(users, str):
            return plain
        aliases = entry(_at(plain, _ALIASES))
        if isinstance(chosen, str) and _provider(chosen, aliases) == _provider(users, aliases):
            return plain
        self._note(MODEL, chosen, own=True)
        return _with(plain, MODEL, users)

    def _value(self, place: _Place, path: KeyPath, full: Any, own: Any) -> Any:
        node, direction = place
        if path == TOOLS:
            return restricted_tools(entry(full), entry(own), self._note, lapsing=self._lapsing)
        if direction is None and isinstance(node, Table):
            return self._table(node, path, full, own)
        if direction is None and isinstance(node, Names) and isinstance(node.value, Table):
            return self._entries(node.value, path, full, own)
        return self._leaf(NEEDS_TRUST if direction is None else direction, path, full, own)

    def _table(self, table: Table, path: KeyPath, full: Any, own: Any) -> Any:
        kept: JsonObject = {}
        for name in dict.fromkeys((*entry(full), *entry(own))):
            place = field_in(table, name)
            at, (above, users) = (*path, name), (_at(side, (name,)) for side in (full, own))
            if isinstance(place[0], Table) and name not in table.fields:
                value = self._entry(place[0], at, above, users)
            else:
                value = self._value(place, at, above, users)
            if value is not msgspec.UNSET:
                kept[name] = value
        return kept if kept or full is not msgspec.UNSET else msgspec.UNSET

    def _entries(self, table: Table, path: KeyPath, full: Any, own: Any) -> Any:
        names = dict.fromkeys((*entry(full), *entry(own)))
        found = ((name, self._entry(table, (*path, name), _at(full, (name,)), _at(own, (name,)))) for name in names)
        return {name: value for name, value in found if value is not msgspec.UNSET}

    def _entry(self, table: Table, path: KeyPath, full: Any, own: Any) -> Any:
        """A server or the like, UNSET where it is not there without what is ignored."""
        if full is msgspec.UNSET:
            self._note(path, None, own=True)
            return own
        kept = self._table(table, path, full, own)
        defining = [name for name, field in table.fields.items() if _is_defining(field.direction)]
        is_defined = own is not msgspec.UNSET or any(name in entry(kept) for name in defining)
        return kept if is_defined or not defining else msgspec.UNSET

    def _leaf(self, direction: Direction, path: KeyPath, full: Any, own: Any) -> Any:
        if (self._lapsing and not lapses(direction)) or is_same(_said(full, path), _said(own, path)):
            return full
        match direction:
            case NewNames():
                return self._new_names(path, entry(full), entry(own))
            case InsideWorkspace():
                return self._inside(path, full, own)
            case Attachments():
                return self._attachments(direction, path, full, own)
            case _ if _is_allowed(direction, path, full, own):
                return full
            case _:
                self._note(path, full, own=own is not msgspec.UNSET)
                return own

    def _new_names(self, path: KeyPath, full: Mapping[str, Any], own: Mapping[str, Any]) -> JsonObject:
        for name in dict.fromkeys((*full, *own)):
            if name in own and full.get(name) != own[name]:
                self._note((*path, name), full.get(name), own=True)
        return {**full, **own}

    def _inside(self, path: KeyPath, full: Any, own: Any) -> Any:
        users = () if own is msgspec.UNSET else own
        kept: list[str] = []
        for directory in () if full is msgspec.UNSET else full:
            if directory in users or is_in_workspace(directory, self._root):
                kept.append(directory)
            else:
                self._note(path, directory)
        return kept

    def _attachments(self, direction: Attachments, path: KeyPath, full: Any, own: Any) -> Any:
        users = () if own is msgspec.UNSET else own
        for text in () if full is msgspec.UNSET else full:
            if text not in users and _leaves(text, direction.schemes):
                self._note(path, text, needed=True)
        return full


def _is_allowed(direction: Direction, path: KeyPath, full: Any, own: Any) -> bool:
    """Whether an untrusted value may hold in place of the user's."""
    if isinstance(direction, Ordered | Limit):
        return direction.allows(_said(full, path), _said(own, path))
    if isinstance(direction, NeedsTrust):
        return own is msgspec.UNSET and full in direction.harmless
    return isinstance(direction, Neutral | ModelChoice)  # a model is compared once its aliases are known


def _is_defining(direction: Direction | None) -> bool:
    return isinstance(direction, NeedsTrust) and direction.defining


def _said(value: Any, path: KeyPath) -> Any:
    """A value, or the default of its key."""
    if value is not msgspec.UNSET:
        return value
    *above, name = path
    table, _ = _place(tuple(above))
    field = table.fields.get(name) if isinstance(table, Table) else None
    return None if field is None else default_of(field)


def _leaves(text: str, schemes: Collection[str]) -> bool:
    """Whether an attachment is not known to stay here: whatever another scheme does, it may run something."""
    match = _SCHEME.match(text.lstrip(" !"))
    return match is not None and (match[1] or match[2]).partition("+")[0].lower() not in schemes


def is_in_workspace(path: str, root: str) -> bool:
    """Whether a configured path lies in the workspace, as far as its text says."""
    whole = posixpath.normpath(posixpath.join(root, path))
    return not path.startswith("~") and posixpath.commonpath((root, whole)) == posixpath.normpath(root)


def _provider(model: str, aliases: Mapping[str, str]) -> str | None:
    try:
        provider, slash, _ = resolve_alias(model, aliases).partition("/")
    except ConfigurationError:
        return None
    return provider if slash else None


def _place(path: KeyPath) -> tuple[Node, Direction | None]:
    node: Node = APP
    direction: Direction | None = None
    for name in path:
        if isinstance(node, Table):
            node, direction = field_in(node, name)
        else:
            node = node.value if isinstance(node, Names) else Free()
    return node, direction


def _at(value: Any, path: KeyPath) -> Any:
    for name in path:
        value = entry(value).get(name, msgspec.UNSET)
    return value


def _with(plain: JsonObject, path: KeyPath, value: Any) -> JsonObject:
    name, *rest = path
    below = _with(dict(entry(plain.get(name))), tuple(rest), value) if rest else value
    if below is msgspec.UNSET:
        return {other: kept for other, kept in plain.items() if other != name}
    return {**plain, name: below}


def overlap(one: KeyPath, other: KeyPath) -> bool:
    """Whether one of two keys is the other, or above it."""
    return one[: len(other)] == other[: len(one)]


@functools.cache
def directions_in(table: Table) -> tuple[Direction, ...]:
    """The directions of everything in a table."""
    found: list[Direction] = []
    nodes = [(field.node, field.direction) for field in table.fields.values()]
    if table.others is not None:
        nodes.append((table.others.value, None))
    for node, direction in nodes:
        below = node.value if isinstance(node, Names) and direction is None else node
        if isinstance(below, Table):
            found += directions_in(below)
        else:
            found.append(NEEDS_TRUST if direction is None else direction)
    return tuple(found)


def field_in(table: Table, name: str) -> tuple[Node, Direction | None]:
    """What a name in a table holds, and the direction that is declared for the whole of it."""
    field = table.fields.get(name)
    if field is not None:
        return field.node, field.direction
    return (Free() if table.others is None else table.others.value), None
