"""Rules by which settings of the original JP become jp's: for a pattern of keys, a function of the value there. Pure.

A rule returns jp's value, or UNSET where jp has none. It takes note of what jp ignores or reads as something else, and
refuses what jp must not ignore: no setting is read as one that allows more. `jp.config.original` applies the rules.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import msgspec

from jp.config.assignment import Refuse
from jp.config.layers import UnsupportedSetting
from jp.config.model import JsonObject, ParametersConfig
from jp.config.schema import ONLY_ORIGINALS, InvalidValueError, KeyPath, got, key_text

LIST = "[]"
"""In a pattern, every element of a list. `*` is every name of a table."""

_KEPT_WORDS = ("strategy", "dedup", "discard_when_merged")


class Notes:
    """Collects what jp does not have; `refuse` takes the error of a setting that must not be ignored."""

    def __init__(self, refuse: Refuse) -> None:
        self.refuse = refuse
        self.unsupported: list[UnsupportedSetting] = []

    def ignore(self, path: KeyPath, value: Any, reading: str = "") -> None:
        """Take note of a setting that is ignored, or read as `reading` says."""
        self.unsupported.append(UnsupportedSetting(path=path, value=value, reading=reading))


Rule: TypeAlias = Callable[[Notes, Any, KeyPath], Any]


def table_of(value: Any) -> JsonObject:
    """Return the entries of a table; none for any other value."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _drop(notes: Notes, value: Any, path: KeyPath) -> Any:
    notes.ignore(path, value)
    return msgspec.UNSET


def _server_type(notes: Notes, value: Any, path: KeyPath) -> Any:
    if value != "stdio":
        message = f"{key_text(path)} expects 'stdio', got {got(value)}"
        hint = "a server with `command` speaks on its standard streams, one with `url` streamable HTTP: remove it"
        notes.refuse(InvalidValueError(message, path, hint=hint))
    return msgspec.UNSET


def _checksum(notes: Notes, value: Any, path: KeyPath) -> Any:
    del value
    message = f"{key_text(path)} is a setting of the original JP, and jp cannot verify a program before it starts it"
    hint = "remove it if you want the server started unverified"
    notes.refuse(InvalidValueError(message, path, hint=hint, of_key=True))
    return msgspec.UNSET


def _base_url_env(notes: Notes, value: Any, path: KeyPath) -> Any:
    if value == "OPENAI_BASE_URL":  # the original's default, by which no file says anything of an address
        return _drop(notes, value, path)
    message = f"{key_text(path)} is a setting of the original JP, and jp takes no address from a variable"
    hint = f"write the address, with its version, as `{key_text((*path[:-1], 'base_url'))}`"
    notes.refuse(InvalidValueError(message, path, hint=hint, of_key=True))
    return msgspec.UNSET


def model_id(notes: Notes, value: Any, path: KeyPath) -> Any:
    """Return the id of a model: the text, that of `{provider, name}`, or that of `{id, parameters}`."""
    match value:
        case {"provider": str() as provider, "name": str() as name}:
            return f"{provider}/{name}"
        case {"id": identity, **rest} if not table_of(identity).get("id"):
            _ignore_rest(notes, rest, path)
            return model_id(notes, identity, (*path, "id"))
        case {"parameters": _, **rest} if not rest:
            return _drop(notes, cast("JsonObject", value)["parameters"], (*path, "parameters"))
        case _:
            return value


def _ignore_rest(notes: Notes, rest: Mapping[str, Any], path: KeyPath) -> None:
    for name, below in rest.items():
        notes.ignore((*path, name), below)


def _parameters(notes: Notes, value: Any, path: KeyPath) -> Any:
    """Return the parameters with those that jp does not know in `other`, unless they look like mistyped ones."""
    form = table_of(value)
    names = ParametersConfig.__struct_fields__
    known: JsonObject = {}
    other: JsonObject = {}
    for name, below in form.items():
        if name == "service_tier":  # each provider has its own words for it
            notes.ignore((*path, name), below)
            continue
        is_known = name in names or difflib.get_close_matches(name, names, n=1, cutoff=0.75)
        (known if is_known else other)[name] = below
        if not is_known:
            notes.ignore((*path, name), below, f"`{key_text((*path, 'other', name))}`")
    return {**known, "other": {**other, **table_of(known.get("other"))}} if other else known if form else value


