"""Formats of configuration files besides TOML: JSON, JSON5 and YAML, which the original JP reads, too.

It is imported where such a file is found, and each library where its format is. Nothing here knows jp's settings.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from jp.config.schema import KeyPath
from jp.config.toml import Data
from jp.errors import reason_of

if TYPE_CHECKING:
    from yaml import Node, SafeLoader

_MOST_DEPTH = 200
_MOST_VALUES = 50_000
"""YAML can name a value many times, so a small file may hold more than any memory."""

_JSON_POSITION = r"\s*\(byte (\d+)\)$"
_JSON5_POSITION = r"near (\d+)"
_JSON_HINT = "JSON quotes every key and has no comments; `.json5` is less strict"
_HINT = "a configuration is a table of keys and values"


class MalformedError(Exception):
    """A text is not of its format. `line` and `column` count from 1."""

    def __init__(self, problem: str, line: int, column: int, *, hint: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.column = column
        self.hint = hint


def load(text: str, suffix: str) -> Data:
    """Return the data of a text whose file has this ending.

    Raises:
        MalformedError: it is not of that format, no table of named values, or too large.
        RecursionError: it is nested too deeply.
    """
    reader = {".json": _load_json, ".json5": _load_json5}.get(suffix, _load_yaml)
    return _checked(reader(text))


def _load_json(text: str) -> Any:
    data = text.encode()
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        problem = reason_of(error)
    match = re.search(_JSON_POSITION, problem)
    offset = len(data[: int(match[1])].decode(errors="ignore")) if match is not None else len(text)
    raise _malformed(re.sub(_JSON_POSITION, "", problem), text, offset, _JSON_HINT)


def _load_json5(text: str) -> Any:
    import pyjson5

    try:
        return pyjson5.decode(text, maxdepth=_MOST_DEPTH)
    except pyjson5.Json5NestingTooDeep:
        raise RecursionError from None
    except pyjson5.Json5DecoderException as error:
        match = re.search(_JSON5_POSITION, str(error))
        offset = max(0, int(match[1]) - 1) if match is not None else len(text)
    raise _malformed("it is not JSON5", text, offset, _HINT)


def _load_yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.load(text, _yaml_loader())  # noqa: S506 - a loader of plain data alone
    except yaml.MarkedYAMLError as error:
        found = error
    except (yaml.YAMLError, ValueError, TypeError):
        raise _malformed("it is not YAML", text, len(text), _HINT) from None
    mark = found.problem_mark or found.context_mark
    problem = found.problem or found.context or "it is not YAML"
    raise _malformed(problem, text, len(text) if mark is None else mark.index, _HINT)


def _malformed(problem: str, text: str, offset: int, hint: str) -> MalformedError:
    line = text.count("\n", 0, offset) + 1
    return MalformedError(problem, line, offset - text.rfind("\n", 0, offset), hint=hint)


@functools.cache
def _yaml_loader() -> type[SafeLoader]:
    """Return a loader of plain data whose words are those of YAML 1.2: `on`, `no` and a date are texts."""
    import yaml

    base = cast("type[SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    loader = type("Loader", (base,), {})
    kept = {"tag:yaml.org,2002:null", "tag:yaml.org,2002:merge"}
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag in kept]
        for first, resolvers in base.yaml_implicit_resolvers.items()
    }
    for tag, pattern, first in (
        ("bool", r"(?:true|True|TRUE|false|False|FALSE)\Z", "tTfF"),
        ("int", r"[-+]?(?:0|[1-9][0-9]*)\Z", "-+0123456789"),
        ("float", r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z", "-+.0123456789"),
    ):
        for start in first:
            resolvers = loader.yaml_implicit_resolvers.setdefault(start, [])
            resolvers.append((f"tag:yaml.org,2002:{tag}", re.compile(pattern)))
    return loader


_COMMENT = r"""("(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')|//[^\n]*+|/\*.*?\*/"""


def offsets(text: str) -> Mapping[KeyPath, tuple[int, int]]:
    """Return the offsets at which each key, or element of a list, and its value begin; elements are named by index.

    JSON is YAML as well, and JSON5 mostly is, without its comments: where it is not, no offset is known.
    """
    import yaml

    without_comments = re.sub(_COMMENT, _blank, text, flags=re.DOTALL)
    if without_comments.lstrip().startswith("{"):
        text = without_comments.replace("\t", " ")
    found: dict[KeyPath, tuple[int, int]] = {}
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return found
    waiting: list[tuple[KeyPath, object]] = [((), root)]
    while waiting and len(found) < _MOST_VALUES:
        path, node = waiting.pop()
        for place, start, below in _named_nodes(node, path):
            found[place] = (start, below.start_mark.index)
            waiting.append((place, below))
    return found


def _blank(match: re.Match[str]) -> str:
    return match[0] if match[1] is not None else re.sub(r"[^\n]", " ", match[0])


def _named_nodes(node: object, path: KeyPath) -> Iterator[tuple[KeyPath, int, Node]]:
    """Yield the entries of a table or a list: the path, the offset of the key or the element, and the value."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        for key, below in node.value:
            yield (*path, str(key.value)), key.start_mark.index, below
    elif isinstance(node, yaml.SequenceNode):
        for index, below in enumerate(node.value):
            yield (*path, str(index)), below.start_mark.index, below


def _checked(data: Any) -> Data:
    """Return data that is a table, and can be walked: not too deep, not too large, with texts as keys."""
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise MalformedError("it is no table of named values", 1, 1, hint=_HINT)
    level: list[object] = [cast("object", data)]
    count = 0
    for _ in range(_MOST_DEPTH):
        level = [below for value in level for below in _below(value)]
        count += len(level)
        if not level:
            return cast("Data", data)
        if count > _MOST_VALUES:
            raise MalformedError(f"it holds more than {_MOST_VALUES:,} values", 1, 1, hint=_HINT)
    raise RecursionError


def _below(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        entries = cast("dict[object, object]", value)
        for name in entries:
            if not isinstance(name, str):
                msg = f"a key must be a text, got {name!r}"
                raise MalformedError(msg, 1, 1, hint="put it in quotes")
        return entries.values()
    return cast("list[object]", value) if isinstance(value, list) else ()
