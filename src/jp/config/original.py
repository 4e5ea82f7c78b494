"""Read what the original JP writes: rewrite its settings in jp's spelling, and list those that jp does not have. Pure.

It is imported where jp's own schema refuses something, and for the original's conversations: a table of rules, each a
pattern of keys with a function that returns jp's value, is applied to plain data before that is checked again. What no
rule covers stays as it is, so a mistyped key is still an error. Values go through the same checks and the same trust
as jp's own: no rule reads a setting as one that allows more.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from jp.config.assignment import Refuse, is_long_map, raising
from jp.config.layers import UnsupportedSetting
from jp.config.model import JsonObject, ParametersConfig
from jp.config.schema import ONLY_ORIGINALS, InvalidValueError, KeyPath, got, key_text

_LIST = "[]"
"""In a pattern, every element of a list. `*` is every name of a table."""

_KEPT_WORDS = ("strategy", "dedup", "discard_when_merged")


def adapt(raw: JsonObject, *, refuse: Refuse = raising) -> tuple[JsonObject, tuple[UnsupportedSetting, ...]]:
    """Return settings in jp's spelling, and those of the original that jp ignores or reads as something else.

    Args:
        raw: the plain data of a layer, which is not changed.
        refuse: takes a setting that jp does not have and must not ignore.
    """
    adapter = _Adapter(refuse)
    for pattern, rule in _RULES:
        raw = adapter.rewrite(raw, pattern, (), rule)
    return raw, tuple(adapter.unsupported)


class _Adapter:
    """Applies rules, and collects what jp does not have."""

    def __init__(self, refuse: Refuse) -> None:
        self.refuse = refuse
        self.unsupported: list[UnsupportedSetting] = []

    def ignore(self, path: KeyPath, value: Any, reading: str = "") -> None:
        """Take note of a setting that is ignored, or read as `reading` says."""
        self.unsupported.append(UnsupportedSetting(path=path, value=value, reading=reading))

    def rewrite(self, value: Any, pattern: KeyPath, path: KeyPath, rule: _Rule) -> Any:
        """Return `value`, which stands at `path`, with the rule applied where the pattern leads; UNSET takes it out."""
        if not pattern:
            return value if value is None else rule(self, value, path)
        if pattern[0] == _LIST:
            return self._elements(value, pattern[1:], path, rule)
        if not isinstance(value, dict):
            return value
        entries = cast("JsonObject", value)
        if pattern[0] == "*" and is_long_map(entries):
            return {**entries, "value": self.rewrite(entries["value"], pattern, path, rule)}
        found: JsonObject = {}
        for name, below in entries.items():
            new = self.rewrite(below, pattern[1:], (*path, name), rule) if pattern[0] in {"*", name} else below
            if new is not msgspec.UNSET:
                found[name] = new
        return found

    def _elements(self, value: Any, pattern: KeyPath, path: KeyPath, rule: _Rule) -> Any:
        match value:
            case list():
                items = enumerate(cast("list[Any]", value))
                return [self.rewrite(item, pattern, (*path, str(index)), rule) for index, item in items]
            case {"value": list()}:
                form = cast("JsonObject", value)
                return {**form, "value": self._elements(form["value"], pattern, path, rule)}
            case _:
                return value


_Rule = Callable[[_Adapter, Any, KeyPath], Any]


def _table(value: Any) -> JsonObject:
    """Return the entries of a table; none for any other value."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _drop(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    adapter.ignore(path, value)
    return msgspec.UNSET


