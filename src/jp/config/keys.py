"""Key paths: `assistant.model.id` as a person writes it, and as a tuple of names."""

from __future__ import annotations

import functools
import re

from jp.errors import ConfigurationError

KeyPath = tuple[str, ...]

_NAME = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^\s."'=]+))\s*(\.|$)""")
_BARE = re.compile(r"[A-Za-z0-9_*-]+")
_MOST_NAMES = 64
"""More than tables may stand in each other."""

_SHOWN = 60
_INDEX = re.compile(r"[0-9]{1,9}")


def parse_key(text: str) -> KeyPath:
    """Split at the dots. A name with dots or spaces is in quotes, as in TOML.

    Raises:
        ConfigurationError: a name is empty, a quote is not closed, or there are more names than tables in each other.
    """
    names: list[str] = []
    position = 0
    more = True
    while more:
        match = _NAME.match(text, position)
        if match is None:
            msg = f"{text!r} is not a key"
            raise ConfigurationError(msg, hint="Keys look like `assistant.model.id`; see them with `jp config show`.")
        if len(names) == _MOST_NAMES:
            shown = f"{text[:_SHOWN]}…"
            raise ConfigurationError(f"{shown!r} is nested too deeply", hint=f"A key has at most {_MOST_NAMES} names.")
        names.append(next(name for name in match.groups()[:3] if name is not None))
        position = match.end()
        more = match[4] == "."
    return tuple(names)


def key_text(path: KeyPath) -> str:
    """Return the path as text that `parse_key` reads back, unless a name holds both kinds of quotes."""
    return ".".join(_name_text(name) for name in path)


@functools.lru_cache(maxsize=4096)
def _name_text(name: str) -> str:
    if _BARE.fullmatch(name) is not None:
        return name
    return f'"{name}"' if '"' not in name else f"'{name}'"


def is_index(name: str) -> bool:
    """Return whether a name below a list is the index of an element, counted from 0."""
    return _INDEX.fullmatch(name) is not None
