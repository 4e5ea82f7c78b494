"""The schema of settings, read from the Structs of `model`: known keys, key paths, and errors about keys and values."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, assert_never, get_args, get_origin

import msgspec
from msgspec.structs import fields

from jp.config.entries import Direction, is_direction
from jp.config.model import AppConfig, FileConfig, Section
from jp.errors import ConfigurationError
from jp.remedies import Option, Show, UseOption, phrase

KeyPath = tuple[str, ...]

_NAME = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^\s."'=]+))\s*(\.|$)""")
_BARE = re.compile(r"[A-Za-z0-9_*-]+")
_MOST_NAMES = 64
"""Deeper than tables can be nested."""

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
            hint = phrase("keys look like `assistant.model.id`; see them with `", Show("settings"), "`")
            raise ConfigurationError(msg, hint=hint)
        if len(names) == _MOST_NAMES:
            shown = f"{text[:_SHOWN]}…"
            raise ConfigurationError(f"{shown!r} is nested too deeply", hint=f"a key has at most {_MOST_NAMES} names")
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


_LONGEST_QUOTE = 60


class Scalar(msgspec.Struct, frozen=True):
    """One value. `annotation` is what msgspec checks it against."""

    annotation: Any


class MergedText(msgspec.Struct, frozen=True):
    """A text that layers may add to."""


class Items(msgspec.Struct, frozen=True, kw_only=True):
    """A list. `default` holds plain data."""

    element: Node
    default: tuple[Any, ...] = ()
    dedup: bool = False


class Table(msgspec.Struct, frozen=True):
    """Fixed keys: the fields of a Struct. One of these may hold the values of all other names."""

    struct: type[Section]

    @property
    def fields(self) -> Mapping[str, Field]:
        """Return the fields by name, in the order of the Struct."""
        return _fields(self.struct)

    @property
    def is_sparse(self) -> bool:
        """Return whether its data lacks values that are defaults."""
        return self.struct.__struct_config__.omit_defaults

    @property
    def others(self) -> Others | None:
        """Return the schema of all other names."""
        return _others(self.struct)

    def node(self, name: str) -> Node | None:
        """Return the schema of a name, None if the table does not have it."""
        field = self.fields.get(name)
        if field is not None:
            return field.node
        return None if self.others is None else self.others.value


class Names(msgspec.Struct, frozen=True):
    """Any names, each with a value of one kind."""

    value: Node


class Free(msgspec.Struct, frozen=True):
    """Whatever JSON can hold."""


Node = Scalar | MergedText | Items | Table | Names | Free


class Others(msgspec.Struct, frozen=True):
    """The values of names that a table does not know: in the Struct, the field `name` holds them."""

    name: str
    value: Node


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A key of a table. `default` is plain data, absent where the key is required or holds a table.

    `direction` says who may set it; None where that is declared for what is in it. `is_entry`: it is one of a
    table's entries, which users name.
    """

    node: Node
    default: Any = msgspec.UNSET
    required: bool = False
    direction: Direction | None = None
    is_entry: bool = False


APP = Table(AppConfig)
"""The settings that any layer may have."""

FILE = Table(FileConfig)
"""The settings that a file may have."""


@functools.cache
def _fields(struct: type[Section]) -> Mapping[str, Field]:
    found: dict[str, Field] = {}
    for info in fields(struct):
        annotation, direction = _directed(info.type)
        if _is_rest(annotation):
            continue
        default = msgspec.UNSET if info.default is msgspec.NODEFAULT else msgspec.to_builtins(info.default)
        node = _node(annotation, default)
        found[info.name] = Field(
            node=node,
            default=msgspec.UNSET if isinstance(node, Table) else default,
            required=info.required,
            direction=direction,
        )
    return found


@functools.cache
def _others(struct: type[Section]) -> Others | None:
    for info in fields(struct):
        annotation, _ = _directed(info.type)
        if _is_rest(annotation):
            node = _node(annotation)
            return Others(info.name, node.value) if isinstance(node, Names) else None
    return None


def _is_rest(annotation: Any) -> bool:
    return bool(_without_metadata(annotation)[1].get("rest"))


def _directed(annotation: Any) -> tuple[Any, Direction | None]:
    """Return a type without the direction that it declares, and that direction."""
    if get_origin(annotation) is not Annotated:
        return annotation, None
    bare, *metadata = get_args(annotation)
    directions = [meta for meta in metadata if is_direction(meta)]
    others = tuple(meta for meta in metadata if not is_direction(meta))
    rest = Annotated[(bare, *others)] if others else bare
    return rest, directions[0] if directions else None


def _node(annotation: Any, default: Any = msgspec.UNSET) -> Node:
    bare, extra = _without_metadata(annotation)
    if bare is Any:
        return Free()
    if extra.get("merged"):
        return MergedText()
    if isinstance(bare, type) and issubclass(bare, Section):
        return Table(bare)
    match get_origin(bare), get_args(bare):
        case origin, (element, _) if origin is tuple:
            items = () if default is msgspec.UNSET else tuple(default)
            return Items(element=_node(element), default=items, dedup=bool(extra.get("dedup")))
        case origin, (_, value) if origin is dict:
            return Names(_node(value))
        case _:
            return Scalar(annotation)


def _without_metadata(annotation: Any) -> tuple[Any, Mapping[str, Any]]:
    if get_origin(annotation) is not Annotated:
        return annotation, {}
    bare, meta = get_args(annotation)
    return bare, meta.extra or {}


def known_keys(table: Table, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Field]]:
    """Yield every key that holds a value, in order; `*` is any name."""
    for name, field in table.fields.items():
        match field.node:
            case Table() as below:
                yield from known_keys(below, (*path, name))
            case Names(value=Table() as below):
                yield from known_keys(below, (*path, name, "*"))
            case _:
                yield (*path, name), field
    if table.others is not None and isinstance(table.others.value, Table):
        yield from known_keys(table.others.value, (*path, "*"))


def folded(table: Table, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain data with the names that a table does not know moved into the field for them."""
    result: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in data.items():
        node = table.node(name)
        below = folded(node, value) if isinstance(node, Table) else value
        (result if name in table.fields or table.others is None else rest)[name] = below
    return {**result, table.others.name: rest} if table.others is not None and rest else result


