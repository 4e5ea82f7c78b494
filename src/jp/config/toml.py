"""Read, locate, edit and format TOML: tomllib says what a text means, tomlkit keeps how it is written.

Nothing here knows jp's settings. tomlkit is imported on use: a query only reads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec

from jp.config.schema import KeyPath
from jp.errors import ConfigurationError

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.container import Container
    from tomlkit.items import Item, Key

Data = dict[str, Any]
_Body: TypeAlias = "list[tuple[Key | None, Item]]"

_MOST_DEPTH = 200
_LONG_KEY = r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){200}"""
"""So many names with dots between them are a key, or no text that a person writes."""


class UnwritableError(ConfigurationError):
    """tomlkit cannot change this text without changing what else it says."""

    def __init__(self) -> None:
        super().__init__("the file is written in a way that tomlkit cannot keep", hint="edit it by hand")


def load_toml(text: str) -> Data:
    """Return the data of a text, nested no deeper than recursive code can read.

    Raises:
        TOMLDecodeError: it is not TOML.
        RecursionError: it is nested too deeply.
    """
    import tomllib

    # The library takes the square of a key's length.
    if text.count(".") > _MOST_DEPTH and re.search(_LONG_KEY, text):
        raise RecursionError
    found = tomllib.loads(text)
    level: list[object] = [found]
    for _ in range(_MOST_DEPTH):
        level = [below for value in level for below in _below(value)]
        if not level:
            return found
    raise RecursionError


