"""The elements of a list, each with the statements that it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from jp.config.keys import KeyPath
from jp.config.layers import Contribution
from jp.config.merge import AddItems, ChangeItem, ListChange, ListStep, ReplaceItems, applied


class ElementOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """An element, and who brought and changed it: positions in the list of contributions, counted from 0."""

    value: Any
    sources: tuple[int, ...]


def counts_once(contributions: Sequence[Contribution], *, default: bool) -> bool:
    """Whether a repeated element counts once, after all that was said of the list."""
    dedup: bool | None = None
    for contribution in contributions:
        own = contribution.change.dedup if isinstance(contribution.change, ListChange) else None
        dedup = own if own is not None or contribution.fresh else dedup
    return default if dedup is None else dedup


def last_reset(contributions: Sequence[Contribution]) -> int:
    """Which contribution is the last that drops what was there before; -1 where none does."""
    found = (
        index
        for index, contribution in enumerate(contributions)
        if contribution.fresh or any(isinstance(step, ReplaceItems) for step in _steps(contribution))
    )
    return max(found, default=-1)


def element_origins(contributions: Sequence[Contribution], path: KeyPath, *, dedup: bool) -> tuple[ElementOrigin, ...]:
    """The elements of the list at `path`, in order: what `jp.config.merge` comes to, and where it is from."""
    items: list[ElementOrigin] = []
    for source, contribution in enumerate(contributions):
        if contribution.fresh:
            items = []
        for step in _steps(contribution):
            if isinstance(step, ChangeItem):
                items = _changed(_unique(items) if dedup else items, step, source, path)
            else:
                items = _added(items, step, source)
    return tuple(_unique(items) if dedup else items)


def _steps(contribution: Contribution) -> tuple[ListStep, ...]:
    return contribution.change.steps if isinstance(contribution.change, ListChange) else (ReplaceItems(()),)


def _added(items: list[ElementOrigin], step: ReplaceItems | AddItems, source: int) -> list[ElementOrigin]:
    added = [ElementOrigin(value=item, sources=(source,)) for item in step.items]
    if isinstance(step, ReplaceItems):
        return added
    return [*added, *items] if step.front else [*items, *added]


def _changed(items: list[ElementOrigin], step: ChangeItem, source: int, path: KeyPath) -> list[ElementOrigin]:
    old = items[step.index]
    value = applied(step.change, old.value, (*path, str(step.index)))
    changed = [] if value is msgspec.UNSET else [ElementOrigin(value=value, sources=(*old.sources, source))]
    return [*items[: step.index], *changed, *items[step.index + 1 :]]


def _unique(items: Sequence[ElementOrigin]) -> list[ElementOrigin]:
    unique: list[ElementOrigin] = []
    for item in items:
        if all(item.value != other.value for other in unique):
            unique.append(item)
    return unique
