"""What a stranger's files may say: only what makes a setting stricter than the user's own layers and the defaults do.

`resolve_trusted` merges twice, with and without the untrusted layers, compares what comes of it key by key in the
direction that each setting declares (`jp.config.direction`), and keeps the stricter value. So it does not matter by
which strategy or in which place a layer says something. What is ignored holds once the user has accepted it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from jp.config.direction import NEEDS_TRUST, NEUTRAL, Direction, lapses
from jp.config.keys import KeyPath, key_text
from jp.config.layers import Ignored, Layer, Origin, Resolved, config_from, origins_of, resolve
from jp.config.merge import Change, MapChange, applied, merge_all
from jp.config.model import JsonObject
from jp.config.restriction import MODEL, Restriction, directions_in, field_in, is_in_workspace, overlap
from jp.config.schema import APP, Names, Node, Table
from jp.config.tool_restriction import TOOLS
from jp.errors import ConfigurationError

_SHOWN = 5
"""An error says so many values; the command that accepts them shows all."""

_NAMED = 3
"""A provider, a server: `providers.llm.NAME` is accepted whole, or not at all. So are all tools together."""


Accepted = Callable[[], Collection[str]]
"""Hashes of what the user has accepted of the workspace's files. Not called where nothing has to be accepted."""

_Unit = tuple[KeyPath, Change]
"""What a layer says at a key and below it, accepted whole or not at all."""


class UntrustedError(ConfigurationError):
    """What cannot be done before the user has accepted the `values`. `command` is what accepts them."""

    def __init__(self, values: Sequence[Ignored], *, command: str = "") -> None:
        super().__init__(
            f"this workspace declares what needs your trust: {listed(values)}",
            hint=f"Look at it and accept it with `{command or 'jp workspace trust'}`.",
        )
        self.values = tuple(values)


def listed(values: Sequence[Ignored]) -> str:
    """The first of the values, in words."""
    more = [f"and {len(values) - _SHOWN} more"] if len(values) > _SHOWN else []
    return "; ".join([*(value.text for value in values[:_SHOWN]), *more])


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
    """What of `after` a conversation keeps: without what it loosens of consent and access over `before`."""
    walk = Restriction(_unheard, "", lapsing=True)
    paths = [path for layer in after.layers for path, _ in _units_of(layer.change, APP, (), lapses)]
    plain = walk.restricted(after.plain, before.plain, paths)
    return after if plain is after.plain else replace(after, config=config_from(plain), plain=plain)


def _unheard(path: KeyPath, value: Any, *, needed: bool = False, own: bool = False) -> None:
    del path, value, needed, own


def mark_of_change(change: JsonObject) -> str:
    """The hash by which a change that jp has written for its user is known."""
    return _hash("change", change)


def mark_of_attachment(text: str) -> str:
    """The hash by which an attachment that the user has typed is known: it may lie anywhere."""
    return _hash("attachment", text)


def load_paths(layers: Sequence[Layer], root: str) -> list[str]:
    """Where `--cfg NAME` looks: directories outside of the workspace only where the user's own layers say so."""
    everything = applied(merge_all(layer.change for layer in layers)).get("config_load_paths", [])
    if not any(layer.foreign and "config_load_paths" in layer.change.entries for layer in layers):
        return everything
    own = applied(merge_all(layer.change for layer in layers if not layer.foreign), lenient=True)
    return [path for path in everything if path in own.get("config_load_paths", []) or is_in_workspace(path, root)]


def _restricted(layers: Sequence[Layer], root: str) -> Resolved:
    """What holds without what foreign layers loosen."""
    outside = {path for layer in layers if layer.foreign for path in layer.reaches}
    found = [_ignored(layers, ("extends",), path) for path in sorted(outside)]
    inside = [layer for layer in layers if not (layer.foreign and layer.reached in outside)]
    resolved = resolve(inside)
    own = [layer for layer in inside if not layer.foreign]
    paths = [path for layer in inside if layer.foreign for path, _ in _units(layer)]

    def note(path: KeyPath, value: Any, *, needed: bool = False, own: bool = False) -> None:
        found.append(_ignored(inside, path, value, needed=needed, is_own=own))

    plain = Restriction(note, root).restricted(
        resolved.plain, applied(merge_all(map(_own_change, inside)), lenient=True), paths
    )
    if plain is not resolved.plain:
        origins = _origins(resolved.origins, found, origins_of(own))
        resolved = replace(resolved, config=config_from(plain), plain=plain, origins=origins)
    return replace(resolved, layers=tuple(layers), ignored=tuple(sorted(found, key=lambda value: value.text)))


