"""Changes: what one layer asks for, how two become one, and what they come to.

`merge` is associative, and `MapChange()` is its identity, for changes that were read against one schema: layers may be
grouped in any way, only their order counts. Hence also `applied(merge(a, b), value) == applied(b, applied(a, value))`,
except for what is only known once all layers are: whether a list's duplicates count, and whether anything is said after
what is then discarded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, assert_never, cast

import msgspec

from jp.config.keys import KeyPath, key_text
from jp.errors import ConfigurationError

Separator = Literal["none", "space", "line", "paragraph"]
SEPARATORS: Mapping[Separator, str] = {"none": "", "space": " ", "line": "\n", "paragraph": "\n\n"}


class NoSuchElementError(ConfigurationError):
    """A layer changes an element that its list does not have. `path` is the element's key."""

    def __init__(self, path: KeyPath, length: int) -> None:
        super().__init__(
            f"{key_text(path)} does not exist: the list has {length} elements",
            hint="Elements are counted from 0; `+=` adds one.",
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
    """The one change that does what `lower` and then `upper` do."""
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
    """One change that does what all do, in order."""
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
    """What is left of a change once a more specific layer says anything about the same value."""
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
    """What `value` (plain data; absent if not given) becomes, or `msgspec.UNSET` where nothing is left.

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
