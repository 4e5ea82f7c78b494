"""The sources of layers: files, the environment, `--cfg` and other options, and what a conversation keeps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, assert_never, cast

import msgspec

from jp.config.assignment import (
    Assignment,
    FragmentName,
    JsonPatch,
    assign,
    change_of,
    is_long_map,
    parse_cfg,
    read_partial,
)
from jp.config.files import (
    Candidate,
    Group,
    InvalidFileError,
    Places,
    candidates,
    fragment_layers,
    is_file,
    load_group,
    read_spelled,
    require_one_format,
)
from jp.config.layers import Change, Layer, ListChange, MapChange, Origin, Resolved, as_data, lasting, resolve
from jp.config.model import JsonObject, with_model_resolved
from jp.config.schema import (
    APP,
    Field,
    Free,
    InvalidValueError,
    Items,
    KeyPath,
    MergedText,
    Names,
    Node,
    Scalar,
    Table,
    is_index,
    key_text,
    nearest_key,
)
from jp.config.trust import load_paths, mark_of_change
from jp.errors import ConfigurationError
from jp.remedies import Option, UseOption, phrase

PREFIX = "JP_CFG_"


def environment_assignments(environ: Mapping[str, str]) -> list[tuple[str, Assignment]]:
    """Return the assignment of each variable, sorted by name. An empty variable counts as not set.

    Raises:
        ConfigurationError: a variable means no key, more than one, or its value is not accepted.
    """
    return [(name, _assignment(name, environ[name])) for name in sorted(environ) if _is_set(name, environ)]


def _is_set(name: str, environ: Mapping[str, str]) -> bool:
    return name.startswith(PREFIX) and bool(environ[name])


def _assignment(variable: str, value: str) -> Assignment:
    path = key_of(variable)
    _check_text(variable, value)
    prefix = next((prefix for prefix in (":+", ":", "+") if value.startswith(prefix)), "")
    try:
        return assign(path, prefix, value.removeprefix(prefix))
    except InvalidValueError as error:
        raise error.within(f"environment variable {variable}") from None


def _check_text(variable: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        message = f"environment variable {variable} is not UTF-8: {value.encode(errors='surrogateescape')!r}"
        raise ConfigurationError(message, hint=f"export {variable}=… again, in UTF-8") from None


def key_of(variable: str, root: Table = APP) -> KeyPath:
    """Return the key that a variable means. A key that holds a value precedes a table with free names.

    Raises:
        ConfigurationError: it means none, or more than one.
    """
    groups = [part.split("_") for part in variable.removeprefix(PREFIX).lower().split("__")]
    words = tuple(word for group in groups for word in group)
    ends = frozenset(sum(len(group) for group in groups[:count]) for count in range(1, len(groups)))
    found = dict(_Words(words, ends).paths(root, 0)) if all(words) else {}
    values = {path: node for path, node in found.items() if not isinstance(node, Table | Names)}
    paths = sorted(values or found)
    if len(paths) == 1:
        return paths[0]
    if paths:
        choices = " and ".join(repr(key_text(path)) for path in paths)
        msg = f"environment variable {variable} may mean {choices}"
        raise ConfigurationError(msg, hint="put `__` where one name ends and the next begins")
    nearest = nearest_key(words, root)
    msg = f"environment variable {variable} means no known key; the nearest known key is {nearest!r}"
    raise ConfigurationError(msg, hint=f"its variable is {PREFIX}{nearest.upper().replace('.', '_')}")


class _Words(msgspec.Struct, frozen=True):
    """A variable's words, and the indexes at which a name has to end."""

    words: tuple[str, ...]
    ends: frozenset[int]

    def paths(self, node: Node, start: int) -> Iterator[tuple[KeyPath, Node]]:
        """Yield the keys below `node` that the words from `start` on spell, with their schemas."""
        if start == len(self.words):
            yield (), node
            return
        for stop, name, below in self._names(node, start):
            if self.ends.isdisjoint(range(start + 1, stop)):
                for path, end in self.paths(below, stop):
                    yield (name, *path), end

    def _names(self, node: Node, start: int) -> Iterator[tuple[int, str, Node]]:
        match node:
            case Table():
                yield from self._known_names(node, start)
            case Free() | Names(value=Free()):
                stop = min((end for end in self.ends if end > start), default=len(self.words))
                yield stop, self._spelled(start, stop), Free()
            case Names(value=below):
                stops = range(start + 1, len(self.words) + 1)
                yield from ((stop, self._spelled(start, stop), below) for stop in stops)
            case Items(element=element):
                if is_index(self.words[start]):
                    yield start + 1, self.words[start], element
            case Scalar() | MergedText():
                pass
            case _:
                assert_never(node)

    def _known_names(self, table: Table, start: int) -> Iterator[tuple[int, str, Node]]:
        for name, field in table.fields.items():
            stop = start + name.count("_") + 1
            if self._spelled(start, stop) == name:
                yield stop, name, field.node
        if table.others is not None:
            yield from self._names(Names(table.others.value), start)

    def _spelled(self, start: int, stop: int) -> str:
        return "_".join(self.words[start:stop])


