"""Check the data of a layer, or one `--cfg` value, against the schema and turn it into changes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NoReturn, assert_never, cast

import msgspec

from jp.config.layers import (
    SEPARATORS,
    AddItems,
    Change,
    ChangeItem,
    ListChange,
    ListStep,
    MapChange,
    Put,
    ReplaceItems,
    TextChange,
    TextStep,
    Unset,
    applied,
)
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
    example,
    expected,
    got,
    is_index,
    key_text,
    parse_key,
    unexpected,
    unknown,
)
from jp.errors import reason_of

_DEEPEST = 32
"""No file written by hand nests deeper, and code may walk a change by recursion."""

_INTEGERS = range(-(2**63), 2**63)
_STRATEGIES = ("append", "prepend", "replace")
_DISCARD = "discard_when_merged"


Refuse = Callable[[InvalidValueError], None]
"""Raises the error, or collects it; the value is then skipped."""


def raising(error: InvalidValueError) -> NoReturn:
    """Refuse at the first error."""
    raise error.explained()


def read_partial(raw: Mapping[str, Any], root: Table = APP, *, refuse: Refuse = raising) -> MapChange:
    """Return the change that `raw`, plain data of TOML or JSON, asks for."""
    return _Reader(root, refuse).table(root, raw, ())


def read_value(node: Node, value: Any, path: KeyPath, root: Table) -> Change:
    """Return the change that `value` asks for at `path`, whose schema is `node`; raise errors."""
    change = _Reader(root, raising).node(node, value, path)
    return unset(node) if change is None else change


def unset(node: Node) -> Change:
    """Return the change that `null` asks for."""
    match node:
        case Table() | Names():
            return MapChange(replace=True)
        case Items(default=default, dedup=dedup):
            return ListChange(steps=(ReplaceItems(default),), dedup_default=dedup)
        case Free() | MergedText() | Scalar():
            return Unset()
        case _:
            assert_never(node)


class _Reader:
    """One pass over one layer."""

    def __init__(self, root: Table, refuse: Refuse) -> None:
        self._root = root
        self._refuse = refuse

    def node(self, node: Node, value: Any, path: KeyPath) -> Change | None:
        """Return the change, or None if the value was refused."""
        change: Change | None
        match node:
            case _ if value is None:
                change = unset(node)
            case Table():
                change = self.table(node, value, path)
            case Names(value=below):
                change = self._names(node, below, value, path)
            case Items():
                change = self._items(node, value, path)
            case MergedText():
                change = self._text(node, value, path)
            case Free() | Scalar():
                change = self._single(node, value, path)
            case _:
                assert_never(node)
        return change

    def table(self, table: Table, value: Any, path: KeyPath) -> MapChange:
        """Return the change of a table with known keys; empty if the value is no table."""
        entries: dict[str, Change] = {}
        for name, below in self._entries(table, value, path).items():
            node = table.node(name)
            if node is None:
                self._refuse(unknown((*path, name), table, self._root))
                continue
            is_entry_removed = below is None and name not in table.fields
            change = Unset() if is_entry_removed else self.node(node, below, (*path, name))
            if change is not None:
                entries[name] = change
        return MapChange(entries)

    def _entries(self, node: Node, value: Any, path: KeyPath) -> Mapping[str, Any]:
        if len(path) > _DEEPEST:
            message = f"{key_text(path[:4])}… is nested too deeply"
            self._refuse(InvalidValueError(message, path, hint=f"at most {_DEEPEST} tables can be nested"))
        elif isinstance(value, Mapping):
            return cast("Mapping[str, Any]", value)
        else:
            self._refuse(unexpected(node, value, path))
        return {}

    def _names(self, node: Node, below: Node, value: Any, path: KeyPath) -> MapChange:
        raw = self._entries(node, value, path)
        replace = False
        if is_long_map(raw):
            raw, replace = raw["value"], raw["strategy"] == "replace"
        entries: dict[str, Change] = {}
        for name, entry in raw.items():
            change = Unset() if entry is None else self.node(below, entry, (*path, name))
            if change is not None:
                entries[name] = change
        return MapChange(entries, replace=replace)

    def _single(self, node: Free | Scalar, value: Any, path: KeyPath) -> Change | None:
        if isinstance(node, Free) and isinstance(value, Mapping):
            return self._names(node, node, value, path)
        if _is_json(value) if isinstance(node, Free) else _fits(node.annotation, value):
            return Put(value)
        self._refuse(unexpected(node, value, path))
        return None

    def _items(self, node: Items, value: Any, path: KeyPath) -> Change | None:
        steps: tuple[ListStep, ...] | None = None
        dedup = None
        if isinstance(value, Mapping):
            form = cast("Mapping[str, Any]", value)
            if "value" in form:
                dedup = self._option(form, "dedup", (True, False, "inherit"), path)
                strategy = self._option(form, "strategy", _STRATEGIES, path)
                discard = self._option(form, _DISCARD, (True, False), path)
                steps = self._added(node, form["value"], path, strategy or "append", discard=bool(discard))
                self._only(form, ("value", "strategy", "dedup", _DISCARD), path)
            elif form and all(is_index(name) for name in form):
                steps = self._changed_items(node, form, path)
        elif isinstance(value, list | tuple):
            steps = self._added(node, value, path, "append")
        if steps is None:
            self._refuse(unexpected(node, value, path))
            return None
        if not steps:  # of the elements that it changes, all were refused
            return None
        return ListChange(steps=steps, dedup=dedup if isinstance(dedup, bool) else None, dedup_default=node.dedup)

    def _added(
        self, node: Items, value: Any, path: KeyPath, strategy: str, *, discard: bool = False
    ) -> tuple[ListStep, ...] | None:
        if not isinstance(value, list | tuple):
            return None
        elements = cast("list[Any]", value)
        read = (self._element(node.element, item, (*path, str(index))) for index, item in enumerate(elements))
        items = tuple(item for item in read if item is not msgspec.UNSET)
        if strategy == "replace":
            return (ReplaceItems(items, discard_when_merged=discard),)
        return (AddItems(items, front=strategy == "prepend", discard_when_merged=discard),)

    def _element(self, node: Node, value: Any, path: KeyPath) -> Any:
        if value is None or (isinstance(node, Table) and not isinstance(value, Mapping)):
            self._refuse(unexpected(node, value, path))
            return msgspec.UNSET
        change = self.node(node, value, path)
        plain: Any = msgspec.UNSET if change is None else applied(change)
        if isinstance(node, Table):
            missing = [name for name, field in node.fields.items() if field.required and name not in plain]
            if missing:
                hint = f"add `{missing[0]} = {example(node.fields[missing[0]].node)}` to it"
                self._refuse(InvalidValueError(f"{key_text(path)} lacks {missing[0]!r}", path, hint=hint))
                return msgspec.UNSET
        return plain

    def _changed_items(self, node: Items, form: Mapping[str, Any], path: KeyPath) -> tuple[ListStep, ...]:
        steps: list[ListStep] = []
        for name, item in form.items():
            change = Unset() if item is None else self.node(node.element, item, (*path, name))
            if change is not None:
                steps.append(ChangeItem(int(name), change))
        return tuple(steps)

    def _text(self, node: MergedText, value: Any, path: KeyPath) -> Change | None:
        if isinstance(value, str):
            return TextChange((TextStep(text=value),))
        form = cast("Mapping[str, Any]", value if isinstance(value, Mapping) else {})
        text = form.get("value")
        if not isinstance(text, str):
            self._refuse(unexpected(node, value, path))
            return None
        strategy = self._option(form, "strategy", _STRATEGIES, path)
        separator = self._option(form, "separator", tuple(SEPARATORS), path)
        discard = self._option(form, _DISCARD, (True, False), path)
        self._only(form, ("value", "strategy", "separator", _DISCARD), path)
        step = TextStep(
            text=text,
            strategy=strategy or "replace",
            separator=separator or "paragraph",
            discard_when_merged=bool(discard),
        )
        return TextChange((step,))

    def _option(self, form: Mapping[str, Any], name: str, choices: tuple[Any, ...], path: KeyPath) -> Any:
        value = form.get(name)
        if value is None or any(type(value) is type(choice) and value == choice for choice in choices):
            return value
        words = ", ".join(got(choice) for choice in choices)
        place = (*path, name)
        message = f"{key_text(place)} expects one of {words}, got {got(value)}"
        self._refuse(InvalidValueError(message, place, hint="remove it, or write one of these"))
        return None

    def _only(self, form: Mapping[str, Any], names: tuple[str, ...], path: KeyPath) -> None:
        for name in form:
            if name not in names:
                message = f"{key_text((*path, name))!r} is not known here"
                hint = f"known here: {', '.join(names)}"
                self._refuse(InvalidValueError(message, (*path, name), hint=hint, of_key=True))


def is_long_map(raw: Mapping[str, Any]) -> bool:
    """Return whether a table with free names is meant as `{value, strategy}`."""
    if set(raw) != {"value", "strategy"} or not isinstance(raw["value"], Mapping):
        return False
    return isinstance(raw["strategy"], str) and raw["strategy"] in {"merge", "replace"}


def _fits(annotation: Any, value: Any) -> bool:
    try:
        msgspec.convert(value, annotation)
    except msgspec.ValidationError:
        return False
    return not isinstance(value, int | float) or _is_number(value)


def _is_number(value: float) -> bool:
    return value in _INTEGERS if isinstance(value, int) else math.isfinite(value)


def _is_json(value: Any, levels: int = _DEEPEST) -> bool:
    match value:
        case None | str() | bool():
            return True
        case int() | float():
            return _is_number(value)
        case list() | tuple() if levels:
            return all(_is_json(item, levels - 1) for item in cast("list[Any]", value))
        case dict() if levels:
            return all(_is_json(item, levels - 1) for item in cast("dict[str, Any]", value).values())
        case _:
            return False


Operator = Literal["=", "+="]

_ASSIGNMENT = r"""(?s)((?:"[^"]*"|'[^']*'|[^"'=])*?)(:\+|\+|:)?=(.*)"""


class FragmentName(msgspec.Struct, frozen=True, kw_only=True):
    """A file, or the name of one. `forced` (`@…`) takes it as a path even where it has no ending."""

    name: str
    forced: bool = False


class JsonPatch(msgspec.Struct, frozen=True):
    """An object that is merged at the root."""

    value: dict[str, Any]


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A key and what becomes of it. `value` is plain data that the key accepts; None unsets."""

    path: KeyPath
    operator: Operator
    value: Any


CfgValue = FragmentName | JsonPatch | Assignment


def parse_cfg(text: str, root: Table = APP) -> CfgValue:
    """Read one value, checking an assignment's key and value against `root`.

    Raises:
        ConfigurationError: it has no meaning, its key is unknown, or the key does not accept the value.
    """
    if text.startswith("@"):
        return FragmentName(name=text[1:], forced=True)
    if text.startswith("{"):
        return JsonPatch(_json(text, ()))
    match = re.fullmatch(_ASSIGNMENT, text)
    if match is None:
        return FragmentName(name=text)
    return assign(parse_key(match[1]), match[2] or "", match[3], root=root)


def assign(path: KeyPath, prefix: str, text: str, *, root: Table = APP) -> Assignment:
    """Return the assignment of `text` to `path`; before its `=`, `prefix` is `:` (JSON), `+` (add), both, or empty.

    Raises:
        ConfigurationError: the key is unknown, or does not accept the value.
    """
    node = node_at(path, root)
    operator: Operator = "+=" if "+" in prefix else "="
    value = _json(text, path) if ":" in prefix else _from_text(node, text, path)
    assignment = Assignment(path=path, operator=operator, value=value)
    change_of(assignment, root)
    return assignment


def change_of(value: JsonPatch | Assignment, root: Table = APP) -> MapChange:
    """Return the change that the value asks for.

    Raises:
        ConfigurationError: a key is unknown, or does not accept its value.
    """
    if isinstance(value, JsonPatch):
        return read_partial(value.value, root)
    node = node_at(value.path, root)
    change = _added(node, value, root) if value.operator == "+=" else _set(node, value, root)
    return _nested(value.path, change, root)


def node_at(path: KeyPath, root: Table = APP) -> Node:
    """Return the schema of `path`; a name of digits below a list is one of its elements.

    Raises:
        InvalidValueError: nothing may.
    """
    node: Node = root
    for index, name in enumerate(path):
        node = _below(node, name, path[: index + 1], root)
    return node


def _below(node: Node, name: str, path: KeyPath, root: Table) -> Node:
    match node:
        case Table():
            known = node.node(name)
            if known is None:
                raise unknown(path, node, root).explained()
            return known
        case Names(value=below):
            return below
        case Items(element=below) if is_index(name):
            return below
        case Free():
            return node
        case Items() | Scalar() | MergedText():
            message = f"unknown key {key_text(path)!r}; {key_text(path[:-1])!r} is {expected(node)}"
            raise InvalidValueError(message, path, hint=f"set {key_text(path[:-1])!r} itself")
        case _:
            assert_never(node)


def _nested(path: KeyPath, change: Change, root: Table) -> MapChange:
    for index in range(len(path) - 1, 0, -1):
        above = node_at(path[:index], root)
        if isinstance(above, Items):
            step = ChangeItem(int(path[index]), change)
            change = ListChange(steps=(step,), dedup_default=above.dedup)
        else:
            change = MapChange({path[index]: change})
    return MapChange({path[0]: change})


def _set(node: Node, assignment: Assignment, root: Table) -> Change:
    path = assignment.path
    if assignment.value is None:
        above = node_at(path[:-1], root)
        is_entry = path[-1] not in above.fields if isinstance(above, Table) else True
        return Unset() if is_entry else unset(node)
    change = read_value(node, assignment.value, path, root)
    if isinstance(change, MapChange):
        return MapChange(change.entries, replace=True)
    if isinstance(change, ListChange) and isinstance(assignment.value, list):
        items = tuple(item for step in change.steps if isinstance(step, AddItems) for item in step.items)
        return ListChange(steps=(ReplaceItems(items),), dedup_default=change.dedup_default)
    return change


def _added(node: Node, assignment: Assignment, root: Table) -> Change:
    value = assignment.value
    path = assignment.path
    match node:
        case Items():
            return read_value(node, value if isinstance(value, list) or _is_long_form(value) else [value], path, root)
        case MergedText() if isinstance(value, str):
            return TextChange((TextStep(text=value, strategy="append"),))
        case Table() | Names():
            return read_value(node, value, path, root)
        case Free() if isinstance(value, dict):
            return read_value(node, value, path, root)
        case Free() | Scalar() | MergedText():
            message = f"nothing can be added to {key_text(path)!r}, which is {expected(node)}"
            raise InvalidValueError(message, path, hint="set it with `=` or `:=`")
        case _:
            assert_never(node)


def _is_long_form(value: Any) -> bool:
    return isinstance(value, dict) and "value" in value


def _from_text(node: Node, text: str, path: KeyPath) -> Any:
    match node:
        case Scalar(annotation=annotation):
            try:
                return msgspec.convert(text, annotation, strict=False)
            except msgspec.ValidationError:
                raise unexpected(node, text, path) from None
        case MergedText():
            return text
        case Items(element=element):
            parts = text.split(",") if text else []
            return [_from_text(element, part.strip(), (*path, str(index))) for index, part in enumerate(parts)]
        case Free():
            return _free_from_text(text)
        case Table() | Names():
            raise unexpected(node, text, path, hint=f"give it as JSON: `{key_text(path)}:={{…}}`")
        case _:
            assert_never(node)


def _free_from_text(text: str) -> Any:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return value if isinstance(value, int | float) else text


def _json(text: str, path: KeyPath) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"{key_text(path) if path else repr(text)} is not given as JSON: {reason_of(error)}"
        hint = "a text is JSON only in double quotes; `=` takes it as it is"
        raise InvalidValueError(message, path, hint=hint) from None