def _reasoning(notes: Notes, value: Any, path: KeyPath) -> Any:
    match value:
        case {"effort": effort, **rest} if rest.keys() <= {"exclude"}:
            _ignore_exclusion(notes, rest, path)
            return _number(effort)
        case {"exclude": bool(), **rest} if not rest:
            _ignore_exclusion(notes, cast("JsonObject", value), path)
            return msgspec.UNSET
        case bool():
            return "auto" if value else "off"
        case _:
            return _number(value)


def _ignore_exclusion(notes: Notes, form: Mapping[str, Any], path: KeyPath) -> None:
    if form.get("exclude"):
        notes.ignore((*path, "exclude"), True)  # noqa: FBT003 - the setting's value


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


_UNITS: Mapping[str, float] = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "hour": 3600, "hours": 3600}
_SHORT_SECONDS = 300
"""The time that `short` means."""


def _cache(notes: Notes, value: Any, path: KeyPath) -> Any:
    if isinstance(value, bool):
        return "short" if value else "off"
    if isinstance(value, str):
        digits = value[: len(value) - len(value.lstrip("0123456789"))]
        unit = _UNITS.get(value[len(digits) :].strip())
        if digits and unit is not None:
            policy = "short" if int(digits) * unit <= _SHORT_SECONDS else "long"
            notes.ignore(path, value, f"`{policy}`")
            return policy
    return value


_BYTES: Mapping[str, int] = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


def _byte_size(notes: Notes, value: Any, path: KeyPath) -> Any:
    """Return a size in bytes. Without a limit of the original, jp keeps its own."""
    if value is False or (isinstance(value, str) and value in {"disabled", "off"}):
        return _drop(notes, value, path)
    text = value.strip().lower() if isinstance(value, str) else ""
    digits = text[: len(text) - len(text.lstrip("0123456789"))]
    factor = _BYTES.get(text[len(digits) :].strip().removesuffix("b").removesuffix("i"))
    return int(digits) * factor if digits and factor is not None else value


def _instruction(notes: Notes, value: Any, path: KeyPath) -> Any:
    del notes, path
    return {"title": value} if isinstance(value, str) else value


def _section(notes: Notes, value: Any, path: KeyPath) -> Any:
    del notes, path
    return {"content": value} if isinstance(value, str) else value


def _enable(notes: Notes, value: Any, path: KeyPath) -> Any:
    match value:
        case {"state": bool() as state, "allow_toggle": "never"}:
            if not state:
                notes.ignore((*path, "allow_toggle"), "never")
            return "always" if state else False
        case {"state": False, "allow_toggle": "if_named" | "if_named_or_group"}:
            return "explicit"
        case {"state": bool() as state}:
            return state
        case {"allow_toggle": str() as toggle} if value.keys() <= {"state", "allow_toggle"}:
            return _drop(notes, toggle, (*path, "allow_toggle"))
        case "on" | "off":
            return value == "on"
        case _:
            return value


def _inline_results(notes: Notes, value: Any, path: KeyPath) -> Any:
    del notes, path
    match value:
        case bool():
            return "full" if value else "off"
        case {"truncate": {"lines": lines}}:
            return lines or "off"
        case _:
            return _number(value) or "off" if value != "" else value


def _display(notes: Notes, value: Any, path: KeyPath) -> Any:
    match _number(value):
        case {"truncate": _}:
            reading = "full"
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
    notes.ignore(path, value, f"`{reading}`")
    return reading


def _answerer(notes: Notes, value: Any, path: KeyPath) -> Any:
    if not isinstance(value, dict):
        return value
    notes.ignore(path, value, "`assistant`")
    return "assistant"


_WRITES = ("create", "update", "delete")
_ONLY_INRULES = frozenset({"external", "execute", *_WRITES})


def _file_rules(notes: Notes, value: Any, path: KeyPath) -> Any:
    """Return rules for files. A rule that allows only a part of writing, or of what jp cannot tell apart, allows none.

    The original takes the rule with the longest path, jp the last one that matches: the longest comes last.
    """
    if isinstance(table_of(value).get("value"), list):
        form = table_of(value)
        return {**form, "value": _file_rules(notes, form["value"], path)}
    rules = cast("list[Any]", value) if isinstance(value, list) else []
    if not any(_ONLY_INRULES & table_of(rule).keys() for rule in rules):
        if rules != sorted(rules, key=_depth):
            message = f"{key_text(path)}: jp takes the last rule that matches, the original JP that of the longest path"
            notes.refuse(InvalidValueError(message, path, hint="put the rules for longer paths last"))
        return cast("Any", value)
    found = [_file_rule(notes, rule, (*path, str(index))) for index, rule in enumerate(rules)]
    return sorted(found, key=_depth)