def lower_layers(places: Places, environ: Mapping[str, str]) -> list[Layer]:
    """Return the layers of the files and the environment, which are below a conversation's.

    Raises:
        ConfigurationError: a file or a variable is invalid.
    """
    return [*file_layers(places), *environment_layers(environ)]


def file_layers(places: Places) -> list[Layer]:
    """Return the files' layers, least specific first, up to `inherit = false`, which in foreign files ends only these.

    Raises:
        ConfigurationError: one cannot be read or is invalid.
    """
    return [layer for _, group in _groups(places) if group is not None for layer in group.layers]


def unread_files(places: Places) -> list[Path]:
    """Return the files that exist and are not read, because an earlier one has `inherit = false`.

    Raises:
        ConfigurationError: one that counts cannot be read or is invalid.
    """
    read = [candidate for candidate, _ in _groups(places)]
    return [candidate.path for candidate in candidates(places) if candidate not in read and is_file(candidate.path)]


def _groups(places: Places) -> Iterator[tuple[Candidate, Group | None]]:
    """Yield the files that are read, each with its layers. A foreign file never excludes one of the user's own."""
    enders: set[bool] = set()
    for candidate in candidates(places):
        if False in enders or (candidate.kind != "user-workspace" and candidate.foreign and enders):
            continue
        require_one_format(candidate)
        group = load_group(candidate.path, kind=candidate.kind, root=places.root, foreign=candidate.foreign)
        if group is not None and not group.inherit:
            enders.add(candidate.foreign)
        yield candidate, group


def environment_layers(environ: Mapping[str, str]) -> list[Layer]:
    """Return the layers of the `JP_CFG_*` variables, by name.

    Raises:
        ConfigurationError: a variable means no key, or its value is not accepted.
    """
    return [
        Layer(origin=Origin(kind="environment", where=name), change=change_of(assignment))
        for name, assignment in environment_assignments(environ)
    ]


def cfg_layers(values: Sequence[str], places: Places, below: Sequence[Layer]) -> list[Layer]:
    """Return the layers of `--cfg`, in order. `below` and earlier values configure where a name is searched.

    Raises:
        ConfigurationError: a value has no meaning, a name means no file, or a file is invalid.
    """
    layers: list[Layer] = []
    for text in values:
        try:
            value = parse_cfg(text)
            layers += _cfg_value(value, text, places, [*below, *layers])
        except InvalidValueError as error:
            raise error.within(phrase(UseOption(Option.CONFIG, repr(text)))) from None
        except InvalidFileError as error:
            message = phrase(UseOption(Option.CONFIG, repr(text)), ": ", error.message)
            raise InvalidFileError(message, hint=error.hint) from None
    return layers


def _cfg_value(
    value: FragmentName | JsonPatch | Assignment, text: str, places: Places, below: Sequence[Layer]
) -> list[Layer]:
    match value:
        case FragmentName():
            return fragment_layers(value, places, load_paths(below, str(places.root)))
        case JsonPatch() | Assignment():
            return [Layer(origin=Origin(kind="cfg", where=text), change=change_of(value))]
        case _:
            assert_never(value)


