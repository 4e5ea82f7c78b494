"""Show the configuration in effect: a value, all of it as TOML, and how each layer contributed to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from jp.config.assignment import node_at
from jp.config.layers import (
    DEFAULT,
    AddItems,
    Change,
    ChangeItem,
    Contribution,
    Layer,
    ListChange,
    ListStep,
    MapChange,
    Origin,
    Put,
    ReplaceItems,
    Resolved,
    TextChange,
    applied,
    as_data,
    contributions,
    lasting,
)
from jp.config.model import AppConfig, JsonObject
from jp.config.positions import Position, place_of
from jp.config.schema import Field, Free, Items, KeyPath, MergedText, Names, Node, Scalar, Table, key_text, parse_key
from jp.config.toml import is_array_of_tables, toml_key, toml_value
from jp.errors import ConfigurationError
from jp.remedies import SetSettings, phrase


def value_at(config: AppConfig, key: str) -> Any:
    """Return the value of a key as plain data, also of a table, a list or an element.

    Raises:
        ConfigurationError: the key is unknown, or there is no such entry or element.
    """
    path = parse_key(key)
    node_at(path)
    value: Any = as_data(config)
    for count, name in enumerate(path):
        match value:
            case dict() if name in value:
                value = cast("JsonObject", value)[name]
            case list() | tuple() if int(name) < len(cast("list[Any]", value)):
                value = cast("list[Any]", value)[int(name)]
            case _:
                msg = f"nothing is configured at {key_text(path[: count + 1])!r}"
                raise ConfigurationError(msg, hint=phrase("set it with `", SetSettings((f"{key}=VALUE",)), "`"))
    return value


def origins_at(resolved: Resolved, key: str) -> str | dict[str, str]:
    """Return the origin of a key's value; of a table, the origin of each key in it that some layer sets.

    Raises:
        ConfigurationError: the key is unknown, or there is no such entry or element.
    """
    path = parse_key(key)
    is_whole = any(key_text(path[:count]) in resolved.origins for count in range(1, len(path) + 1))
    if is_whole or not isinstance(value_at(resolved.config, key), dict):
        return resolved.origin(path).text
    below = f"{key_text(path)}."
    return {known: origin.text for known, origin in resolved.origins.items() if known.startswith(below)}


def value_text(value: Any) -> str:
    """Return a value as `config get` prints it: a string as it is, nothing for no value, everything else as JSON."""
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return msgspec.json.encode(value).decode()


def as_toml(resolved: Resolved, *, with_origins: bool = False, worded: Callable[[str], str] = str) -> str:
    """Return every key that has a value, as a valid file, with origins, `worded`, as comments behind the values."""

    def comment(path: KeyPath) -> str:
        text = worded(resolved.origin(path).text) if with_origins else ""
        return f"  # {text if text.isprintable() else repr(text)}" if text else ""

    lines = list(_table(as_data(resolved.config), (), comment))
    return "\n".join(lines).strip("\n") + "\n"


def _table(data: JsonObject, path: KeyPath, comment: Callable[[KeyPath], str]) -> Iterator[str]:
    entries = {name: value for name, value in data.items() if value is not None and value != {}}
    apart = {name for name, value in entries.items() if isinstance(value, dict) or is_array_of_tables(value)}
    if path and (len(apart) < len(entries) or not entries):
        yield f"\n[{toml_key(path)}]"
    for name, value in entries.items():
        if name not in apart:
            yield f"{toml_key((name,))} = {toml_value(_without_null(value))}{comment((*path, name))}"
    for name, value in entries.items():
        if isinstance(value, dict):
            yield from _table(cast("JsonObject", value), (*path, name), comment)
        elif name in apart:
            yield from _array_of_tables(value, (*path, name), comment)


def _array_of_tables(tables: list[JsonObject], path: KeyPath, comment: Callable[[KeyPath], str]) -> Iterator[str]:
    for table in tables:
        yield f"\n[[{toml_key(path)}]]{comment(path)}"
        yield from (f"{toml_key((name,))} = {toml_value(value)}" for name, value in _without_null(table).items())


def _without_null(value: Any) -> Any:
    match value:
        case dict():
            entries = cast("JsonObject", value).items()
            return {name: _without_null(below) for name, below in entries if below is not None}
        case list() | tuple():
            return [_without_null(item) for item in cast("list[Any]", value) if item is not None]
        case _:
            return value


class ElementOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """An element, and who brought and changed it: positions in the list of contributions, counted from 0."""

    value: Any
    sources: tuple[int, ...]


def counts_once(contributions: Sequence[Contribution], *, default: bool) -> bool:
    """Return whether a repeated element counts once after all layers."""
    dedup: bool | None = None
    for contribution in contributions:
        own = contribution.change.dedup if isinstance(contribution.change, ListChange) else None
        dedup = own if own is not None or contribution.fresh else dedup
    return default if dedup is None else dedup


def last_reset(contributions: Sequence[Contribution]) -> int:
    """Return the index of the last contribution that drops earlier elements; -1 for none."""
    found = (
        index
        for index, contribution in enumerate(contributions)
        if contribution.fresh or any(isinstance(step, ReplaceItems) for step in _steps(contribution))
    )
    return max(found, default=-1)


def element_origins(contributions: Sequence[Contribution], path: KeyPath, *, dedup: bool) -> tuple[ElementOrigin, ...]:
    """Return the elements of the list at `path` with their origins, as `jp.config.layers` merges them."""
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


Action = Literal["default", "set", "append", "prepend", "replace", "change", "merge", "unset"]
Effect = Literal["in effect", "in part", "no effect", "replaced", "ignored until trusted"]
_IGNORED: Effect = "ignored until trusted"

Leaf = Scalar | Free | MergedText | Items
"""A value that is merged as a whole."""

Distrusted = Callable[[Layer, KeyPath], bool]
"""Returns whether a layer's value of a key is ignored until trusted."""