def _file_rule(notes: Notes, rule: Any, path: KeyPath) -> Any:
    if not isinstance(rule, dict):
        return rule
    form = table_of(rule)
    _ignore_rest(notes, {name: form[name] for name in ("external", "execute") if name in form}, path)
    kept = {name: below for name, below in form.items() if name not in _ONLY_INRULES}
    said = [form[name] for name in _WRITES if name in form]
    if not said:
        return kept
    whole = form.get("write", False)
    allows = [form.get(name, whole) for name in _WRITES]
    if len({*map(str, allows)}) > 1:
        notes.ignore((*path, "write"), {name: form[name] for name in _WRITES if name in form}, "`false`")
    return {**kept, "write": all(each is True for each in allows)}


def _depth(rule: Any) -> int:
    path = table_of(rule).get("path")
    parts = path.split("/") if isinstance(path, str) else []
    return len([part for part in parts if part not in {"", "."}])


def _environment(notes: Notes, value: Any, path: KeyPath) -> Any:
    """Return a tool with the variables that rules let it read; jp passes it few others, whatever a rule says."""
    form = table_of(value)
    access = table_of(form.get("access"))
    rules: Any = table_of(access.get("env")).get("value", access.get("env"))
    if not isinstance(rules, list):
        return value
    allowed: list[Any] = []
    for index, rule in enumerate(cast("list[Any]", rules)):
        name = table_of(rule).get("name")
        if isinstance(name, str) and table_of(rule).get("read") is True and name.isidentifier() and name.isascii():
            allowed.append(name)
        else:
            notes.ignore((*path, "access", "env", str(index)), rule)
    kept: JsonObject = {**form, "access": {name: below for name, below in access.items() if name != "env"}}
    if allowed:
        kept["environment"] = [*_texts_in(form.get("environment", [])), *allowed]
    return kept


def _account(notes: Notes, value: Any, path: KeyPath) -> Any:
    """Return an account with the key that the original would try first; jp has one for each account."""
    if path[-1] == "aliases" or not isinstance(value, dict):
        return value
    form = dict(cast("JsonObject", value))
    chain = _texts_in(form.pop("auth", ["api_key"]))
    keys = [entry.partition(":")[2] for entry in chain if entry.partition(":")[0] in {"api_key", "api"}]
    if not keys:
        message = f"{key_text((*path, 'auth'))} allows no API key, and jp has no other way to authenticate"
        hint = "add 'api_key' to it if jp may use one, which is billed by the token"
        notes.refuse(InvalidValueError(message, (*path, "auth"), hint=hint))
    elif len(chain) > 1:
        notes.ignore((*path, "auth"), chain)
    variables: Any = form.get("api_key_env")
    named = table_of(variables)
    choices = _texts_in(named.get(keys[0], next(iter(named.values()))) if named and keys else variables)
    if choices and not isinstance(variables, str):
        form["api_key_env"] = choices[0]
        if len(named) > 1 or len(choices) > 1:
            notes.ignore((*path, "api_key_env"), variables, f"`{choices[0]}`")
    return form


def _texts_in(value: Any) -> list[str]:
    """Return the texts of a list, or a single one."""
    items = cast("list[Any]", value if isinstance(value, list) else [value])
    return [item for item in items if isinstance(item, str)]


def _command(notes: Notes, value: Any, path: KeyPath) -> Any:
    """Return the editor's command in one text."""
    del notes, path
    match value:
        case {"program": str(program), **rest} if rest.keys() <= {"args", "shell"}:
            arguments = _texts_in(rest.get("args", []))
            if rest.get("shell") is True:
                return shlex.join(["sh", "-c", f'{program} "$@"', "sh", *arguments])
            return shlex.join([program, *arguments])
        case _:
            return value


def _variables(notes: Notes, value: Any, path: KeyPath) -> Any:
    """Return the editor's variables, which the original's documentation has under another name than its program."""
    form = dict(table_of(value))
    if "env_vars" not in form:
        return value
    names = form.pop("env_vars")
    if "envs" in form:
        notes.ignore((*path, "env_vars"), names)
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


