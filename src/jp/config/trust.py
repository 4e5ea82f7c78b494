"""Settings of files that the user has not trusted: only what tightens applies."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import replace

from jp.config.entries import (
    NEUTRAL,
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
from jp.config.layers import (
    Change,
    Ignored,
    Layer,
    MapChange,
    Origin,
    Resolved,
    applied,
    config_from,
    merge_all,
    origins_of,
    resolve,
)
from jp.config.model import JsonObject, resolve_alias, shipped_aliases
from jp.config.schema import APP, Field, Free, KeyPath, Names, Table, key_text
from jp.config.tool_restriction import TOOLS, Note, default_of, direction_of, restricted_tools
from jp.errors import ConfigurationError
from jp.remedies import TrustWorkspace, join, phrase

if TYPE_CHECKING:
    from hashlib import _Hash as Hash  # pyright: ignore[reportPrivateUsage]  its only name before Python 3.13

MODEL: KeyPath = ("assistant", "model", "id")
_ALIASES: KeyPath = ("providers", "llm", "aliases")
_SCHEME = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)|(mcp)\+[^+/\s]+\+", re.IGNORECASE)


class Restriction:
    """Compares what comes of all layers with what comes of the user's own."""

    def __init__(self, note: Note, root: str, *, lapsing: bool = False) -> None:
        self._note = note
        self._root = root
        self._lapsing = lapsing
        self._aliases: Mapping[str, Any] = {}

    def restricted(self, full: JsonObject, own: JsonObject) -> JsonObject:
        """Return `full`, made no looser than `own`; `full` itself if nothing changes."""
        self._aliases = {**entry(_at(full, _ALIASES)), **entry(_at(own, _ALIASES))}
        kept = self._table(APP, (), full, own)
        return full if is_same(full, kept) else kept

    def _table(self, node: Table | Names, path: KeyPath, full: Any, own: Any) -> Any:
        kept: JsonObject = {}
        for name in dict.fromkeys((*entry(full), *entry(own))):
            field, above, users = field_in(node, name), _at(full, (name,)), _at(own, (name,))
            value = above if is_same(above, users) else self._value(field, (*path, name), above, users)
            if value is not msgspec.UNSET:
                kept[name] = value
        return kept if kept or full is not msgspec.UNSET else msgspec.UNSET

    def _value(self, field: Field, path: KeyPath, full: Any, own: Any) -> Any:
        match field:
            case _ if path == TOOLS:
                return restricted_tools(entry(full), entry(own), self._note, lapsing=self._lapsing)
            case Field(node=Table() as table, is_entry=True):
                return self._entry(table, path, full, own)
            case Field(node=(Table() | Names(value=Table())) as node, direction=None):
                return self._table(node, path, full, own)
            case _:
                return self._leaf(field, path, full, own)

    def _entry(self, table: Table, path: KeyPath, full: Any, own: Any) -> Any:
        """Return a server or the like, UNSET if it does not exist without the ignored values."""
        if full is msgspec.UNSET:
            self._note(path, None, own=True)
            return own
        kept = self._table(table, path, full, own)
        defining = [name for name, field in table.fields.items() if _is_defining(field.direction)]
        is_defined = own is not msgspec.UNSET or any(name in entry(kept) for name in defining)
        return kept if is_defined or not defining else msgspec.UNSET

    def _leaf(self, field: Field, path: KeyPath, full: Any, own: Any) -> Any:
        direction = direction_of(field)
        if (self._lapsing and not lapses(direction)) or self._allows(direction, default_of(field), full, own):
            return full
        match direction:
            case NewNames():
                return self._new_names(path, entry(full), entry(own))
            case InsideWorkspace():
                return self._inside(path, full, own)
            case Attachments():
                return self._attachments(direction, path, full, own)
            case _:
                self._note(path, full, own=own is not msgspec.UNSET)
                return own

    def _allows(self, direction: Direction, default: Any, full: Any, own: Any) -> bool:
        """Return whether an untrusted value may replace the user's."""
        above, users = (default if value is msgspec.UNSET else value for value in (full, own))
        if is_same(above, users):
            return True
        match direction:
            case Ordered() | Limit():
                return direction.allows(above, users)
            case NeedsTrust(harmless=harmless):
                return own is msgspec.UNSET and full in harmless
            case ModelChoice() if isinstance(own, str):
                return isinstance(full, str) and provider_of(full, self._aliases) == provider_of(own, self._aliases)
            case _:
                return isinstance(direction, Neutral | ModelChoice)

    def _new_names(self, path: KeyPath, full: Mapping[str, Any], own: Mapping[str, Any]) -> JsonObject:
        refused: set[str] = set()
        for name in dict.fromkeys((*full, *own)):
            if name in own and full.get(name) != own[name]:
                self._note((*path, name), full.get(name), own=True)
            elif name not in own and _leads_elsewhere(name, full):
                self._note((*path, name), full[name], own=True)
                refused.add(name)
        return {**{name: value for name, value in full.items() if name not in refused}, **own}

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