TABLE_RULE = "a table is merged key by key"
_RULES: Mapping[type[Leaf], str] = {
    Scalar: "a later layer replaces an earlier one",
    Free: "a later layer replaces an earlier one; tables are merged key by key",
    MergedText: "a later layer replaces an earlier one, or adds to it where it says so; the default then vanishes",
    Items: "a later layer adds to an earlier one, or replaces it where it says so",
}

_DISCARDED = "; with `discard_when_merged`, an earlier one has no effect once a later one says anything"


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A layer's statement on a key; `value` is plain data, UNSET for none.

    `place` is where in a file it says so. What is not `trusted` is ignored before the user has accepted it.
    """

    origin: Origin
    action: Action
    value: Any
    effect: Effect
    place: Position | None = None
    trusted: bool = True


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A key that is merged as a whole, and what the layers say of it, the default first.

    `value` is absent where nothing is configured. The `sources` of a list's `elements` are indexes of statements.
    """

    key: str
    value: Any
    rule: str
    statements: tuple[Statement, ...]
    elements: tuple[ElementOrigin, ...] = ()

    @property
    def is_default(self) -> bool:
        """Return whether no layer sets it."""
        return len(self.statements) == 1

    @property
    def waits_for_trust(self) -> bool:
        """Return whether a statement on the value is ignored until trusted."""
        return any(statement.effect == _IGNORED for statement in self.statements)


def explain(resolved: Resolved, key: str, distrusted: Distrusted) -> tuple[Any, tuple[Explanation, ...]]:
    """Return the value of a key, UNSET if it has none any more, and an explanation of each key at and below it.

    A table has an explanation for each key in it; what lies in a list is explained by the list.

    Raises:
        ConfigurationError: the key is unknown, or nothing was ever configured there.
    """
    path = parse_key(key)
    node_at(path)
    whole = next((path[:count] for count in range(1, len(path)) if isinstance(node_at(path[:count]), Items)), path)
    reader = _Reader(resolved, distrusted)
    found = tuple(reader.explanation(leaf, node) for leaf, node in reader.leaves(whole, node_at(whole)))
    try:
        return value_at(resolved.config, key), found
    except ConfigurationError:
        value = reader.value(path)
        if value is msgspec.UNSET and (whole != path or all(each.is_default for each in found)):
            raise
        return value, found


