"""Layers of settings: the changes that each asks for, how they merge, and where each value came from.

`merge` is associative, and `MapChange()` is its identity, for changes that were read against one schema: layers may be
grouped in any way, only their order counts. Hence also `applied(merge(a, b), value) == applied(b, applied(a, value))`,
except for what is only known once all layers are: whether a list's duplicates count, and whether anything is said after
a step that is then discarded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, assert_never, cast

import msgspec

from jp.config.model import AppConfig, JsonObject
from jp.config.schema import APP, KeyPath, folded, key_text, unfolded
from jp.errors import ConfigurationError
from jp.remedies import Option, join, phrase

Separator = Literal["none", "space", "line", "paragraph"]
SEPARATORS: Mapping[Separator, str] = {"none": "", "space": " ", "line": "\n", "paragraph": "\n\n"}


class NoSuchElementError(ConfigurationError):
    """A layer changes an element that its list does not have. `path` is the element's key."""

    def __init__(self, path: KeyPath, length: int) -> None:
        super().__init__(
            f"{key_text(path)} does not exist: the list has {length} elements",
            hint="elements are counted from 0; `+=` adds one",
        )
        self.path = path


class Put(msgspec.Struct, frozen=True):
    """The value is replaced, whatever it was."""

    value: Any


class Unset(msgspec.Struct, frozen=True):
    """The value is as if no layer had said anything: the default, or no entry."""


class ReplaceItems(msgspec.Struct, frozen=True):
    """The list is these elements."""

    items: tuple[Any, ...]
    discard_when_merged: bool = False


class AddItems(msgspec.Struct, frozen=True):
    """These elements are added, at the end or in `front`."""

    items: tuple[Any, ...]
    front: bool = False
    discard_when_merged: bool = False


class ChangeItem(msgspec.Struct, frozen=True):
    """One element, counted from 0, is changed."""

    index: int
    change: Change
    discard_when_merged: Literal[False] = False


ListStep = ReplaceItems | AddItems | ChangeItem
"""With `discard_when_merged` nothing is left of it once a more specific layer says anything of the list."""


class ListChange(msgspec.Struct, frozen=True, kw_only=True):
    """Steps in order. The last layer that says anything of `dedup` decides; none does: `dedup_default`."""

    steps: tuple[ListStep, ...]
    dedup: bool | None = None
    dedup_default: bool = False


class TextStep(msgspec.Struct, frozen=True, kw_only=True):
    """Text that replaces, or that is added; `separator` then stands between it and the rest, unless that is empty.

    With `discard_when_merged` nothing is left of it once a more specific layer says anything of the text.
    """

    text: str
    strategy: Literal["append", "prepend", "replace"] = "replace"
    separator: Separator = "paragraph"
    discard_when_merged: bool = False


class TextChange(msgspec.Struct, frozen=True):
    """Steps in order, on an empty text where nothing replaces: a default vanishes."""

    steps: tuple[TextStep, ...]


class MapChange(msgspec.Struct, frozen=True):
    """Entries are changed; with `replace` there are no others."""

    entries: Mapping[str, Change] = {}
    replace: bool = False


Change = Put | Unset | ListChange | TextChange | MapChange


def merge(lower: Change, upper: Change) -> Change:
    """Return one change that does what `lower` and then `upper` do."""
    match upper:
        case Put() | Unset():
            return upper
        case MapChange():
            return _merged_map(lower, upper)
        case ListChange():
            return _merged_list(lower, upper)
        case TextChange():
            return _merged_text(lower, upper)
        case _:
            assert_never(upper)


def merge_all(changes: Iterable[MapChange]) -> MapChange:
    """Return one change that does what all do, in order."""
    total = MapChange()
    for change in changes:
        total = _merged_map(total, change)
    return total


def _merged_map(lower: Change, upper: MapChange) -> MapChange:
    if upper.replace:
        return upper
    if not isinstance(lower, MapChange):
        return MapChange(upper.entries, replace=True)
    entries = dict(lower.entries)
    for name, change in upper.entries.items():
        entries[name] = merge(entries[name], change) if name in entries else change
    return MapChange(entries, replace=lower.replace)