def _compaction(notes: Notes, value: Any, path: KeyPath) -> Any:
    """Return the settings of compactions with a single rule as the profile `default`; more rules are ignored."""
    form = dict(table_of(value))
    if "rules" not in form:
        return value
    rules = form.pop("rules")
    profiles = form.get("profiles", {})
    listed = table_of(rules).get("value", rules)
    profile = None
    if isinstance(listed, list) and isinstance(profiles, dict) and "default" not in profiles:
        profile = _profile(notes, cast("list[Any]", listed), (*path, "rules"))
    if profile is None:
        notes.ignore((*path, "rules"), rules)
        return form
    bounds, policies = profile
    return {**bounds, **form, "profiles": {**cast("JsonObject", profiles), "default": policies}}


def _profile(notes: Notes, rules: Sequence[Any], path: KeyPath) -> tuple[JsonObject, JsonObject] | None:
    """Return the bounds and the policies of the only rule, None where jp cannot say the same."""
    match rules:
        case [{**rule}] if rule.keys() <= {"keep_first", "keep_last", "reasoning", "tool_calls", "summary"}:
            bounds = {name: _number(rule[name]) for name in ("keep_first", "keep_last") if name in rule}
        case _:
            return None
    if not all(map(_is_bound, bounds.values())):
        return None
    policies: JsonObject = {name: rule[name] for name in ("reasoning", "tool_calls") if name in rule}
    if any(isinstance(policy, dict) for policy in policies.values()) or "text" in table_of(rule.get("summary")):
        return None  # only what is larger than a size, or a summary that is written already
    if isinstance(policies.get("tool_calls"), str):
        policies["tool_calls"] = _CALL_MODES.get(policies["tool_calls"], policies["tool_calls"])
    if isinstance(rule.get("summary"), dict):
        policies["summary"] = _summary(notes, cast("JsonObject", rule["summary"]), (*path, "0", "summary"))
    return bounds, policies


def _is_bound(value: Any) -> bool:
    if isinstance(value, int):
        return True
    return isinstance(value, str) and value[:-1].isdigit() and value[-1:] in _BOUND_UNITS


def _summary(notes: Notes, summary: JsonObject, path: KeyPath) -> JsonObject:
    model = model_id(notes, summary.get("model"), (*path, "model"))
    found: JsonObject = {"policy": "summarize", **{name: summary[name] for name in summary if name != "model"}}
    if "context" in found:
        notes.ignore((*path, "context"), found.pop("context"))
    return {**found, "model": model} if isinstance(model, str) else found


def _attachments(notes: Notes, value: Any, path: KeyPath) -> Any:
    del notes, path
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


def _unsupported_rules() -> Iterator[tuple[KeyPath, Rule]]:
    """Yield the rules for what only the original has; an exception takes something else than ignoring it."""
    for table, names in ONLY_ORIGINALS.items():
        for name in names.split():
            path = (*(table.split(".") if table else ()), name)
            if path != ("conversation", "compaction", "rules"):
                yield path, _EXCEPTIONS.get(path, _drop)


_EXCEPTIONS: Mapping[KeyPath, Rule] = {
    ("providers", "mcp", "*", "type"): _server_type,
    ("providers", "mcp", "*", "checksum"): _checksum,
    ("providers", "llm", "openai", "base_url_env"): _base_url_env,
}

_TOOL = ("conversation", "tools", "*")

RULES: Sequence[tuple[KeyPath, Rule]] = (
    *_unsupported_rules(),
    (("assistant", "model", "id"), model_id),
    (("assistant", "model", "parameters"), _parameters),
    (("assistant", "model", "parameters", "reasoning"), _reasoning),
    (("assistant", "request", "cache"), _cache),
    (("assistant", "request", "max_response_bytes"), _byte_size),
    (("assistant", "instructions", LIST), _instruction),
    (("assistant", "system_prompt_sections", LIST), _section),
    (("conversation", "title", "generate", "model"), model_id),
    (("conversation", "compaction"), _compaction),
    (("conversation", "attachments"), _attachments),
    ((*_TOOL, "enable"), _enable),
    ((*_TOOL, "style", "inline_results"), _inline_results),
    ((*_TOOL, "questions", "*", "target"), _answerer),
    ((*_TOOL, "access", "fs"), _file_rules),
    (_TOOL, _environment),
    (("editor",), _variables),
    (("editor", "cmd"), _command),
    (("providers", "llm", "*"), _account),
    (("providers", "llm", "aliases", "*"), model_id),
    (("style", "reasoning", "display"), _display),
)
