"""Layers in order, what they come to, and where each value came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from jp.config.keys import KeyPath, key_text
from jp.config.merge import Change, MapChange, NoSuchElementError, Unset, applied, merge_all
from jp.config.model import AppConfig, JsonObject
from jp.config.schema import APP, folded, unfolded
from jp.errors import ConfigurationError

LayerKind = Literal[
    "default",
    "user",
    "workspace",
    "directory",
    "user-workspace",
    "environment",
    "conversation",
    "cfg",
    "flag",
]

_WORDS: Mapping[LayerKind, str] = {
    "default": "the default",
    "user": "the user's file",
    "workspace": "the workspace's file",
    "directory": "the directory's file",
    "user-workspace": "the user's file for this workspace",
    "environment": "the environment variable",
    "conversation": "the conversation's",
    "cfg": "--cfg",
    "flag": "the option",
}


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a value came from. `where` is a file's path, a variable's name, an option as it was typed."""

    kind: LayerKind
    where: str = ""

    @property
    def text(self) -> str:
        """The origin in words, for errors and for `config show`."""
        return f"{_WORDS[self.kind]} {self.where}".rstrip()


DEFAULT = Origin(kind="default")


_Tree: TypeAlias = "dict[str, Origin | _Tree | None]"
"""Where the values of a table came from, by name."""


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """What one source asks for.

    `foreign` layers may have been written by a stranger: a cloned workspace's. `reaches` are the files outside the
    workspace that such a layer's `extends` pulled in, and `reached` is the real path of one of these. `accepted` are
    hashes of what the user has accepted for the conversation that it belongs to. `source` is a file's text, to say
    where in it a key stands.
    """

    origin: Origin
    change: MapChange
    source: str = ""
    foreign: bool = False
    reaches: tuple[str, ...] = ()
    reached: str = ""
    accepted: frozenset[str] = frozenset()

    def said_at(self, path: KeyPath) -> str:
        """The origin in words, with the line on which a file says the key or what is above it."""
        from jp.config.positions import place_of

        place = place_of(self.source, path) if self.source else None
        return self.origin.text if place is None else f"{self.origin.text}, line {place.line}"


class Ignored(msgspec.Struct, frozen=True, kw_only=True):
    """What foreign layers say of a key and does not hold before the user has accepted it.

    `value` is what would hold, None where the key would be unset; `origin` says in words where that is declared.
    `is_own`: the user's own layers say something of the key, which holds. `needed`: nothing can be asked without it.
    Accepting it means to remember `marks`, and `conversation_marks` for the conversation.
    """

    path: KeyPath
    value: Any
    origin: str
    is_own: bool = False
    needed: bool = False
    marks: frozenset[str] = frozenset()
    conversation_marks: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        """The key as it is written."""
        return key_text(self.path)

    @property
    def text(self) -> str:
        """The key, the value and where it is declared, in words."""
        return f"{self.key} = {self.value!r} ({self.origin})"


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration that holds, and how it came about.

    `origins` has the keys that a layer set, each with the layer that had the last word; `layers` are in order, least
    specific first, and `change` is all of them in one. `plain` is the configuration as plain data, without defaults.
    `ignored` is what foreign layers say and does not hold.
    """

    config: AppConfig
    origins: Mapping[str, Origin]
    layers: tuple[Layer, ...]
    change: MapChange
    plain: JsonObject = {}
    ignored: tuple[Ignored, ...] = ()

    def origin(self, path: KeyPath) -> Origin:
        """Where the value of a key came from; an element's or an entry's part came with the whole."""
        for count in range(len(path), 0, -1):
            found = self.origins.get(key_text(path[:count]))
            if found is not None:
                return found
        return DEFAULT


def resolve(layers: Sequence[Layer]) -> Resolved:
    """Merge `layers`, least specific first, over the defaults.

    Raises:
        ConfigurationError: a layer changes an element that does not exist, or takes away what an element needs.
    """
    change = merge_all(layer.change for layer in layers)
    try:
        plain = applied(change)
        config = config_from(plain)
    except ConfigurationError as error:
        raise _blamed(layers, error) from None
    return Resolved(config=config, origins=origins_of(layers), layers=tuple(layers), change=change, plain=plain)


def config_of(change: MapChange) -> AppConfig:
    """What a change makes of the defaults.

    Raises:
        ConfigurationError: it names an element that does not exist, or leaves one without what it needs.
    """
    return config_from(applied(change))


def config_from(plain: JsonObject) -> AppConfig:
    """The configuration that plain data without defaults stands for.

    Raises:
        ConfigurationError: an element lacks what it needs.
    """
    try:
        return msgspec.convert(folded(APP, plain), AppConfig)
    except msgspec.ValidationError as error:
        msg = f"the configuration comes to an invalid value: {error}"
        raise ConfigurationError(msg) from None


def as_data(config: AppConfig) -> JsonObject:
    """Every key with its value, as JSON has it; null where there is none."""
    data: JsonObject = msgspec.json.decode(msgspec.json.encode(config))
    return unfolded(APP, data)


def _blamed(layers: Sequence[Layer], error: ConfigurationError) -> ConfigurationError:
    """The error, with the first layer that brings it about."""
    layer = next(layer for count, layer in enumerate(layers, 1) if not _is_valid(layers[:count]))
    where = layer.said_at(error.path) if isinstance(error, NoSuchElementError) else layer.origin.text
    return ConfigurationError(f"{where}: {error.message}", hint=error.hint)


def _is_valid(layers: Sequence[Layer]) -> bool:
    try:
        config_of(merge_all(layer.change for layer in layers))
    except ConfigurationError:
        return False
    return True


def origins_of(layers: Sequence[Layer]) -> dict[str, Origin]:
    """Which layer had the last word, for each key that one of them set."""
    tree: Origin | _Tree | None = None
    for layer in layers:
        tree = _traced(layer.change, layer.origin, tree)
    return {key_text(path): origin for path, origin in _listed(tree, ())}


def _traced(change: Change, origin: Origin, below: Origin | _Tree | None) -> Origin | _Tree | None:
    """Where comes from what `change`, which is `origin`'s, makes of a value; of a table, entry by entry."""
    match change:
        case MapChange(entries=entries, replace=replace):
            known = below if isinstance(below, dict) and not replace else {}
            traced = known | {name: _traced(entry, origin, known.get(name)) for name, entry in entries.items()}
            return {name: found for name, found in traced.items() if found is not None}
        case Unset():
            return None
        case _:
            return origin


def _listed(tree: Origin | _Tree | None, path: KeyPath) -> Iterator[tuple[KeyPath, Origin]]:
    if isinstance(tree, Origin):
        yield path, tree
    elif tree is not None:
        for name, below in tree.items():
            yield from _listed(below, (*path, name))


class Contribution(msgspec.Struct, frozen=True):
    """What a layer asks for at a key; `fresh`: without what the layers below it say of that key."""

    layer: Layer
    change: Change
    fresh: bool = False


def contributions(layers: Sequence[Layer], path: KeyPath) -> list[Contribution]:
    """What each layer that says anything of a key asks for, least specific first.

    Where it takes away what is above the key, it unsets the key.
    """
    found = ((layer, _at(layer.change, path)) for layer in layers)
    return [Contribution(layer, *said) for layer, said in found if said is not None]


def _at(change: Change, path: KeyPath) -> tuple[Change, bool] | None:
    fresh = False
    for name in path:
        if not isinstance(change, MapChange):
            return Unset(), True
        fresh = fresh or change.replace
        below = change.entries.get(name)
        if below is None:
            return (Unset(), True) if fresh else None
        change = below
    return change, fresh
