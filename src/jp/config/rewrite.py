"""New data for the text of a TOML file, with its comments, order and spelling kept.

What exists is changed in place. What is new goes to the end of its table, or into a new table at the file's end. Every
step is read back: a form that does not say the right thing in this file gives way to the next one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, cast

import msgspec

from jp.config.keys import KeyPath, parse_key
from jp.errors import ConfigurationError

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