def flag_layer(option: str, partial: JsonObject) -> Layer:
    """Return the layer of an argument of a use case, `option`.

    Raises:
        InvalidValueError: the option's value is not accepted.
    """
    try:
        return Layer(origin=Origin(kind="flag", where=option), change=read_partial(partial))
    except InvalidValueError as error:
        raise error.within(option) from None


KEPT = ("assistant", "conversation")


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation's layers, and the values in them that this version does not know or accept."""

    layers: tuple[Layer, ...]
    ignored: tuple[InvalidValueError, ...] = ()


class _State(msgspec.Struct, frozen=True):
    """A value (plain data, absent where there is none) and the change that it came from."""

    value: Any
    change: Change | None

    def below(self, name: str, field: Field | None = None) -> _State:
        default = msgspec.UNSET if field is None else _default(field)
        value: Any = cast("JsonObject", self.value).get(name, default)
        return _State(value, self.change.entries.get(name) if isinstance(self.change, MapChange) else None)

    @property
    def is_table(self) -> bool:
        return isinstance(self.value, dict)

    def dedup(self, node: Items) -> bool:
        own = self.change.dedup if isinstance(self.change, ListChange) else None
        return node.dedup if own is None else own


def frozen(resolved: Resolved) -> JsonObject:
    """Return the base of a new conversation: every key that it keeps, so that lower layers have no effect.

    A list replaces and says whether it deduplicates, a table with free names replaces, `null` is no value:
    reading it over any other layers gives the same values. A model's alias is resolved.

    Raises:
        ConfigurationError: the aliases lead in a circle.
    """
    state = _state(resolved)
    return {name: _full(APP.fields[name].node, state.below(name)) for name in KEPT}


def delta(before: Resolved, after: Resolved) -> JsonObject:
    """Return the change from `before` to `after` in what a conversation keeps; empty if they are equal.

    Raises:
        ConfigurationError: the aliases lead in a circle.
    """
    kept = [(name, APP.fields[name]) for name in KEPT]
    return _differences(kept, _state(before), _state(after))


def conversation_layers(
    base: JsonObject,
    deltas: Iterable[tuple[str, JsonObject]] = (),
    *,
    foreign: bool = False,
    accepted: Collection[str] = (),
) -> Stored:
    """Return the layers of a conversation: its base, and its deltas by entry id, in order.

    Also reads what the original JP stored. Nothing in them is an error: a log outlives the keys of one version.
    `foreign` says that the conversation lies where others may have written it. What jp has written in it for its user
    is known by its hash, which `accepted` has.
    """
    ignored: list[InvalidValueError] = []
    named = [("base configuration", base), *((f"configuration delta {entry}", raw) for entry, raw in deltas)]
    layers: list[Layer] = []
    for where, raw in named:
        read = read_spelled({name: raw[name] for name in KEPT if name in raw}, APP, refuse=ignored.append)
        is_strange = foreign and not (accepted and mark_of_change(raw) in accepted)
        layers.append(
            Layer(
                origin=Origin(kind="conversation", where=where),
                change=read.change,
                foreign=is_strange,
                accepted=frozenset(accepted if is_strange else ()),
                unsupported=read.unsupported,
            )
        )
    return Stored(layers=tuple(layers), ignored=tuple(ignored))


def _state(resolved: Resolved) -> _State:
    return _State(as_data(with_model_resolved(resolved.config)), resolved.change)


def _default(field: Field) -> Any:
    match field.node:
        case Table() | Names():
            return {}
        case Items(default=items):
            return items
        case _:
            return field.default


def _full(node: Node, state: _State) -> Any:
    match node:
        case Table():
            fields = ((name, field) for name, field in node.fields.items() if name in state.value)
            return {name: _full(field.node, state.below(name)) for name, field in fields}
        case Names(value=below):
            return {"value": {name: _full(below, state.below(name)) for name in state.value}, "strategy": "replace"}
        case Items():
            return {"value": list(state.value), "strategy": "replace", "dedup": state.dedup(node)}
        case Free():
            return _escaped(state.value)
        case MergedText() | Scalar():
            return state.value
        case _:
            assert_never(node)


