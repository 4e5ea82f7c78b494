"""The configuration that a conversation keeps: its base and the deltas over it, as jp or the original JP wrote them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, assert_never, cast

import msgspec

from jp.config.assignment import is_long_map, read_partial
from jp.config.layers import Change, Layer, ListChange, MapChange, Origin, Resolved, as_data, lasting, resolve
from jp.config.model import JsonObject, with_model_resolved
from jp.config.schema import APP, Field, Free, InvalidValueError, Items, KeyPath, MergedText, Names, Node, Scalar, Table
from jp.config.trust import mark_of_change
from jp.errors import ConfigurationError


def adapted(raw: JsonObject) -> JsonObject:
    """Return `raw` with the original's forms rewritten: model ids, reasoning, caching, the state of tools."""
    for path, rewrite in _REWRITES:
        raw = _rewritten(raw, path, rewrite)
    return raw


class Spelling:
    """Rewrites the configurations of one conversation, in order: its base, then its deltas."""

    def __init__(self) -> None:
        self._aliases: dict[str, Any] = {}

    def take(self, raw: JsonObject) -> JsonObject:
        """Return `raw` in jp's spelling; taking the result again changes nothing."""
        match raw:
            case {"providers": {"llm": {"aliases": aliases}}} if isinstance(aliases, dict):
                self._aliases.update(cast("JsonObject", aliases))
            case _:
                pass
        raw = _rewritten(raw, ("assistant", "model", "id"), self._model)
        return _rewritten(raw, ("conversation", "attachments"), _attachments)

    def _model(self, value: Any) -> Any:
        return _model_id(self._aliases.get(value, value)) if isinstance(value, str) else value


def _attachments(value: Any) -> Any:
    match value:
        case list():
            return [_attachment(item) for item in cast("list[Any]", value)]
        case {"value": items, **form} if isinstance(items, list):
            return {
                "value": _attachments(items),
                **{name: form[name] for name in form if name in {"strategy", "dedup", "discard_when_merged"}},
            }
        case _:
            return value


def _attachment(value: Any) -> Any:
    match value:
        case str():
            # The host and the slashes before a path mean nothing to the original.
            return f"file:{value[7:].lstrip('/')}" if value.startswith("file://") else value
        case {"type": str(scheme), "path": str(path), **form}:
            parameters: Any = form.get("params")
            return _uri(scheme, path, cast("JsonObject", parameters) if isinstance(parameters, dict) else {})
        case _:
            return value


def _uri(scheme: str, path: str, parameters: Mapping[str, Any]) -> str:
    from urllib.parse import quote

    query = "&".join(f"{name}={quote(text, safe='')}" for name, text in _parameters(parameters))
    return f"{scheme}:{'' if scheme == 'file' else '//'}{quote(path, safe='/:*?[]')}{query and f'?{query}'}"


def _parameters(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in parameters.items():
        for item in cast("list[Any]", value) if isinstance(value, list) else [value]:
            text = item if isinstance(item, str) else msgspec.json.encode(item).decode()
            yield ("arg" if name == "args" else name), text


def _rewritten(value: Any, path: KeyPath, rewrite: Callable[[Any], Any]) -> Any:
    if not path:
        return rewrite(value)
    if not isinstance(value, dict):
        return value
    entries = cast("JsonObject", value).items()
    return {name: _rewritten(below, path[1:], rewrite) if path[0] in {name, "*"} else below for name, below in entries}


def _model_id(value: Any) -> Any:
    match value:
        case {"provider": str() as provider, "name": str() as name}:
            return f"{provider}/{name}"
        case _:
            return value


def _reasoning(value: Any) -> Any:
    match value:
        case {"effort": effort}:
            return effort
        case _:
            return value


def _cache(value: Any) -> Any:
    match value:
        case bool():
            return "short" if value else "off"
        case _:
            return value


def _enable(value: Any) -> Any:
    match value:
        case {"state": True, "allow_toggle": "never"}:
            return "always"
        case {"state": False, "allow_toggle": "if_named" | "if_named_or_group"}:
            return "explicit"
        case {"state": bool() as state}:
            return state
        case "on":
            return True
        case "off":
            return False
        case _:
            return value


_REWRITES: tuple[tuple[KeyPath, Callable[[Any], Any]], ...] = (
    (("assistant", "model", "id"), _model_id),
    (("assistant", "model", "parameters", "reasoning"), _reasoning),
    (("assistant", "request", "cache"), _cache),
    (("conversation", "tools", "*", "enable"), _enable),
)


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
    layers = tuple(
        Layer(
            origin=Origin(kind="conversation", where=where),
            change=read_partial({name: raw[name] for name in KEPT if name in raw}, refuse=ignored.append),
            foreign=is_strange,
            accepted=frozenset(accepted if is_strange else ()),
        )
        for where, raw, is_strange in (
            (where, adapted(raw), foreign and not (accepted and mark_of_change(raw) in accepted))
            for where, raw in named
        )
    )
    return Stored(layers=layers, ignored=tuple(ignored))


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
    is_originals = beside_original or any(name not in KEPT for name in base)
    return Spelling().take(base) if is_originals else base


class OriginalSettings:
    """The model and the attachments that hold after the base configuration and the deltas so far.

    What the configuration of a workspace would add is no part of them.
    """

    def __init__(self, base: JsonObject) -> None:
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
