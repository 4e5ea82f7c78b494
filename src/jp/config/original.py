"""Read what the original JP writes: rewrite its settings in jp's spelling, and list those that jp does not have. Pure.

It is imported where jp's own schema refuses something, and for the original's conversations: the rules of
`jp.config.original_rules` are applied to plain data before that is checked again. What no rule covers stays as it is,
so a mistyped key is still an error. Values go through the same checks and the same trust as jp's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from jp.config.assignment import Refuse, is_long_map, raising
from jp.config.layers import UnsupportedSetting
from jp.config.model import JsonObject
from jp.config.original_rules import LIST, RULES, Notes, Rule, attachments, model_id, table_of
from jp.config.schema import FILE, InvalidValueError, Items, KeyPath, MergedText, Names, Node, Table, got, key_text


def adapt(raw: JsonObject, *, refuse: Refuse = raising) -> tuple[JsonObject, tuple[UnsupportedSetting, ...]]:
    """Return settings in jp's spelling, and those of the original that jp ignores or reads as something else.

    Args:
        raw: the plain data of a layer, which is not changed.
        refuse: takes a setting that jp does not have and must not ignore.
    """
    notes = Notes(refuse)
    raw = _with_forms(notes, FILE, raw, ())
    for pattern, rule in RULES:
        raw = _rewritten(notes, raw, pattern, (), rule)
    return raw, tuple(notes.unsupported)


def _rewritten(notes: Notes, value: Any, pattern: KeyPath, path: KeyPath, rule: Rule) -> Any:
    """Return `value`, which stands at `path`, with the rule applied where the pattern leads; UNSET takes it out."""
    if not pattern:
        return value if value is None else rule(notes, value, path)
    if pattern[0] == LIST:
        return _elements(notes, value, pattern[1:], path, rule)
    if not isinstance(value, dict):
        return value
    entries = cast("JsonObject", value)
    if pattern[0] == "*" and is_long_map(entries):
        return {**entries, "value": _rewritten(notes, entries["value"], pattern, path, rule)}
    found: JsonObject = {}
    for name, below in entries.items():
        new = _rewritten(notes, below, pattern[1:], (*path, name), rule) if pattern[0] in {"*", name} else below
        if new is not msgspec.UNSET:
            found[name] = new
    return found


def _elements(notes: Notes, value: Any, pattern: KeyPath, path: KeyPath, rule: Rule) -> Any:
    match value:
        case list():
            items = enumerate(cast("list[Any]", value))
            return [_rewritten(notes, item, pattern, (*path, str(index)), rule) for index, item in items]
        case {"value": list()}:
            form = cast("JsonObject", value)
            return {**form, "value": _elements(notes, form["value"], pattern, path, rule)}
        case _:
            return value


def _with_forms(notes: Notes, node: Node, value: Any, path: KeyPath) -> Any:
    """Return a value with the long forms of texts, lists and tables as jp writes them, here and below."""
    form = table_of(value)
    match node:
        case Table():
            below = ((name, node.node(name), entry) for name, entry in form.items())
            found = {
                name: entry if inner is None else _with_forms(notes, inner, entry, (*path, name))
                for name, inner, entry in below
            }
        case Names(value=inner):
            form = _map_form(notes, form, path)
            is_long = is_long_map(form)
            entries = {
                name: _with_forms(notes, inner, entry, (*path, name))
                for name, entry in (form["value"] if is_long else form).items()
            }
            found = {**form, "value": entries} if is_long else entries
        case Items() if form.get("dedup") in {"true", "false"} and isinstance(form["dedup"], str):
            found = {**form, "dedup": form["dedup"] == "true"}
        case MergedText() if "dedup" in form:
            notes.ignore((*path, "dedup"), form["dedup"])
            found = {name: entry for name, entry in form.items() if name != "dedup"}
        case _:
            return value
    return found if isinstance(value, dict) else value


_STRATEGIES = ("deep_merge", "merge", "keep", "replace")
_MAP_FORM = frozenset({"value", "strategy", "discard_when_merged", "*"})
_NEVER_MORE = (("conversation", "tools"), ("providers", "mcp"))
"""Tables whose entries act for the model: what is below them must not be replaced where the original keeps it."""


def _map_form(notes: Notes, form: JsonObject, path: KeyPath) -> JsonObject:
    """Return a table of named entries; its long form as `{value, strategy}` with a strategy of jp."""
    strategy = form.get("strategy")
    is_long = {"value", "strategy"} <= form.keys() <= _MAP_FORM and isinstance(form["value"], dict)
    if not (is_long and strategy in _STRATEGIES):
        return form
    for name, is_used in (("strategy", strategy == "keep"), ("discard_when_merged", form.get("discard_when_merged"))):
        if is_used and path in _NEVER_MORE:
            message = (
                f"{key_text((*path, name))} = {got(form[name])} is a setting of the original JP that jp cannot keep"
            )
            hint = f"write the entries into {key_text(path)!r} itself, in a file that comes first"
            notes.refuse(InvalidValueError(message, (*path, name), hint=hint))
        elif is_used:
            notes.ignore((*path, name), form[name])
    entries = {**cast("JsonObject", form["value"]), **({"*": form["*"]} if "*" in form else {})}
    return {"value": entries, "strategy": "replace" if strategy == "replace" else "merge"}


class Spelling:
    """Rewrites the configurations of one conversation of the original, in order: its base, then its deltas."""

    def __init__(self) -> None:
        self._aliases: dict[str, Any] = {}

    def take(self, raw: JsonObject) -> JsonObject:
        """Return `raw` with models and attachments in jp's spelling; taking the result again changes nothing."""
        match raw:
            case {"providers": {"llm": {"aliases": aliases}}} if isinstance(aliases, dict):
                self._aliases.update(cast("JsonObject", aliases))
            case _:
                pass
        notes = Notes(raising)
        raw = _rewritten(notes, raw, ("assistant", "model", "id"), (), self._model)
        return _rewritten(notes, raw, ("conversation", "attachments"), (), _relative)

    def _model(self, notes: Notes, value: Any, path: KeyPath) -> Any:
        return model_id(notes, self._aliases.get(value, value), path) if isinstance(value, str) else value