def _escaped(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    entries: JsonObject = {name: _escaped(below) for name, below in cast("JsonObject", value).items()}
    return {"value": entries, "strategy": "replace"} if is_long_map(entries) else entries


def _differences(fields: Iterable[tuple[str, Field]], old: _State, new: _State) -> JsonObject:
    found = ((name, _difference(field.node, old.below(name, field), new.below(name, field))) for name, field in fields)
    return {name: difference for name, difference in found if difference is not msgspec.UNSET}


def _difference(node: Node, old: _State, new: _State) -> Any:
    """Return the change from `old` to `new`, UNSET if they are equal."""
    match node:
        case Table():
            return _differences(node.fields.items(), old, new) or msgspec.UNSET
        case Names(value=below):
            return _entries_difference(below, old, new)
        case Free() if old.is_table and new.is_table:
            return _entries_difference(node, old, new)
        case Items():
            return _items_difference(node, old, new)
        case Free() | MergedText() | Scalar():
            return msgspec.UNSET if _is_same(old.value, new.value) else _full(node, new)
        case _:
            assert_never(node)


def _entries_difference(node: Node, old: _State, new: _State) -> Any:
    gone: JsonObject = {name: None for name in old.value if name not in new.value}
    common = ((name, Field(node=node)) for name in new.value if name in old.value)
    added: JsonObject = {name: _full(node, new.below(name)) for name in new.value if name not in old.value}
    found = gone | _differences(common, old, new) | added
    if is_long_map(found):
        return {"value": found, "strategy": "merge"}
    return found or msgspec.UNSET


def _items_difference(node: Items, old: _State, new: _State) -> Any:
    before, after = list(old.value), list(new.value)
    if old.dedup(node) == new.dedup(node) and _is_same(before, after[: len(before)]):
        added = after[len(before) :]
        if not added:
            return msgspec.UNSET
        if old.change is None or lasting(old.change) == old.change:
            return added
    return _full(node, new)


def _is_same(old: Any, new: Any) -> bool:
    # Python takes 1, 1.0 and true for equal; a provider does not.
    return msgspec.json.encode(old) == msgspec.json.encode(new)


def in_jps_spelling(base: JsonObject, *, beside_original: bool) -> JsonObject:
    """Return a base configuration in jp's spelling. `beside_original`: it belongs to the original JP."""
    if not beside_original and all(name in KEPT for name in base):
        return base

    from jp.config.original import Spelling

    return Spelling().take(base)


class OriginalSettings:
    """The model and the attachments that hold after the base configuration and the deltas so far.

    What the configuration of a workspace would add is no part of them.
    """

    def __init__(self, base: JsonObject) -> None:
        from jp.config.original import Spelling

        self._spelling = Spelling()
        self._layers: tuple[Layer, ...] = ()
        self.provider = ""
        self.model = ""
        self.attachments: tuple[str, ...] = ()
        self.change(base)

    def change(self, delta: JsonObject) -> JsonObject:
        """Apply the next delta, and give it in jp's spelling. What does not fit together changes nothing."""
        spelled = self._spelling.take(delta)
        layers = (*self._layers, *conversation_layers(_of_interest(spelled)).layers)
        try:
            config = resolve(layers).config
        except ConfigurationError:
            return spelled
        self._layers = layers
        provider, _, model = (config.assistant.model.id or "").partition("/")
        self.provider, self.model = (provider, model) if model else ("", "")
        self.attachments = config.conversation.attachments
        return spelled


def _of_interest(delta: JsonObject) -> JsonObject:
    """Return the keys that are followed; reading a whole base configuration takes long."""
    found: JsonObject = {}
    match delta.get("assistant"):
        case {"model": {"id": identity}}:
            found["assistant"] = {"model": {"id": identity}}
        case _:
            pass
    match delta.get("conversation"):
        case {"attachments": attachments}:
            found["conversation"] = {"attachments": attachments}
        case _:
            pass
    return found