def _own_change(layer: Layer) -> MapChange:
    """What of a layer counts as the user's: of a foreign conversation, the model, for its user goes on with it."""
    if not layer.foreign:
        return layer.change
    model = [unit for unit in _units_of(layer.change, APP, (), _is_sensitive) if unit[0] == MODEL]
    return _joined(model) if layer.origin.kind == "conversation" else MapChange()


def _ignored(
    layers: Sequence[Layer], path: KeyPath, value: Any, *, needed: bool = False, is_own: bool = False
) -> Ignored:
    said = [(layer, mark) for layer in layers if layer.foreign for mark in _marks(layer, path, value)]
    by_conversation = {mark for layer, mark in said if layer.origin.kind == "conversation"}
    return Ignored(
        path=path,
        value=None if value is msgspec.UNSET else value,
        origin=said[-1][0].origin.text if said else "the workspace",
        is_own=is_own,
        needed=needed,
        marks=frozenset(mark for _, mark in said) - by_conversation,
        conversation_marks=frozenset(by_conversation),
    )


def _marks(layer: Layer, path: KeyPath, value: Any) -> Iterator[str]:
    """The hashes of what a layer says that makes the value of a key: one for each of its units there."""
    if path == ("extends",):
        yield from (_hash("extends", value) for reached in layer.reaches if reached == value)
        return
    for at, change in _units(layer):
        if overlap(at, path):
            yield _hash(key_text(at), change, key_text(path))


def _parts(layer: Layer, hashes: frozenset[str], ignored: Sequence[Ignored]) -> Iterator[Layer]:
    """A layer in two: what the user has accepted of it, which is not foreign any more, and the rest."""
    if not layer.foreign:
        yield layer
        return
    reaches = tuple(path for path in layer.reaches if _hash("extends", path) not in hashes)
    accepted: list[_Unit] = []
    rest: list[_Unit] = []
    for at, change in _units(layer):
        keys = [value.key for value in ignored if overlap(at, value.path)]
        marks = {_hash(key_text(at), change, key) for key in keys}
        (accepted if marks and marks <= hashes else rest).append((at, change))
    if not accepted:
        yield layer if reaches == layer.reaches else replace(layer, reaches=reaches)
        return
    yield replace(layer, change=_joined(accepted), foreign=False, reaches=())
    yield replace(layer, change=_without_units(layer.change, {at for at, _ in accepted}, ()), reaches=reaches)


def _hash(*parts: Any) -> str:
    import hashlib

    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def _origins(
    origins: Mapping[str, Origin], ignored: Sequence[Ignored], own: Mapping[str, Origin]
) -> Mapping[str, Origin]:
    """The origins, where something is ignored those of the user's own layers."""
    keys = tuple(value.key for value in ignored if not value.needed)

    def isfield_in(key: str) -> bool:
        return key.startswith(tuple(f"{above}." for above in keys)) or key in keys

    kept = {key: origin for key, origin in origins.items() if not isfield_in(key)}
    return {**kept, **{key: origin for key, origin in own.items() if isfield_in(key)}}


def _units(layer: Layer) -> list[_Unit]:
    """What a layer says that bears on consent, access, addresses or what runs."""
    units = _units_of(layer.change, APP, (), _is_sensitive)
    if layer.origin.kind == "conversation":
        return [unit for unit in units if unit[0] != MODEL]
    return list(units)


def _units_of(change: MapChange, table: Table, path: KeyPath, counts: Callable[[Direction], bool]) -> Iterator[_Unit]:
    for name, below in change.entries.items():
        at = (*path, name)
        node, direction = field_in(table, name)
        is_whole = at == TOOLS or len(at) >= _NAMED
        if isinstance(node, Table) and isinstance(below, MapChange) and not (below.replace or is_whole):
            yield from _units_of(below, node, at, counts)
        elif _touches(node, direction, below, counts):
            yield at, below


def _touches(node: Node, direction: Direction | None, change: Change, counts: Callable[[Direction], bool]) -> bool:
    """Whether a change says anything of a setting whose direction `counts`."""
    match node:
        case Table() if isinstance(change, MapChange) and not change.replace:
            return any(_touches(*field_in(node, name), below, counts) for name, below in change.entries.items())
        case Table():
            return any(counts(each) for each in directions_in(node))
        case Names(value=Table() as value) if direction is None:
            if not isinstance(change, MapChange) or change.replace:
                return any(counts(each) for each in directions_in(value))
            return any(_touches(value, None, below, counts) for below in change.entries.values())
        case _:
            return counts(NEEDS_TRUST if direction is None else direction)


def _is_sensitive(direction: Direction) -> bool:
    return direction != NEUTRAL


def _joined(units: Sequence[_Unit]) -> MapChange:
    """One change that says these at their keys."""
    total = MapChange()
    for at, change in units:
        nested: Change = change
        for name in reversed(at):
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