def _server_type(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    if value != "stdio":
        message = f"{key_text(path)} expects 'stdio', got {got(value)}"
        hint = "A server with `command` speaks on its standard streams, one with `url` streamable HTTP: take it out."
        adapter.refuse(InvalidValueError(message, path, hint=hint))
    return msgspec.UNSET


def _checksum(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    del value
    message = f"{key_text(path)} is a setting of the original JP, and jp cannot verify a program before it starts it"
    hint = "Take it out if you want the server started unverified."
    adapter.refuse(InvalidValueError(message, path, hint=hint, of_key=True))
    return msgspec.UNSET


def _base_url_env(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    if value == "OPENAI_BASE_URL":  # the original's default, by which no file says anything of an address
        return _drop(adapter, value, path)
    message = f"{key_text(path)} is a setting of the original JP, and jp takes no address from a variable"
    hint = f"Write the address, with its version, as `{key_text((*path[:-1], 'base_url'))}`."
    adapter.refuse(InvalidValueError(message, path, hint=hint, of_key=True))
    return msgspec.UNSET


def _model_id(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    """Return the id of a model: the text, that of `{provider, name}`, or that of `{id, parameters}`."""
    match value:
        case {"provider": str() as provider, "name": str() as name}:
            return f"{provider}/{name}"
        case {"id": identity, **rest} if not _table(identity).get("id"):
            _ignore_rest(adapter, rest, path)
            return _model_id(adapter, identity, (*path, "id"))
        case {"parameters": _, **rest} if not rest:
            return _drop(adapter, cast("JsonObject", value)["parameters"], (*path, "parameters"))
        case _:
            return value


def _ignore_rest(adapter: _Adapter, rest: Mapping[str, Any], path: KeyPath) -> None:
    for name, below in rest.items():
        adapter.ignore((*path, name), below)


def _parameters(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    """Return the parameters with those that jp does not know in `other`, unless they look like mistyped ones."""
    form = _table(value)
    names = ParametersConfig.__struct_fields__
    known: JsonObject = {}
    other: JsonObject = {}
    for name, below in form.items():
        is_known = name in names or difflib.get_close_matches(name, names, n=1, cutoff=0.75)
        (known if is_known else other)[name] = below
        if not is_known:
            adapter.ignore((*path, name), below, f"`{key_text((*path, 'other', name))}`")
    return {**known, "other": {**other, **_table(known.get("other"))}} if other else value


def _reasoning(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    match value:
        case {"effort": effort, **rest} if rest.keys() <= {"exclude"}:
            _ignore_exclusion(adapter, rest, path)
            return _number(effort)
        case {"exclude": bool(), **rest} if not rest:
            _ignore_exclusion(adapter, cast("JsonObject", value), path)
            return msgspec.UNSET
        case bool():
            return "auto" if value else "off"
        case _:
            return _number(value)


def _ignore_exclusion(adapter: _Adapter, form: Mapping[str, Any], path: KeyPath) -> None:
    if form.get("exclude"):
        adapter.ignore((*path, "exclude"), True)  # noqa: FBT003 - the setting's value


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


_UNITS: Mapping[str, float] = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "hour": 3600, "hours": 3600}
_SHORT_SECONDS = 300
"""The time that `short` means."""


def _cache(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    if isinstance(value, bool):
        return "short" if value else "off"
    if isinstance(value, str):
        digits = value[: len(value) - len(value.lstrip("0123456789"))]
        unit = _UNITS.get(value[len(digits) :].strip())
        if digits and unit is not None:
            policy = "short" if int(digits) * unit <= _SHORT_SECONDS else "long"
            adapter.ignore(path, value, f"`{policy}`")
            return policy
    return value


def _instruction(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    del adapter, path
    return {"title": value} if isinstance(value, str) else value


def _section(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    del adapter, path
    return {"content": value} if isinstance(value, str) else value


def _enable(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    del adapter, path
    match value:
        case {"state": True, "allow_toggle": "never"}:
            return "always"
        case {"state": False, "allow_toggle": "if_named" | "if_named_or_group"}:
            return "explicit"
        case {"state": bool() as state}:
            return state
        case "on" | "off":
            return value == "on"
        case _:
            return value


def _inline_results(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    del adapter, path
    match value:
        case bool():
            return "full" if value else "off"
        case {"truncate": {"lines": lines}}:
            return lines or "off"
        case _:
            return _number(value) or "off" if value != "" else value


def _display(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    match _number(value):
        case "timer" | "static" | "progress":
            reading = "hidden"
        case "summary":
            reading = "full"
        case bool():
            return "full" if value else "hidden"
        case int():
            reading = "full"
        case _:
            return value
    adapter.ignore(path, value, f"`{reading}`")
    return reading


def _answerer(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    if not isinstance(value, dict):
        return value
    adapter.ignore(path, value, "`assistant`")
    return "assistant"


_WRITES = ("create", "update", "delete")
_ONLY_IN_RULES = frozenset({"external", "execute", *_WRITES})


def _file_rules(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    """Return rules for files. A rule that allows only a part of writing, or of what jp cannot tell apart, allows none.

    The original takes the rule with the longest path, jp the last one that matches: the longest comes last.
    """
    if isinstance(_table(value).get("value"), list):
        form = _table(value)
        return {**form, "value": _file_rules(adapter, form["value"], path)}
    rules = cast("list[Any]", value) if isinstance(value, list) else []
    if not any(_ONLY_IN_RULES & _table(rule).keys() for rule in rules):
        return cast("Any", value)
    found = [_file_rule(adapter, rule, (*path, str(index))) for index, rule in enumerate(rules)]
    return sorted(found, key=_depth)


def _file_rule(adapter: _Adapter, rule: Any, path: KeyPath) -> Any:
    if not isinstance(rule, dict):
        return rule
    form = _table(rule)
    _ignore_rest(adapter, {name: form[name] for name in ("external", "execute") if name in form}, path)
    kept = {name: below for name, below in form.items() if name not in _ONLY_IN_RULES}
    said = [form[name] for name in _WRITES if name in form]
    if not said:
        return kept
    whole = form.get("write", False)
    allows = [form.get(name, whole) for name in _WRITES]
    if len({*map(str, allows)}) > 1:
        adapter.ignore((*path, "write"), {name: form[name] for name in _WRITES if name in form}, "`false`")
    return {**kept, "write": all(each is True for each in allows)}


def _depth(rule: Any) -> int:
    path = _table(rule).get("path")
    parts = path.split("/") if isinstance(path, str) else []
    return len([part for part in parts if part not in {"", "."}])


def _variables(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    """Return the editor's variables, which the original's documentation has under another name than its program."""
    form = dict(_table(value))
    if "env_vars" not in form:
        return value
    names = form.pop("env_vars")
    if "envs" in form:
        adapter.ignore((*path, "env_vars"), names)
        return form
    return {**form, "envs": names}


_BOUND_UNITS = ("h", "m", "d")
_CALL_MODES: Mapping[str, str] = {
    "s": "strip",
    "sres": "strip-responses",
    "strip_responses": "strip-responses",
    "sreq": "strip-requests",
    "strip_requests": "strip-requests",
    "o": "omit",
}


def _compaction(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    """Return the settings of compactions with a single rule as the profile `default`; more rules are ignored."""
    form = dict(_table(value))
    if "rules" not in form:
        return value
    rules = form.pop("rules")
    profiles = form.get("profiles", {})
    listed = _table(rules).get("value", rules)
    profile = None
    if isinstance(listed, list) and isinstance(profiles, dict) and "default" not in profiles:
        profile = _profile(adapter, cast("list[Any]", listed), (*path, "rules"))
    if profile is None:
        adapter.ignore((*path, "rules"), rules)
        return form
    bounds, policies = profile
    return {**bounds, **form, "profiles": {**cast("JsonObject", profiles), "default": policies}}


def _profile(adapter: _Adapter, rules: Sequence[Any], path: KeyPath) -> tuple[JsonObject, JsonObject] | None:
    """Return the bounds and the policies of the only rule, None where jp cannot say the same."""
    match rules:
        case [{**rule}] if rule.keys() <= {"keep_first", "keep_last", "reasoning", "tool_calls", "summary"}:
            bounds = {name: _number(rule[name]) for name in ("keep_first", "keep_last") if name in rule}
        case _:
            return None
    if not all(map(_is_bound, bounds.values())):
        return None
    policies: JsonObject = {name: rule[name] for name in ("reasoning", "tool_calls") if name in rule}
    if isinstance(policies.get("tool_calls"), str):
        policies["tool_calls"] = _CALL_MODES.get(policies["tool_calls"], policies["tool_calls"])
    if isinstance(rule.get("summary"), dict):
        policies["summary"] = _summary(adapter, cast("JsonObject", rule["summary"]), (*path, "0", "summary"))
    return bounds, policies


def _is_bound(value: Any) -> bool:
    if isinstance(value, int):
        return True
    return isinstance(value, str) and value[:-1].isdigit() and value[-1:] in _BOUND_UNITS


def _summary(adapter: _Adapter, summary: JsonObject, path: KeyPath) -> JsonObject:
    model = _model_id(adapter, summary.get("model"), (*path, "model"))
    found: JsonObject = {"policy": "summarize", **{name: summary[name] for name in summary if name != "model"}}
    if "context" in found:
        adapter.ignore((*path, "context"), found.pop("context"))
    return {**found, "model": model} if isinstance(model, str) else found


def _attachments(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    del adapter, path
    return attachments(value)


def attachments(value: Any) -> Any:
    """Return declared attachments with tables as URIs; what `value` has besides, only the original knows."""
    match value:
        case list():
            return [_declaration(item) for item in cast("list[Any]", value)]
        case {"value": list()}:
            form = cast("JsonObject", value)
            kept = {name: form[name] for name in _KEPT_WORDS if name in form}
            return {"value": attachments(form["value"]), **kept}
        case _:
            return value


def _declaration(value: Any) -> Any:
    match value:
        case {"type": str(scheme), "path": str(path), **form} | {"kind": str(scheme), "path": str(path), **form}:
            parameters: Any = form.get("params")
            return _uri(scheme, path, cast("JsonObject", parameters) if isinstance(parameters, dict) else {})
        case _:
            return value


def _uri(scheme: str, path: str, parameters: Mapping[str, Any]) -> str:
    from urllib.parse import quote

    query = "&".join(f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in _texts(parameters))
    return f"{scheme}:{'' if scheme == 'file' else '//'}{quote(path, safe='/:*?[]')}{query and f'?{query}'}"


def _texts(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in parameters.items():
        for item in cast("list[Any]", value) if isinstance(value, list) else [value]:
            text = item if isinstance(item, str) else msgspec.json.encode(item).decode()
            yield ("arg" if name == "args" else name), text


def _unsupported_rules() -> Iterator[tuple[KeyPath, _Rule]]:
    """Yield the rules for what only the original has; an exception takes something else than ignoring it."""
    for table, names in ONLY_ORIGINALS.items():
        for name in names.split():
            path = (*(table.split(".") if table else ()), name)
            if path != ("conversation", "compaction", "rules"):
                yield path, _EXCEPTIONS.get(path, _drop)


_EXCEPTIONS: Mapping[KeyPath, _Rule] = {
    ("providers", "mcp", "*", "type"): _server_type,
    ("providers", "mcp", "*", "checksum"): _checksum,
    ("providers", "llm", "openai", "base_url_env"): _base_url_env,
}

_TOOL = ("conversation", "tools", "*")

_RULES: Sequence[tuple[KeyPath, _Rule]] = (
    *_unsupported_rules(),
    (("assistant", "model", "id"), _model_id),
    (("assistant", "model", "parameters"), _parameters),
    (("assistant", "model", "parameters", "reasoning"), _reasoning),
    (("assistant", "request", "cache"), _cache),
    (("assistant", "instructions", _LIST), _instruction),
    (("assistant", "system_prompt_sections", _LIST), _section),
    (("conversation", "title", "generate", "model"), _model_id),
    (("conversation", "compaction"), _compaction),
    (("conversation", "attachments"), _attachments),
    ((*_TOOL, "enable"), _enable),
    ((*_TOOL, "style", "inline_results"), _inline_results),
    ((*_TOOL, "questions", "*", "target"), _answerer),
    ((*_TOOL, "access", "fs"), _file_rules),
    (("editor",), _variables),
    (("providers", "llm", "aliases", "*"), _model_id),
    (("style", "reasoning", "display"), _display),
)


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
        adapter = _Adapter(raising)
        raw = adapter.rewrite(raw, ("assistant", "model", "id"), (), self._model)
        return adapter.rewrite(raw, ("conversation", "attachments"), (), _relative)

    def _model(self, adapter: _Adapter, value: Any, path: KeyPath) -> Any:
        return _model_id(adapter, self._aliases.get(value, value), path) if isinstance(value, str) else value


def _relative(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    """Return declared attachments whose files lie in the workspace: to the original, a leading slash means nothing."""
    found = attachments(value)
    return adapter.rewrite(found, (_LIST,), path, _relative_file)


def _relative_file(adapter: _Adapter, value: Any, path: KeyPath) -> Any:
    del adapter, path
    is_file = isinstance(value, str) and value.startswith("file://")
    return f"file:{value[7:].lstrip('/')}" if is_file else value


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
    if len(missing) == 1:
        keys.append(f"the missing file {next(iter(missing))!r}")
    elif missing:
        keys.append(f"{len(missing)} missing files")
    return ", ".join(keys)


def _kind_of(path: KeyPath) -> KeyPath:
    """Return the key with `*` for a name that the user chose, and for an index."""
    for pattern, _ in _RULES:
        if len(path) >= len(pattern) and all(map(_matches, pattern, path)):
            return (*("*" if name == _LIST else name for name in pattern), *path[len(pattern) :])
    return path


def _matches(pattern: str, name: str) -> bool:
    return pattern in {"*", _LIST, name}
