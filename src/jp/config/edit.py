"""`jp config set`: one value of one file; the rest of the file stays as it was written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from jp.config.assignment import Assignment, FragmentName, JsonPatch, node_at, parse_cfg
from jp.config.invalid import InvalidValueError
from jp.config.keys import KeyPath, key_text
from jp.config.merge import SEPARATORS
from jp.config.partial import is_long_map
from jp.config.rewrite import Data, rewritten
from jp.config.schema import FILE, Free, Items, MergedText, Names, Node, Table
from jp.config.toml import checked, parse_toml, read_text
from jp.config.writing import exclusive, replace_file
from jp.errors import ConfigurationError


def set_in_file(path: Path, values: Sequence[str]) -> None:
    """Carry out assignments, as `--cfg` takes them, in a file, which is created where it is missing.

    `=` sets what the file says (a list adds to the layers below, as ever), `+=` adds to it, `key:=null` takes it out.
    The file is replaced in one step, and only by one that is valid.

    Raises:
        ConfigurationError: a value is no assignment or not accepted, or the file is invalid.
        StorageError: the file could not be written.
    """
    edits = [_edit(text) for text in values]
    with exclusive(path.parent):
        text = read_text(path) or ""
        checked(text, path)
        data = parse_toml(text, path)
        for edit in edits:
            data = edited(data, edit)
        new = rewritten(text, data)
        checked(new, path)
        if new != text:
            replace_file(path, new)


def _edit(text: str) -> JsonPatch | Assignment:
    value = parse_cfg(text, FILE)
    if isinstance(value, FragmentName):
        msg = f"{text!r} sets nothing"
        raise ConfigurationError(msg, hint="Write `KEY=VALUE`, or `KEY:=JSON`.")
    return value


def edited(data: Data, edit: JsonPatch | Assignment) -> Data:
    """What a file's data becomes.

    Raises:
        InvalidValueError: an element that the edit names is not in the file, or TOML cannot hold the value.
    """
    if isinstance(edit, JsonPatch):
        edit = Assignment(path=(), operator="+=", value=edit.value)
    new = _edited(data, edit, 0)
    return {} if new is msgspec.UNSET else new


def _edited(current: Any, edit: Assignment, depth: int) -> Any:
    """What stands at the first `depth` names of the edit's key afterwards; absent where nothing does."""
    path = edit.path
    node = node_at(path[:depth], FILE)
    if depth == len(path):
        return _set(edit.value, path) if edit.operator == "=" else _added(current, edit.value, node, path)
    if isinstance(node, Items):
        return _inside(node, current, lambda items: _edited_item(items, edit, depth), path[:depth])
    return _inside(node, current, lambda entries: _edited_entry(entries, edit, depth), path[:depth])


def _edited_entry(current: Any, edit: Assignment, depth: int) -> Any:
    name = edit.path[depth]
    entries: Data = {} if current is msgspec.UNSET else current
    return _with(entries, name, _edited(entries.get(name, msgspec.UNSET), edit, depth + 1))


def _edited_item(current: Any, edit: Assignment, depth: int) -> Any:
    items: list[Any] = [] if current is msgspec.UNSET else current
    index = int(edit.path[depth])
    if index >= len(items):
        message = f"{key_text(edit.path[: depth + 1])} is not in the file, whose list has {len(items)} elements"
        raise InvalidValueError(message, edit.path, hint="Elements are counted from 0; `+=` adds one.")
    new = _edited(items[index], edit, depth + 1)
    return [*items[:index], *([] if new is msgspec.UNSET else [new]), *items[index + 1 :]]


def _with(entries: Data, name: str, value: Any) -> Any:
    rest = {other: below for other, below in entries.items() if other != name}
    if value is msgspec.UNSET:
        return rest or msgspec.UNSET
    return entries | {name: value}


def _inside(node: Node, current: Any, change: Callable[[Any], Any], path: KeyPath) -> Any:
    """Change the value that `current` stands for: itself, or what its long form holds."""
    if not isinstance(current, dict) or isinstance(node, Table):
        return change(current)
    form = cast("Data", current)
    if is_long_map(form) or (isinstance(node, Items) and "value" in form):
        return _with(form, "value", change(form["value"]))
    if isinstance(node, Items):
        message = f"{key_text(path)} changes single elements in this file"
        raise InvalidValueError(message, path, hint="Edit the file by hand.")
    return change(form)


def _set(value: Any, path: KeyPath) -> Any:
    if value is None:
        return msgspec.UNSET
    if _has_null(value):
        message = f"{key_text(path)} would hold null, which TOML does not have"
        raise InvalidValueError(message, path, hint="`KEY:=null` takes one key out.")
    return value


def _has_null(value: Any) -> bool:
    match value:
        case dict():
            return any(_has_null(below) for below in cast("Data", value).values())
        case list():
            return any(_has_null(item) for item in cast("list[Any]", value))
        case _:
            return value is None


def _added(current: Any, value: Any, node: Node, path: KeyPath) -> Any:
    match node:
        case Items() if not _is_long(value):
            items = _set(value if isinstance(value, list) else [value], path)
            return _inside(node, current, lambda old: [*([] if old is msgspec.UNSET else old), *items], path)
        case MergedText() if isinstance(value, str):
            return _added_text(current, value)
        case Table() | Names() | Free() if isinstance(value, dict):
            return _inside(node, current, lambda old: _merged(old, cast("Data", value), path), path)
        case _:
            return _set(value, path)


def _is_long(value: Any) -> bool:
    return isinstance(value, dict) and "value" in value


def _added_text(current: Any, text: str) -> Any:
    if current is msgspec.UNSET:
        return {"value": text, "strategy": "append"}
    if isinstance(current, str):
        return SEPARATORS["paragraph"].join((current, text))
    form = cast("Data", current)
    return form | {"value": SEPARATORS[form.get("separator", "paragraph")].join((form["value"], text))}


def _merged(current: Any, value: Data, path: KeyPath) -> Any:
    entries: Any = {} if current is msgspec.UNSET else current
    for name, below in value.items():
        place = (*path, name)
        node = node_at(place, FILE)
        old = msgspec.UNSET if entries is msgspec.UNSET else entries.get(name, msgspec.UNSET)
        new = _set(below, place) if isinstance(node, MergedText) else _added(old, below, node, place)
        entries = _with({} if entries is msgspec.UNSET else entries, name, new)
    return entries