def _below(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def toml_value(value: Any) -> str:
    """Return a value in TOML, on one line unless it is a string of several."""
    import tomlkit

    match value:
        case str():
            several = "\n" in value and "\r" not in value  # TOML may read a carriage return as no part of the text
            return tomlkit.string(value, multiline=several).as_string()
        case list() | tuple():
            return f"[{', '.join(toml_value(item) for item in cast('list[Any]', value))}]"
        case dict():
            entries = [f"{toml_key((name,))} = {toml_value(below)}" for name, below in cast("Data", value).items()]
            return f"{{ {', '.join(entries)} }}" if entries else "{}"
        case bool():
            return str(value).lower()
        case _:
            return repr(value)


def toml_key(path: KeyPath) -> str:
    """Return a key in TOML, with quotes around the names that need them."""
    import tomlkit

    return ".".join(tomlkit.key(name).as_string() for name in path)


def is_array_of_tables(value: Any) -> bool:
    """Return whether a value is a list of tables, which has a form of its own."""
    items = cast("list[Any]", value if isinstance(value, list) else [])
    return bool(items) and all(isinstance(item, dict) for item in items)


def rewritten(text: str, new: Data) -> str:
    """Return `text`, which is TOML, changed to say `new`; comments and order stay. Tables without keys do not count.

    Raises:
        UnwritableError: tomlkit cannot read the text, or writes something else.
    """
    result = text.replace("\r\n", "\n")
    reached = load_toml(result)
    for path, value in _differences(load_toml(result), new, ()):
        _put(reached, path, value)
        found = (_attempt(result, path, value, reached, is_inline=is_inline) for is_inline in (False, True))
        changed = next((each for each in found if each is not None), None)
        if changed is None:
            raise UnwritableError
        result = changed
    return result.replace("\n", "\r\n") if "\r\n" in text else result


def _put(data: Data, path: KeyPath, value: Any) -> None:
    for name in path[:-1]:
        data = data.setdefault(name, {})
    if value is msgspec.UNSET:
        del data[path[-1]]
    else:
        data[path[-1]] = value


def _attempt(text: str, path: KeyPath, value: Any, said: Data, *, is_inline: bool) -> str | None:
    """Return the text with a change, None where tomlkit fails or it does not say `said`.

    `is_inline`: new tables are written in braces.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        changed = _with_change(text, path, value, is_inline=is_inline)
        tomlkit.parse(changed)  # so that the file can be changed again
        return changed if _canonical(load_toml(changed)) == _canonical(said) else None
    except (TOMLKitError, LookupError, TypeError, ValueError, AttributeError):
        return None


def _differences(old: Data, new: Data, path: KeyPath) -> list[tuple[KeyPath, Any]]:
    """Return the keys whose values differ, with the new one; UNSET where a key is gone."""
    found: list[tuple[KeyPath, Any]] = []
    for name, before in old.items():
        after = new.get(name, msgspec.UNSET)
        if isinstance(before, dict) and isinstance(after, dict):
            found += _differences(cast("Data", before), cast("Data", after), (*path, name))
        elif after is msgspec.UNSET or _canonical(before) != _canonical(after):
            found.append(((*path, name), after))
    for name, value in new.items():
        if name not in old and isinstance(value, dict) and value:
            found += _differences({}, cast("Data", value), (*path, name))
        elif name not in old:
            found.append(((*path, name), cast("Any", value)))
    return found


def _canonical(data: Any) -> bytes:
    return msgspec.json.encode(_without_empty_tables(data), order="sorted")


def _without_empty_tables(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    entries = {name: _without_empty_tables(below) for name, below in cast("Data", data).items()}
    return {name: below for name, below in entries.items() if below != {}}


def _with_change(text: str, path: KeyPath, value: Any, *, is_inline: bool) -> str:
    # One change for each document: after a second one in tables that are written out of order tomlkit loses track.
    import tomlkit
    from tomlkit.items import InlineTable

    document = tomlkit.parse(text if text.endswith("\n") or not text else f"{text}\n")
    known = {id(item) for item, *_ in _written(document)}
    table, name = document, path[-1]
    for count, above in enumerate(path[:-1], 2):
        if above not in table:
            is_super = count < len(path) or is_array_of_tables(value)
            table[above] = tomlkit.inline_table() if is_inline else tomlkit.table(is_super_table=is_super)
        table = cast("TOMLDocument", table[above])
        is_inline = is_inline or isinstance(table, InlineTable)
    before: Any = cast("Data", table).get(name)
    if value is msgspec.UNSET:
        del table[name]
    elif (added := _added_items(before, value)) is not None:
        for item in added:
            before.append(item if isinstance(item, dict) else tomlkit.value(toml_value(item)))
    elif before is None and not is_array_of_tables(value):
        _add(table, name, tomlkit.value(toml_value(value)))
    else:
        table[name] = tomlkit.value(toml_value(value)) if is_inline else _new_item(value)
    _space_around_new(document, known)
    return document.as_string()


def _added_items(old: Any, new: Any) -> list[Any] | None:
    """Return what a list has at its end that it did not have; None where more has changed."""
    if not (isinstance(old, list) and isinstance(new, list)):
        return None
    before, after = cast("list[Any]", old), cast("list[Any]", new)
    return after[len(before) :] if after[: len(before)] == before else None


def _space_around_new(document: TOMLDocument, known: Collection[int]) -> None:
    """Put an empty line before each header that is not among the `known` items, and before the next one."""
    from tomlkit.items import Comment, Table, Whitespace

    above: Item | None = None
    is_new = False
    for item, *_ in _written(document):
        if isinstance(item, Table):
            was_new, is_new = is_new, id(item) not in known
            if (is_new or was_new) and above is not None and not isinstance(above, Comment | Whitespace):
                item.trivia.indent = "\n"
        above = item


def _add(table: Any, name: str, item: Item) -> None:
    """Add a key behind the last one of a table: before the comments on the next header, which tomlkit counts to it."""
    from tomlkit.container import Container
    from tomlkit.items import AoT, Table, Whitespace

    container = table.value if isinstance(table, Table) else table
    body = container.body if isinstance(container, Container) else []
    tables = (
        at for at, (key, each) in enumerate(body) if isinstance(each, Table | AoT) and not (key and key.is_dotted())
    )
    stop = next(tables, len(body))
    while stop and body[stop - 1][0] is None:
        stop -= 1
    rest = body[stop:]
    del body[stop:]
    table[name] = item
    if not stop and rest and not isinstance(rest[0][1], Whitespace):
        body.append((None, Whitespace("\n")))
    body += rest


def _new_item(value: Any) -> Item:
    import tomlkit

    if not is_array_of_tables(value):
        return tomlkit.value(toml_value(value))
    tables = tomlkit.aot()
    for entries in cast("list[Data]", value):
        table = tomlkit.table()
        for name, below in entries.items():
            table[name] = tomlkit.value(toml_value(below))
        cast("Any", tables).append(table)
    return tables


def formatted(text: str) -> str:
    """Return the text with plain white space: no indentation, at most one empty line, one before each table.

    Values, comments and their order stay, and so does what is in brackets. Formatting twice changes nothing more.

    Raises:
        UnwritableError: tomlkit cannot read the text, or writes something else.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    lines = text.replace("\r\n", "\n")
    try:
        document = tomlkit.parse(lines)
    except (TOMLKitError, RecursionError):
        raise UnwritableError from None
    _space(document)
    new = document.as_string()
    is_same_text = "".join(new.split()) == "".join(lines.split())
    if not (is_same_text and msgspec.json.encode(load_toml(new)) == msgspec.json.encode(load_toml(lines))):
        raise UnwritableError
    return new.replace("\n", "\r\n") if "\r\n" in text else new


def _space(document: TOMLDocument) -> None:
    from tomlkit.items import Comment, SingleKey, Table, Whitespace

    above: Item | None = None
    is_after_gap = False
    for item, body, index in _written(document):
        key = body[index][0]
        if isinstance(item, Whitespace):
            is_after_gap = is_after_gap or "\n" in item.s
            body[index] = (None, Whitespace(""))
            continue
        if isinstance(key, SingleKey) and not isinstance(item, Table):
            body[index] = (SingleKey(key.key, sep=" = ", original=key.as_string().strip()), item)
        has_gap = is_after_gap or (isinstance(item, Table) and not isinstance(above, Comment))
        trivia = item.trivia
        trivia.indent = "\n" if has_gap and above is not None else ""
        trivia.comment = trivia.comment.rstrip()
        trivia.comment_ws = "  " if trivia.comment and not isinstance(item, Comment) else ""
        trivia.trail = "\n"
        above, is_after_gap = item, False


def _written(container: Container) -> Iterator[tuple[Item, _Body, int]]:
    """Yield what is written, in order, and where it is kept: pairs, tables with a header, comments, white space."""
    from tomlkit.items import AoT, Table

    for index, (key, item) in enumerate(container.body):
        if not isinstance(item, Table | AoT):
            yield item, container.body, index
            continue
        has_header = isinstance(item, AoT) or not (item.is_super_table() or (key and key.is_dotted()))
        for table in item.body if isinstance(item, AoT) else [item]:
            if has_header:
                yield table, container.body, index
            yield from _written(table.value)
