"""The configuration that holds, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from jp.config.assignment import node_at
from jp.config.keys import KeyPath, key_text, parse_key
from jp.config.layers import Resolved, as_data
from jp.config.model import AppConfig, JsonObject
from jp.config.toml import is_array_of_tables, toml_key, toml_value
from jp.errors import ConfigurationError


def value_at(config: AppConfig, key: str) -> Any:
    """The value of a key, as plain data: a table's, a list's or an element's too.

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
                raise ConfigurationError(msg, hint=f"Set it with `jp config set {key}=VALUE`.")
    return value


def origins_at(resolved: Resolved, key: str) -> str | dict[str, str]:
    """Where the value of a key came from; of a table, of each key in it that is not at its default.

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
    """A value as `config get` prints it: a text as it is, nothing for no value, everything else as JSON."""
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return msgspec.json.encode(value).decode()


def as_toml(resolved: Resolved, *, with_origins: bool = False) -> str:
    """Every key that has a value, as a file that could be read. Origins stand behind the values as comments."""
    lines = list(_table(as_data(resolved.config), (), resolved if with_origins else None))
    return "\n".join(lines).strip("\n") + "\n"


def _table(data: JsonObject, path: KeyPath, resolved: Resolved | None) -> Iterator[str]:
    entries = {name: value for name, value in data.items() if value is not None and value != {}}
    apart = {name for name, value in entries.items() if isinstance(value, dict) or is_array_of_tables(value)}
    if path and (len(apart) < len(entries) or not entries):
        yield f"\n[{toml_key(path)}]"
    for name, value in entries.items():
        if name not in apart:
            yield f"{toml_key((name,))} = {toml_value(_without_null(value))}{_comment((*path, name), resolved)}"
    for name, value in entries.items():
        if isinstance(value, dict):
            yield from _table(cast("JsonObject", value), (*path, name), resolved)
        elif name in apart:
            yield from _array_of_tables(value, (*path, name), resolved)


def _array_of_tables(tables: list[JsonObject], path: KeyPath, resolved: Resolved | None) -> Iterator[str]:
    for table in tables:
        yield f"\n[[{toml_key(path)}]]{_comment(path, resolved)}"
        yield from (f"{toml_key((name,))} = {toml_value(value)}" for name, value in _without_null(table).items())


def _comment(path: KeyPath, resolved: Resolved | None) -> str:
    if resolved is None:
        return ""
    text = resolved.origin(path).text
    return f"  # {text if text.isprintable() else repr(text)}"


def _without_null(value: Any) -> Any:
    match value:
        case dict():
            entries = cast("JsonObject", value).items()
            return {name: _without_null(below) for name, below in entries if below is not None}
        case list() | tuple():
            return [_without_null(item) for item in cast("list[Any]", value) if item is not None]
        case _:
            return value
