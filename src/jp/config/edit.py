"""`jp config set`: one value of one file; the rest of the file keeps its text."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec

from jp.config.assignment import Assignment, FragmentName, JsonPatch, is_long_map, node_at, parse_cfg
from jp.config.files import checked, load_group, parse_toml, read_text
from jp.config.keys import KeyPath, key_text, parse_key
from jp.config.merge import SEPARATORS
from jp.config.schema import FILE, Free, InvalidValueError, Items, MergedText, Names, Node, Table
from jp.errors import ConfigurationError, StorageError

Data = dict[str, Any]
Form = Callable[[], str]

_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?$")
_ANY_HEADER = re.compile(r"\s*\[")
_TRIVIA = re.compile(r"\s*(?:#.*)?$")


def rewritten(text: str, new: Data) -> str:
    """The text that says `new` and is otherwise `text`, which is TOML. Tables without keys do not count.

    Raises:
        ConfigurationError: no form was found that says it.
    """
    import tomllib

    reached = tomllib.loads(text)
    for path, value in list(_changes(reached, new, ())):
        _put(reached, path, value)
        text = _first_that_says(reached, [partial(_changed, text, path, value)])
    for path, value in list(_additions(reached, new, ())):
        _put(reached, path, value)
        text = _first_that_says(reached, _forms(text, path, value))
    return text


def toml_value(value: Any) -> str:
    """A value in TOML, on one line unless it is a text of several."""
    import tomlkit

    match value:
        case str():
            several = "\n" in value and "\r" not in value  # TOML may read a carriage return as no part of the text
            return tomlkit.string(value, multiline=several).as_string()
        case list() | tuple():
            return f"[{', '.join(toml_value(item) for item in cast('list[Any]', value))}]"
        case dict():
            entries = [_key_value((name,), below) for name, below in cast("Data", value).items()]
            return f"{{ {', '.join(entries)} }}" if entries else "{}"
        case bool():
            return str(value).lower()
        case _:
            return repr(value)


def toml_key(path: KeyPath) -> str:
    """A key in TOML, its names in quotes where they have to be."""
    import tomlkit

    return ".".join(tomlkit.key(name).as_string() for name in path)


def _key_value(path: KeyPath, value: Any) -> str:
    return f"{toml_key(path)} = {toml_value(value)}"


def _changes(old: Data, new: Data, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """The keys of `old` with another value in `new`, or with none: absent."""
    for name, before in old.items():
        after = new.get(name, msgspec.UNSET)
        if _are_tables(before, after):
            yield from _changes(before, after, (*path, name))
        elif after is msgspec.UNSET or _canonical(before) != _canonical(after):
            yield (*path, name), after


def _additions(old: Data, new: Data, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """The keys of `new` that `old`, in which nothing else differs, lacks."""
    for name, value in new.items():
        if isinstance(value, dict) and value:
            yield from _additions(old.get(name, {}), cast("Data", value), (*path, name))
        elif name not in old:
            yield (*path, name), value


def _put(data: Data, path: KeyPath, value: Any) -> None:
    for name in path[:-1]:
        data = data.setdefault(name, {})
    if value is msgspec.UNSET:
        del data[path[-1]]
    else:
        data[path[-1]] = value


def _are_tables(old: Any, new: Any) -> bool:
    return isinstance(old, dict) and isinstance(new, dict)


def _first_that_says(data: Data, forms: Iterable[Form]) -> str:
    """The first form that says `data`, of which those go before that can be changed again."""
    import tomllib

    from tomlkit.exceptions import TOMLKitError

    found: str | None = None
    for form in forms:
        try:
            text = form()
            said = tomllib.loads(text)
        except (TOMLKitError, LookupError, TypeError, ValueError):
            continue
        if _canonical(said) != _canonical(data):
            continue
        if _can_be_changed(text):
            return text
        found = found or text
    if found is None:
        msg = "the file is written in a way that cannot be kept"
        raise ConfigurationError(msg, hint="Edit it by hand.")
    return found


def _can_be_changed(text: str) -> bool:
    # tomlkit does not read all that is TOML: of tables that are written out of order it sees some twice.
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        tomlkit.parse(text)
    except TOMLKitError:
        return False
    return True


def _canonical(data: Any) -> bytes:
    return msgspec.json.encode(_without_empty_tables(data), order="sorted")


def _without_empty_tables(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    entries = {name: _without_empty_tables(below) for name, below in cast("Data", data).items()}
    return {name: below for name, below in entries.items() if below != {}}


def _changed(text: str, path: KeyPath, value: Any) -> str:
    # One change for each document: after a second one in tables that are written out of order tomlkit loses track.
    import tomlkit

    document = tomlkit.parse(text)
    container: Any = document
    for name in path[:-1]:
        container = container[name]
    before = container[path[-1]]
    if value is msgspec.UNSET:
        del container[path[-1]]
    elif _has_grown(before, value):
        for item in value[len(before) :]:
            before.append(item)
    else:
        container[path[-1]] = value
    return document.as_string()


def _has_grown(old: Any, new: Any) -> bool:
    are_lists = isinstance(old, list) and isinstance(new, list)
    return are_lists and new[: len(cast("list[Any]", old))] == old


def _forms(text: str, path: KeyPath, value: Any) -> Iterator[Form]:
    lines = text.splitlines(keepends=True)
    headers = {key: index for index, line in enumerate(lines) if (key := _header(line)) is not None}
    here = _key_value(path[-1:], value)
    if is_array_of_tables(value):
        yield partial(_at_end, text, [_table(f"[[{toml_key(path)}]]", item) for item in value])
    if path[:-1] in headers:
        yield partial(_after, lines, headers[path[:-1]] + 1, here)
    if len(path) > 1:
        yield partial(_at_end, text, [f"[{toml_key(path[:-1])}]\n{here}"])
    for count in range(len(path) - 2, 0, -1):
        if path[:count] in headers:
            yield partial(_after, lines, headers[path[:count]] + 1, _key_value(path[count:], value))
    yield partial(_after, lines, 0, _key_value(path, value))
    yield partial(_assigned, text, path, value)


def _header(line: str) -> KeyPath | None:
    match = _HEADER.match(line)
    try:
        return None if match is None else parse_key(match[1].strip())
    except ConfigurationError:
        return None


def is_array_of_tables(value: Any) -> bool:
    """Whether a value is a list of tables, which has a form of its own."""
    items = cast("list[Any]", value if isinstance(value, list) else [])
    return bool(items) and all(isinstance(item, dict) for item in items)


def _table(header: str, entries: Data) -> str:
    return "\n".join([header, *(_key_value((name,), value) for name, value in entries.items())])


def _at_end(text: str, tables: list[str]) -> str:
    newline = _newline(text)
    before = text if not text or text.endswith("\n") else text + newline
    gap = newline if before else ""
    return before + gap + (newline * 2).join(table.replace("\n", newline) for table in tables) + newline


def _after(lines: list[str], start: int, line: str) -> str:
    """Put `line` behind the last key of the table whose lines start at `start`, and before what comments the next."""
    newline = _newline("".join(lines))
    stop = next((index for index in range(start, len(lines)) if _ANY_HEADER.match(lines[index])), len(lines))
    keys = [index for index in range(start, stop) if not _TRIVIA.match(lines[index])]
    position = keys[-1] + 1 if keys else start
    before, after = "".join(lines[:position]), "".join(lines[position:])
    if before and not before.endswith("\n"):
        before += newline
    gap = newline if position == 0 and after else ""
    return before + line.replace("\n", newline) + newline + gap + after


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _assigned(text: str, path: KeyPath, value: Any) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    container: Any = document
    for name in path[:-1]:
        if name not in container:
            container[name] = tomlkit.inline_table()
        container = container[name]
    container[path[-1]] = value
    return document.as_string()


_HINT = "Check who may write there, and that the disk has room; the file is as it was."


@contextmanager
def exclusive(directory: Path) -> Generator[None]:
    """Hold a lock on a directory, so that two commands do not undo each other's edit; make it where it is missing.

    Raises:
        StorageError: it cannot be used.
    """
    import fcntl

    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory, os.O_RDONLY)
    except OSError as error:
        msg = f"{str(directory)!r} cannot be used: {error.strerror}"
        raise StorageError(msg, hint=_HINT) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _check_extensions(written: Path, target: Path) -> None:
    """Refuse a file whose `extends` leads to what is not there, before it takes the place of one that could be read."""
    try:
        load_group(written, kind="user", root=None, foreign=False)
    except ConfigurationError as error:
        raise ConfigurationError(error.message.replace(str(written), str(target)), hint=error.hint) from None


def replace_file(path: Path, text: str) -> None:
    """Write a file beside `path` (where a link leads) and put it in its place, with its permissions.

    Raises:
        ConfigurationError: it extends what is not there; the file is as it was.
        StorageError: it could not be written; the file is as it was.
    """
    target = Path(os.path.realpath(path))
    written = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        written.unlink(missing_ok=True)
        handle = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "wb") as file:
            if target.exists():
                os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        if not path.is_symlink():  # what it extends is relative to the link
            _check_extensions(written, target)
        written.replace(target)
    except ConfigurationError:
        written.unlink(missing_ok=True)
        raise
    except OSError as error:
        written.unlink(missing_ok=True)
        msg = f"{str(path)!r} could not be written: {error.strerror}"
        raise StorageError(msg, hint=_HINT) from None


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