def _is_defining(direction: Direction | None) -> bool:
    return isinstance(direction, NeedsTrust) and direction.defining


def _leaves(text: str, schemes: Collection[str]) -> bool:
    """Return whether an attachment may run something or reach out: any scheme but the listed ones may."""
    match = _SCHEME.match(text.lstrip(" !"))
    return match is not None and (match[1] or match[2]).partition("+")[0].lower() not in schemes


def is_in_workspace(path: str, root: str) -> bool:
    """Return whether a configured path lies in the workspace, judged by its text."""
    whole = posixpath.normpath(posixpath.join(root, path))
    return not path.startswith("~") and posixpath.commonpath((root, whole)) == posixpath.normpath(root)


def _leads_elsewhere(name: str, aliases: Mapping[str, str]) -> bool:
    """Return whether an alias that comes with jp is given to a model of another provider."""
    shipped = shipped_aliases().get(name)
    return shipped is not None and provider_of(name, aliases) != provider_of(shipped, {})


def provider_of(model: str, aliases: Mapping[str, str]) -> str | None:
    """Return the provider of a model or an alias; None where there is none."""
    try:
        provider, slash, _ = resolve_alias(model, aliases).partition("/")
    except ConfigurationError:
        return None
    return provider if slash else None


def _at(value: Any, path: KeyPath) -> Any:
    for name in path:
        value = entry(value).get(name, msgspec.UNSET)
    return value


def overlap(one: KeyPath, other: KeyPath) -> bool:
    """Return whether one of two keys is equal to the other or above it."""
    return one[: len(other)] == other[: len(one)]


@functools.cache
def directions_in(table: Table) -> tuple[Direction, ...]:
    """Return the directions of everything in a table."""
    found: list[Direction] = []
    others = () if table.others is None else (Field(node=table.others.value),)
    for field in (*table.fields.values(), *others):
        match field:
            case Field(node=(Table() as below) | Names(value=Table() as below), direction=None):
                found += directions_in(below)
            case _:
                found.append(direction_of(field))
    return tuple(found)


def field_in(node: Table | Names, name: str) -> Field:
    """Return the schema of a name in a table."""
    if isinstance(node, Names):
        return Field(node=node.value, is_entry=True)
    return node.fields.get(name) or Field(node=Free() if node.others is None else node.others.value)


_SHOWN = 5
"""An error says so many values; the command that accepts them shows all."""

_NAMED = 3
"""A provider, a server: `providers.llm.NAME` is accepted whole, or not at all. So are all tools together."""


Accepted = Callable[[], Collection[str]]
"""Hashes of what the user has accepted of the workspace's files. Not called where nothing has to be accepted."""


class _Unit:
    """A layer's statement at a key and below it, accepted whole or not at all."""

    def __init__(self, path: KeyPath, change: Change) -> None:
        self.path = path
        self.change = change

    @functools.cached_property
    def _beginning(self) -> Hash:
        import hashlib

        return hashlib.sha256(_json([key_text(self.path), self.change])[:-1])

    def mark(self, key: str) -> str:
        """Return the hash by which the user's consent to the value of `key` is remembered: `_hash(path, change, key)`.

        All tools are one unit, of which each may need hundreds of hashes: the beginning is hashed once.
        """
        whole = self._beginning.copy()
        whole.update(b",%b]" % _json(key))
        return whole.hexdigest()


class UntrustedError(ConfigurationError):
    """An action needs the user's consent to the `values`. `remedy` accepts them."""

    def __init__(self, values: Sequence[Ignored], *, remedy: TrustWorkspace | None = None) -> None:
        super().__init__(
            phrase("this workspace declares what needs your trust: ", listed(values)),
            hint=phrase("look at it and accept it with `", remedy or TrustWorkspace(), "`"),
        )
        self.values = tuple(values)