class _Reader:
    def __init__(self, resolved: Resolved, distrusted: Distrusted) -> None:
        self._resolved = resolved
        self._distrusted = distrusted

    def leaves(self, path: KeyPath, node: Node) -> Iterator[tuple[KeyPath, Leaf]]:
        """Yield the keys at and below `path` that are merged as a whole."""
        match node:
            case Table():
                for name, below in self._entries(path, node):
                    yield from self.leaves((*path, name), below)
            case Names(value=below):
                for name in self._names(path):
                    yield from self.leaves((*path, name), below)
            case Free() if isinstance(self.value(path), dict):
                for name in self._names(path):
                    yield from self.leaves((*path, name), node)
            case _:
                yield path, node

    def _entries(self, path: KeyPath, table: Table) -> Iterator[tuple[str, Node]]:
        named = self._names(path) if table.is_sparse else table.fields
        yield from ((name, field.node) for name, field in table.fields.items() if name in named)
        if table.others is not None:
            yield from ((name, table.others.value) for name in self._names(path) if name not in table.fields)

    def explanation(self, path: KeyPath, node: Leaf) -> Explanation:
        """Return the explanation of one key."""
        said = contributions(self._resolved.layers, path)
        value = self.value(path)
        trusted = [one for one in said if not self._distrusted(one.layer, path)]
        counted = _heard(trusted)
        rule = _RULES[type(node)] + ("" if counted == trusted else _DISCARDED)
        elements: tuple[ElementOrigin, ...] = ()
        if isinstance(node, Items):
            dedup = counts_once(counted, default=node.dedup)
            rule += "; a repeated element counts once" if dedup else ""
            elements = element_origins(counted, path, dedup=dedup)
            effects = _list_effects(counted, elements)
            elements = _by_statement(elements, said, trusted) if _is_said(trusted) else _by_default(node)
            if len(trusted) < len(said) and [element.value for element in elements] != value:
                elements = ()  # of an ignored list, what makes others stricter is kept
        else:
            effects = _effects(counted)
        # A table of the user's own that a later layer takes out has no defaults any more.
        default = msgspec.UNSET if value is msgspec.UNSET else _default(_field(path))
        first = Statement(origin=DEFAULT, action="default", value=default, effect=effects[0])
        found = iter(effects[1:])
        rest = (self._statement(one, path, next(found) if one in trusted else _IGNORED) for one in said)
        return Explanation(key=key_text(path), value=value, rule=rule, statements=(first, *rest), elements=elements)

    def value(self, path: KeyPath) -> Any:
        """Return the value at `path`, or its default if a sparse table lacks it."""
        try:
            return value_at(self._resolved.config, key_text(path))
        except ConfigurationError:
            field = _field(path)
            is_there = field is not None and self.value(path[:-1]) is not msgspec.UNSET
            return _default(field) if is_there else msgspec.UNSET

    def _names(self, path: KeyPath) -> list[str]:
        """Return the names of the entries at `path`, with those that a later layer removes."""
        value = self.value(path)
        names: dict[str, None] = dict.fromkeys(cast("dict[str, Any]", value) if isinstance(value, dict) else ())
        for contribution in contributions(self._resolved.layers, path):
            if isinstance(contribution.change, MapChange):
                names |= dict.fromkeys(contribution.change.entries)
        return list(names)

    def _statement(self, said: Contribution, path: KeyPath, effect: Effect) -> Statement:
        action, value = _asked(said.change)
        source = said.layer.source
        return Statement(
            origin=said.layer.origin,
            action=action,
            value=value,
            effect=effect,
            place=place_of(source, path) if source else None,
            trusted=effect != _IGNORED,
        )