def unfolded(table: Table, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the opposite of `folded`, for data that has every known name."""
    result: dict[str, Any] = {}
    for name, value in data.items():
        node = table.node(name)
        if table.others is not None and name == table.others.name:
            result.update(value)
        else:
            result[name] = unfolded(node, value) if isinstance(node, Table) else value
    return result


_SAME_BUT_FOR_A_SLIP = 0.95
"""The last name is right, and one above it is not."""


def nearest_key(path: KeyPath, root: Table, siblings: Collection[str] = ()) -> str:
    """Return the known key that is closest to `path`; `siblings` are the known names beside its last one."""
    import difflib

    asked = key_text(path)
    keys = [key_text(known) for known, _ in known_keys(root)]
    same_name = [key for key in keys if key.rpartition(".")[2] == path[-1]]
    if elsewhere := difflib.get_close_matches(asked, same_name, n=1, cutoff=_SAME_BUT_FOR_A_SLIP):
        return elsewhere[0]
    if near := difflib.get_close_matches(path[-1], siblings, n=1):
        return key_text((*path[:-1], near[0]))
    return difflib.get_close_matches(asked, same_name or [*keys, *_tables(keys, asked)], n=1, cutoff=0)[0]


def _tables(keys: Sequence[str], asked: str) -> list[str]:
    tables = {key[:index] for key in keys for index, char in enumerate(key) if char == "."}
    return sorted(table for table in tables if not asked.startswith(f"{table}."))


def nearest_choice(node: Node, value: Any) -> str:
    """Return the accepted word that is closest to a string; empty for none."""
    if not (isinstance(node, Scalar) and isinstance(value, str)):
        return ""
    import difflib

    words = [
        str(word) for member in _members(node.annotation) if get_origin(member) is Literal for word in get_args(member)
    ]
    return next(iter(difflib.get_close_matches(value.lower(), words, n=1)), "")


def expected(node: Node) -> str:
    """Return the values that a node accepts, in words that follow "expects"."""
    match node:
        case Scalar(annotation=annotation):
            return _expected_scalar(annotation)
        case MergedText():
            return "a text"
        case Items():
            return "a list"
        case Table() | Names():
            return "a table"
        case Free():
            return "a value that JSON can hold"
        case _:
            assert_never(node)


def _expected_scalar(annotation: Any) -> str:
    words: list[str] = []
    choices: list[str] = []
    for member in _members(annotation):
        if get_origin(member) is Literal:
            choices += [repr(choice) for choice in get_args(member)]
        else:
            words.append(_expected_type(member))
    if choices:
        words.insert(0, f"one of {', '.join(choices)}")
    return " or ".join(words)


def _members(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in {Union, UnionType}:
        for member in get_args(annotation):
            yield from _members(member)
    elif annotation is not type(None):
        yield annotation


def _expected_type(annotation: Any) -> str:
    if get_origin(annotation) is Annotated:
        bare, meta = get_args(annotation)
        if meta.description is not None:
            return meta.description
        return f"{_expected_type(bare)} of at least {meta.ge}"
    if get_origin(annotation) is tuple:
        return "a list"
    return _TYPE_WORDS.get(annotation, "a table")


_TYPE_WORDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
}


def example(node: Node) -> str:
    """Return a value that a node accepts, in TOML."""
    match node:
        case Scalar(annotation=annotation):
            return _example_scalar(next(_members(annotation)))
        case MergedText() | Free():
            return _TEXT
        case Items(element=element):
            return f"[{example(element)}]"
        case Table():
            name, field = next(iter(node.fields.items()))
            return f"{{ {name} = {example(field.node)} }}"
        case Names(value=below):
            return f"{{ NAME = {example(below)} }}"
        case _:
            assert_never(node)


def _example_scalar(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return f'"{get_args(annotation)[0]}"'
    if get_origin(annotation) is Annotated:
        bare, meta = get_args(annotation)
        return f'"{meta.examples[0]}"' if meta.examples else _example_scalar(bare)
    return _EXAMPLES.get(annotation, _TEXT)


_TEXT = '"…"'
_EXAMPLES: Mapping[Any, str] = {bool: "true", int: "1", float: "1.0"}


def got(value: Any) -> str:
    """Return a value as an error quotes it."""
    words: str
    match value:
        case str():
            words = repr(value if len(value) <= _LONGEST_QUOTE else value[:_LONGEST_QUOTE] + "…")
        case None:
            words = "null"
        case bool():
            words = str(value).lower()
        case int() | float():
            words = f"the number {value}"
        case list() | tuple():
            words = "a list"
        case dict():
            words = "a table"
        case _:
            words = f"a {type(value).__name__}"
    return words


ONLY_ORIGINALS: Mapping[str, str] = {
    "": "interrupt loader plugins",
    "assistant": "name",
    "conversation": "default_id inquiry labels",
    "conversation.compaction": "rules",
    "conversation.tools.*": "cancellation_response format",
    "conversation.tools.*.style": "error joins_reasoning parameters print_stderr results_file_link",
    "editor": "inline",
    "providers.llm.anthropic": "acp_config_dirs subscription_flow",
    "providers.llm.openai": "base_url_env codex_base_url codex_base_url_env",
    "providers.mcp.*": "checksum type",
    "style": "inline_code lock_wait mcp_startup streaming tool_call typewriter",
    "style.code": "color copy_link file_link line_numbers",
    "style.markdown": "hr_style table_continuation_edge table_max_column_width theme",
    "style.reasoning": "background extend_across_tool_calls summary_model",
}
"""Settings of the original that jp has not, by their table; `*` is any name."""


def is_only_originals(path: KeyPath) -> bool:
    """Return whether a key that jp does not know is a setting of the original JP."""
    *above, name = path
    return any(
        name in names.split() and len(table) == len(above) and all(map(_fits, table, above))
        for table, names in ((key.split(".") if key else [], names) for key, names in ONLY_ORIGINALS.items())
    )


def _fits(pattern: str, name: str) -> bool:
    return pattern in {"*", name}


class InvalidValueError(ConfigurationError):
    """A key is unknown, or holds what it cannot hold. `path` is the key; `of_key`: it should not be there at all."""

    def __init__(self, message: str, path: KeyPath, *, hint: str = "", of_key: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.of_key = of_key

    def within(self, where: str) -> InvalidValueError:
        """Return the same error with the place of the value in front."""
        return InvalidValueError(phrase(where, ": ", self.message), self.path, hint=self.hint, of_key=self.of_key)

    def explained(self) -> InvalidValueError:
        """Return the same error with suggestions."""
        return self


class UnknownKeyError(InvalidValueError):
    """A key that `table`, which stands above its last name, does not have.

    What it was meant to be is only looked for where it is said: a log may hold hundreds of keys of other versions.
    """

    def __init__(self, path: KeyPath, table: Table, root: Table) -> None:
        level = f"in {key_text(path[:-1])!r}" if len(path) > 1 else "at the top"
        hint = f"known {level}: {', '.join(table.fields)}"
        super().__init__(f"unknown key {key_text(path)!r}", path, hint=hint, of_key=True)
        self._table = table
        self._root = root

    def explained(self) -> InvalidValueError:
        """Return the same error with the nearest known key."""
        nearest = nearest_key(self.path, self._root, self._table.fields)
        is_originals = is_only_originals(self.path)
        known = f"{key_text(self.path)!r} is a JP (Rust) setting that jp does not support"
        message = f"{known if is_originals else self.message}; the nearest known key is {nearest!r}"
        hint = f"remove it; {self.hint}" if is_originals else self.hint
        return InvalidValueError(message, self.path, hint=hint, of_key=True)


def unexpected(node: Node, value: Any, path: KeyPath, *, hint: str = "") -> InvalidValueError:
    """Return the error of a value that `node` does not accept. Its hint is the nearest one, `hint` or an example."""
    message = f"{key_text(path)} expects {expected(node)}, got {got(value)}"
    near = nearest_choice(node, value)
    if near:
        hint = f"did you mean {near!r}?"
    return InvalidValueError(message, path, hint=hint or f"Such as `{key_text(path)} = {example(node)}`.")


def unknown(path: KeyPath, table: Table, root: Table) -> InvalidValueError:
    """Return the error of a key whose last name `table` does not have; see `explained`."""
    if root == APP and path[0] in FILE.fields and path[0] not in APP.fields:
        message = f"{path[0]!r} has a meaning only in a file"
        hint = phrase("write it into one, and give that as `", UseOption(Option.CONFIG, "@FILE"), "`")
        return InvalidValueError(message, path, hint=hint)
    return UnknownKeyError(path, table, root)