def listed(values: Sequence[Ignored]) -> str:
    """Return the first of the values in words."""
    more = [f"and {len(values) - _SHOWN} more"] if len(values) > _SHOWN else []
    return join("; ", [*(value.text for value in values[:_SHOWN]), *more])


def resolve_trusted(layers: Sequence[Layer], root: str, accepted: Accepted = frozenset) -> Resolved:
    """Merge `layers`, least specific first, over the defaults; what untrusted ones loosen is ignored.

    Args:
        layers: all of them; the foreign ones are untrusted unless what they say has been accepted.
        root: the workspace's root, an absolute path.
        accepted: what the user has accepted of foreign files.

    Raises:
        ConfigurationError: the layers do not fit together.
    """
    if not any(layer.foreign and (layer.reaches or _units(layer)) for layer in layers):
        return resolve(layers)
    found = _restricted(layers, root)
    if not found.ignored:
        return found
    hashes = frozenset(accepted())
    trusted = [part for layer in layers for part in _parts(layer, hashes | layer.accepted, found.ignored)]
    if all(part is layer for part, layer in zip(trusted, layers, strict=False)) and len(trusted) == len(layers):
        return found
    return replace(_restricted(trusted, root), layers=tuple(layers))


def without_lapsing(after: Resolved, before: Resolved) -> Resolved:
    """Return what a conversation keeps of `after`: without what it loosens of consent and access over `before`."""
    plain = Restriction(_ignore_note, "", lapsing=True).restricted(after.plain, before.plain)
    return after if plain is after.plain else replace(after, config=config_from(plain), plain=plain)


def _ignore_note(path: KeyPath, value: Any, *, needed: bool = False, own: bool = False) -> None:
    del path, value, needed, own


def mark_of_change(change: JsonObject) -> str:
    """Return the hash of a change that jp has written for its user."""
    return _hash("change", change)


def mark_of_attachment(text: str) -> str:
    """Return the hash of an attachment that the user has typed, which may lie anywhere."""
    return _hash("attachment", text)


def mark_of_id(workspace_id: str) -> str:
    """Return the hash of a workspace's id, by which the user's settings for it are found."""
    return _hash("id", workspace_id)


def mark_of_text(name: str, text: str) -> str:
    """Return the hash of a text for the model that a file of the workspace holds."""
    return _hash("text", name, text)


def load_paths(layers: Sequence[Layer], root: str) -> list[str]:
    """Return the directories that `--cfg NAME` searches; outside the workspace only those of the user's layers."""
    everything = applied(merge_all(layer.change for layer in layers)).get("config_load_paths", [])
    if not any(layer.foreign and "config_load_paths" in layer.change.entries for layer in layers):
        return everything
    own = applied(merge_all(layer.change for layer in layers if not layer.foreign), lenient=True)
    return [path for path in everything if path in own.get("config_load_paths", []) or is_in_workspace(path, root)]


def _restricted(layers: Sequence[Layer], root: str) -> Resolved:
    """Return the configuration without what foreign layers loosen."""
    outside = {path for layer in layers if layer.foreign for path in layer.reaches}
    found = [_ignored_extension(layers, path) for path in sorted(outside)]
    inside = [layer for layer in layers if not (layer.foreign and layer.reached in outside)]
    resolved = resolve(inside)
    own = [layer for layer in inside if not layer.foreign]
    units = [(layer.origin, unit) for layer in inside if layer.foreign for unit in _units(layer)]

    def note(path: KeyPath, value: Any, *, needed: bool = False, own: bool = False) -> None:
        key = key_text(path)
        said = [(origin, unit.mark(key)) for origin, unit in units if overlap(unit.path, path)]
        found.append(_ignored(said, path, value, needed=needed, is_own=own))

    users = applied(merge_all(map(_own_change, inside)), lenient=True)
    plain = Restriction(note, root).restricted(resolved.plain, users)
    if plain is not resolved.plain:
        origins = _origins(resolved.origins, found, origins_of(own))
        resolved = replace(resolved, config=config_from(plain), plain=plain, origins=origins)
    return replace(resolved, layers=tuple(layers), ignored=tuple(sorted(found, key=lambda value: value.text)))


def _own_change(layer: Layer) -> MapChange:
    """Return the part of a layer that counts as the user's: of a foreign conversation, only the model."""
    if not layer.foreign:
        return layer.change
    model = [unit for unit in _units_of(layer.change, APP, ()) if unit.path == MODEL]
    return _joined(model) if layer.origin.kind == "conversation" else MapChange()