def _heard(said: Sequence[Contribution]) -> list[Contribution]:
    """Return what remains of the contributions after the last one."""
    return [*map(_lasting, said[:-1]), *said[-1:]]


def _lasting(said: Contribution) -> Contribution:
    return Contribution(said.layer, lasting(said.change), said.fresh)


def _is_discarded(said: Contribution) -> bool:
    """Return whether nothing remains of the contribution."""
    return isinstance(said.change, ListChange | TextChange) and not said.change.steps


def _is_said(said: Sequence[Contribution]) -> bool:
    """Return whether the last statement is about the list itself; if its table is removed, its default holds."""
    return bool(said) and isinstance(said[-1].change, ListChange)


def _by_statement(
    elements: Sequence[ElementOrigin], said: Sequence[Contribution], trusted: Sequence[Contribution]
) -> tuple[ElementOrigin, ...]:
    """Return the elements with indexes of statements, of which the default is the first."""
    places = [said.index(one) + 1 for one in trusted]
    moved = ((element.value, tuple(places[source] for source in element.sources)) for element in elements)
    return tuple(ElementOrigin(value=value, sources=sources) for value, sources in moved)


def _by_default(node: Items) -> tuple[ElementOrigin, ...]:
    return tuple(ElementOrigin(value=value, sources=(0,)) for value in node.default)


def _field(path: KeyPath) -> Field | None:
    *above, name = path
    table = node_at(tuple(above))
    return table.fields.get(name) if isinstance(table, Table) else None


def _default(field: Field | None) -> Any:
    if field is None:
        return msgspec.UNSET
    return {} if isinstance(field.node, Table | Names) else field.default


def _asked(change: Change) -> tuple[Action, Any]:
    match change:
        case Put(value=value):
            return "set", value
        case ListChange(steps=steps):
            return _asked_of_list(steps)
        case TextChange(steps=steps):
            last = steps[-1]
            return "set" if last.strategy == "replace" else last.strategy, last.text
        case MapChange(entries=entries) if entries:
            return "merge", applied(change)
        case _:
            return "unset", msgspec.UNSET


def _asked_of_list(steps: Sequence[ListStep]) -> tuple[Action, Any]:
    changed = [step for step in steps if isinstance(step, ChangeItem)]
    if changed:
        return "change", {str(step.index): _without_unset(applied(step.change)) for step in changed}
    items = [item for step in steps if not isinstance(step, ChangeItem) for item in step.items]
    match steps[-1]:
        case AddItems(front=front):
            return "prepend" if front else "append", items
        case _:
            return "replace", items


def _without_unset(value: Any) -> Any:
    return None if value is msgspec.UNSET else value


def _effects(said: Sequence[Contribution]) -> list[Effect]:
    """Return the effect of the default and of each statement on a single value."""
    effects: list[Effect] = ["in effect"]
    for one in said:
        is_discarded = _is_discarded(one)
        is_added = (is_discarded or _asked(one.change)[0] in {"append", "prepend"}) and not one.fresh
        effects = [effect if is_added and index else "replaced" for index, effect in enumerate(effects)]
        effects.append("no effect" if is_discarded else "in effect")
    if said and _asked(said[-1].change)[0] == "unset":
        effects[0] = "in effect"
    return effects


def _list_effects(said: Sequence[Contribution], elements: Sequence[ElementOrigin]) -> list[Effect]:
    """Return the effect of the default and of each statement on a list."""
    reset = last_reset(said)
    effects: list[Effect] = ["replaced" if _is_said(said) else "in effect"]
    for index, one in enumerate(said):
        if _is_discarded(one):
            effects.append("no effect")
            continue
        action, asked = _asked(one.change)
        brought = 0 if asked is msgspec.UNSET else len(asked)
        kept = sum(index in element.sources for element in elements)
        if index < reset:
            effects.append("replaced")
        elif index == reset or action == "change" or kept == brought:
            effects.append("in effect")
        else:
            effects.append("in part" if kept else "no effect")
    return effects
