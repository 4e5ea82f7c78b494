"""One `--cfg` value: the name of a fragment, a JSON object, or a key with a value.

`key=value` sets from text, `key:=json` from JSON (`null` unsets), `key+=value` and `key:+=json` add.
"""

from __future__ import annotations

import re
from typing import Any, Literal, assert_never

import msgspec

from jp.config.invalid import InvalidValueError, unexpected, unknown
from jp.config.keys import KeyPath, is_index, key_text, parse_key
from jp.config.merge import (
    AddItems,
    Change,
    ChangeItem,
    ListChange,
    MapChange,
    ReplaceItems,
    TextChange,
    TextStep,
    Unset,
)
from jp.config.partial import read_partial, read_value, unset
from jp.config.schema import APP, Free, Items, MergedText, Names, Node, Scalar, Table, expected
from jp.errors import reason_of

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
    """The assignment of `text` to `path`. `prefix` stood before the `=`: `:` (JSON), `+` (add), both, or nothing.

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
    """What the value asks for.

    Raises:
        ConfigurationError: a key is unknown, or does not accept its value.
    """
    if isinstance(value, JsonPatch):
        return read_partial(value.value, root)
    node = node_at(value.path, root)
    change = _added(node, value, root) if value.operator == "+=" else _set(node, value, root)
    return _nested(value.path, change, root)


def node_at(path: KeyPath, root: Table = APP) -> Node:
    """What may stand at `path`; a name of digits below a list is one of its elements.

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
            raise InvalidValueError(message, path, hint=f"Set {key_text(path[:-1])!r} itself.")
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
            raise InvalidValueError(message, path, hint="Set it with `=` or `:=`.")
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
            raise unexpected(node, text, path, hint=f"Give it as JSON: `{key_text(path)}:={{…}}`.")
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
        hint = "A text is JSON only in double quotes; `=` takes it as it is."
        raise InvalidValueError(message, path, hint=hint) from None