def _ignored_extension(layers: Sequence[Layer], path: str) -> Ignored:
    mark = _hash("extends", path)
    said = [(layer.origin, mark) for layer in layers if layer.foreign for reached in layer.reaches if reached == path]
    return _ignored(said, ("extends",), path)


def _ignored(
    said: Sequence[tuple[Origin, str]], path: KeyPath, value: Any, *, needed: bool = False, is_own: bool = False
) -> Ignored:
    by_conversation = frozenset(mark for origin, mark in said if origin.kind == "conversation")
    return Ignored(
        path=path,
        value=None if value is msgspec.UNSET else value,
        origin=said[-1][0].text if said else "the workspace",
        is_own=is_own,
        needed=needed,
        marks=frozenset(mark for _, mark in said) - by_conversation,
        conversation_marks=by_conversation,
    )


def _parts(layer: Layer, hashes: frozenset[str], ignored: Sequence[Ignored]) -> Iterator[Layer]:
    """Yield what the user has accepted of a layer, which is not foreign any more, and the rest."""
    if not layer.foreign:
        yield layer
        return
    reaches = tuple(path for path in layer.reaches if _hash("extends", path) not in hashes)
    accepted: list[_Unit] = []
    for unit in _units(layer):
        marks = {unit.mark(value.key) for value in ignored if overlap(unit.path, value.path)}
        if marks and marks <= hashes:
            accepted.append(unit)
    if not accepted:
        yield layer if reaches == layer.reaches else replace(layer, reaches=reaches)
        return
    yield replace(layer, change=_joined(accepted), foreign=False, reaches=())
    yield replace(layer, change=_without_units(layer.change, {unit.path for unit in accepted}, ()), reaches=reaches)


def _hash(*parts: Any) -> str:
    import hashlib

    return hashlib.sha256(_json(parts)).hexdigest()


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _origins(
    origins: Mapping[str, Origin], ignored: Sequence[Ignored], own: Mapping[str, Origin]
) -> Mapping[str, Origin]:
    """Return the origins, with those of the user's own layers for ignored keys."""
    keys = frozenset(value.key for value in ignored if not value.needed)

    def is_ignored(key: str) -> bool:
        return key in keys or any(key[: dot.start()] in keys for dot in re.finditer(r"\.", key))

    kept = {key: origin for key, origin in origins.items() if not is_ignored(key)}
    return {**kept, **{key: origin for key, origin in own.items() if is_ignored(key)}}


def _units(layer: Layer) -> list[_Unit]:
    """Return the units of a layer that affect consent, access, addresses or what runs."""
    units = _units_of(layer.change, APP, ())
    if layer.origin.kind == "conversation":
        return [unit for unit in units if unit.path != MODEL]
    return list(units)


def _units_of(change: MapChange, table: Table, path: KeyPath) -> Iterator[_Unit]:
    for name, below in change.entries.items():
        at = (*path, name)
        field = field_in(table, name)
        is_whole = at == TOOLS or len(at) >= _NAMED
        if isinstance(field.node, Table) and isinstance(below, MapChange) and not (below.replace or is_whole):
            yield from _units_of(below, field.node, at)
        elif _is_sensitive(field, below):
            yield _Unit(at, below)


def _is_sensitive(field: Field, change: Change) -> bool:
    """Return whether a change affects a setting that is not neutral."""
    match field:
        case Field(node=(Table() | Names(value=Table())) as node, direction=None):
            if isinstance(change, MapChange) and not change.replace:
                return any(_is_sensitive(field_in(node, name), below) for name, below in change.entries.items())
            table = node if isinstance(node, Table) else node.value
            return isinstance(table, Table) and any(each != NEUTRAL for each in directions_in(table))
        case _:
            return direction_of(field) != NEUTRAL


def _joined(units: Sequence[_Unit]) -> MapChange:
    """Return one change that consists of these units."""
    total = MapChange()
    for unit in units:
        nested: Change = unit.change
        for name in reversed(unit.path):
            nested = MapChange({name: nested})
        total = merge_all([total, cast("MapChange", nested)])
    return total


def _without_units(change: MapChange, paths: Collection[KeyPath], path: KeyPath) -> MapChange:
    entries: dict[str, Change] = {}
    for name, below in change.entries.items():
        at = (*path, name)
        if at not in paths:
            is_above = isinstance(below, MapChange) and any(other[: len(at)] == at for other in paths)
            entries[name] = _without_units(cast("MapChange", below), paths, at) if is_above else below
    return MapChange(entries, replace=change.replace)