def _relative(notes: Notes, value: Any, path: KeyPath) -> Any:
    """Return declared attachments whose files lie in the workspace: to the original, a leading slash means nothing."""
    found = attachments(value)
    return _rewritten(notes, found, (LIST,), path, _relative_file)


def _relative_file(notes: Notes, value: Any, path: KeyPath) -> Any:
    del notes, path
    is_file = isinstance(value, str) and value.startswith("file://")
    return f"file:{value[7:].lstrip('/')}" if is_file else value


_MOST_KINDS = 40
"""The original has so many settings that jp does not; a notice may not be as long as a stranger's file."""


def summary_of(settings: Iterable[UnsupportedSetting]) -> str:
    """Return settings in one line, those of one kind together with their number."""
    counts: dict[str, int] = {}
    missing: dict[str, None] = {}
    for setting in settings:
        if setting.path[0] == "extends":
            missing[setting.value] = None
            continue
        key = key_text(_kind_of(setting.path))
        counts[key] = counts.get(key, 0) + 1
    keys = [key if count == 1 else f"{key} ({count})" for key, count in sorted(counts.items())]
    if len(keys) > _MOST_KINDS:
        keys[_MOST_KINDS:] = [f"{len(keys) - _MOST_KINDS:,} more kinds"]
    if len(missing) == 1:
        keys.append(f"the missing file {next(iter(missing))!r}")
    elif missing:
        keys.append(f"{len(missing)} missing files")
    return ", ".join(keys)


def _kind_of(path: KeyPath) -> KeyPath:
    """Return the key with `*` for a name that the user chose, and for an index."""
    patterns = [pattern for pattern, _ in RULES if len(path) >= len(pattern) and all(map(_matches, pattern, path))]
    if not patterns:
        return path
    nearest = max(patterns, key=lambda pattern: (len(pattern), -pattern.count("*")))
    return (*("*" if name == LIST else name for name in nearest), *path[len(nearest) :])


def _matches(pattern: str, name: str) -> bool:
    return pattern in {"*", LIST, name}