def _merged_list(lower: Change, upper: ListChange) -> ListChange:
    steps: tuple[ListStep, ...] = (ReplaceItems(()),)
    dedup = upper.dedup
    if isinstance(lower, ListChange):
        steps = _lasting(lower.steps)
        dedup = lower.dedup if dedup is None else dedup
    steps += upper.steps
    return ListChange(steps=steps[_last_replacing(steps) :], dedup=dedup, dedup_default=upper.dedup_default)


def _last_replacing(steps: tuple[ListStep | TextStep, ...]) -> int:
    found = (index for index, step in enumerate(steps) if _replaces(step) and not step.discard_when_merged)
    return max(found, default=0)


def _replaces(step: ListStep | TextStep) -> bool:
    return step.strategy == "replace" if isinstance(step, TextStep) else isinstance(step, ReplaceItems)


def lasting(change: Change) -> Change:
    """Return what remains of a change after a more specific layer changes the same value."""
    if isinstance(change, ListChange | TextChange):
        return msgspec.structs.replace(change, steps=_lasting(change.steps))
    return change


_Step = TypeVar("_Step", bound=ListStep | TextStep)


def _lasting(steps: tuple[_Step, ...]) -> tuple[_Step, ...]:
    return tuple(step for step in steps if not step.discard_when_merged)


def _merged_text(lower: Change, upper: TextChange) -> TextChange:
    below = _lasting(lower.steps) if isinstance(lower, TextChange) else (TextStep(text=""),)
    steps = below + upper.steps
    return TextChange(steps[_last_replacing(steps) :])


def applied(change: Change, value: Any = msgspec.UNSET, path: KeyPath = (), *, lenient: bool = False) -> Any:
    """Apply a change to `value` (plain data, UNSET for none) and return the result, UNSET if nothing remains.

    `lenient`: an element that its list does not have is not changed.

    Raises:
        ConfigurationError: an index lies outside its list; `path` is where `value` stands.
    """
    match change:
        case Put(value=new):
            return new
        case Unset():
            return msgspec.UNSET
        case MapChange():
            return _applied_map(change, value, path, lenient=lenient)
        case ListChange():
            return _applied_list(change, value, path, lenient=lenient)
        case TextChange():
            return _applied_text(change, value)
        case _:
            assert_never(change)


def _applied_map(change: MapChange, value: Any, path: KeyPath, *, lenient: bool) -> dict[str, Any]:
    entries: dict[str, Any] = (
        dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) and not change.replace else {}
    )
    for name, below in change.entries.items():
        new = applied(below, entries.get(name, msgspec.UNSET), (*path, name), lenient=lenient)
        if new is msgspec.UNSET:
            entries.pop(name, None)
        else:
            entries[name] = new
    return entries


def _applied_list(change: ListChange, value: Any, path: KeyPath, *, lenient: bool) -> list[Any]:
    items: list[Any] = [] if value is msgspec.UNSET else list(value)
    dedup = change.dedup_default if change.dedup is None else change.dedup
    for step in change.steps:
        match step:
            case ReplaceItems(items=new):
                items = list(new)
            case AddItems(items=new, front=front):
                items = [*new, *items] if front else [*items, *new]
            case ChangeItem(index=index, change=below):
                items = _unique(items) if dedup else items
                if index < len(items):
                    item = applied(below, items[index], (*path, str(index)), lenient=lenient)
                    items = _with_item(items, index, item)
                elif not lenient:
                    raise NoSuchElementError((*path, str(index)), len(items))
            case _:
                assert_never(step)
    return _unique(items) if dedup else items


def _with_item(items: list[Any], index: int, item: Any) -> list[Any]:
    new = [] if item is msgspec.UNSET else [item]
    return [*items[:index], *new, *items[index + 1 :]]


def _unique(items: list[Any]) -> list[Any]:
    try:
        return list(dict.fromkeys(items))
    except TypeError:  # tables cannot be hashed
        return [item for index, item in enumerate(items) if item not in items[:index]]


def _applied_text(change: TextChange, value: Any) -> str:
    text: str = "" if value is msgspec.UNSET else value
    for step in change.steps:
        parts = (text, step.text) if step.strategy == "append" else (step.text, text)
        text = step.text if step.strategy == "replace" else SEPARATORS[step.separator].join(filter(None, parts))
    return text


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
    "cfg": phrase(Option.CONFIG),
    "flag": "the option",
}


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The source of a value. `where` is a file's path, a variable's name, an option as it was typed."""

    kind: LayerKind
    where: str = ""

    @property
    def text(self) -> str:
        """Return the origin in words, for errors and for `config show`."""
        return join(" ", (_WORDS[self.kind], self.where))


DEFAULT = Origin(kind="default")


_Tree: TypeAlias = "dict[str, Origin | _Tree | None]"
"""The origins of a table's values, by name."""


class UnsupportedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of the original JP that jp ignores, or reads as something else: `reading` in words."""

    path: KeyPath
    value: Any
    reading: str = ""


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one source.

    `foreign` layers may have been written by a stranger: a cloned workspace's. `reaches` are the files outside the
    workspace that such a layer's `extends` pulled in, and `reached` is the real path of one of these. `accepted` are
    hashes of what the user has accepted for the conversation that it belongs to. `source` is a file's text, to say
    where in it a key stands. `unsupported` is what it says to the original JP alone.
    """

    origin: Origin
    change: MapChange
    source: str = ""
    foreign: bool = False
    reaches: tuple[str, ...] = ()
    reached: str = ""
    accepted: frozenset[str] = frozenset()
    unsupported: tuple[UnsupportedSetting, ...] = ()

    def said_at(self, path: KeyPath) -> str:
        """Return the origin in words, with the line of the key, or of a key above it, in a file."""
        from jp.config.positions import place_of

        place = place_of(self.source, path) if self.source else None
        return self.origin.text if place is None else phrase(self.origin.text, f", line {place.line}")


class Ignored(msgspec.Struct, frozen=True, kw_only=True):
    """A foreign layer's value that is ignored until the user accepts it.

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
        """Return the key as text."""
        return key_text(self.path)

    @property
    def text(self) -> str:
        """Return the key, the value and its origin in words."""
        return phrase(f"{self.key} = {self.value!r} (", self.origin, ")")


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
        """Return the origin of a key's value; parts of elements and entries have the origin of the whole."""
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
    """Return the configuration that a change makes of the defaults.

    Raises:
        ConfigurationError: it names an element that does not exist, or leaves one without what it needs.
    """
    return config_from(applied(change))


def config_from(plain: JsonObject) -> AppConfig:
    """Return the configuration of plain data without defaults.

    Raises:
        ConfigurationError: an element lacks what it needs.
    """
    try:
        return msgspec.convert(folded(APP, plain), AppConfig)
    except msgspec.ValidationError as error:
        msg = f"the configuration comes to an invalid value: {error}"
        raise ConfigurationError(msg) from None


def as_data(config: AppConfig) -> JsonObject:
    """Return every key with its value as plain data; None for no value."""
    data: JsonObject = msgspec.json.decode(msgspec.json.encode(config))
    return unfolded(APP, data)


def _blamed(layers: Sequence[Layer], error: ConfigurationError) -> ConfigurationError:
    """Return the error with the first layer that causes it."""
    layer = next(layer for count, layer in enumerate(layers, 1) if not _is_valid(layers[:count]))
    where = layer.said_at(error.path) if isinstance(error, NoSuchElementError) else layer.origin.text
    return ConfigurationError(phrase(where, ": ", error.message), hint=error.hint)


def _is_valid(layers: Sequence[Layer]) -> bool:
    try:
        config_of(merge_all(layer.change for layer in layers))
    except ConfigurationError:
        return False
    return True


def origins_of(layers: Sequence[Layer]) -> dict[str, Origin]:
    """Return the origin of each key that a layer sets: the last layer that does."""
    tree: Origin | _Tree | None = None
    for layer in layers:
        tree = _traced(layer.change, layer.origin, tree)
    return {key_text(path): origin for path, origin in _listed(tree, ())}


def _traced(change: Change, origin: Origin, below: Origin | _Tree | None) -> Origin | _Tree | None:
    """Return the origin of a value after a change by `origin`; of a table, the origins of its entries."""
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
    """A layer's change of a key; `fresh`: without the changes of lower layers."""

    layer: Layer
    change: Change
    fresh: bool = False


def contributions(layers: Sequence[Layer], path: KeyPath) -> list[Contribution]:
    """Return the contributions of all layers to a key, least specific first.

    Where it takes away what is above the key, it unsets the key.
    """
    found = ((layer, _said_at(layer.change, path)) for layer in layers)
    return [Contribution(layer, *said) for layer, said in found if said is not None]


def _said_at(change: Change, path: KeyPath) -> tuple[Change, bool] | None:
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
