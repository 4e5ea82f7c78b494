"""The original JP's stored configurations, in the spelling of this one, as far as it knows their keys.

What only a conversation of the original says, `Spelling` rewrites: the short names of models that came with it, and
attachments as tables or with paths from the workspace's root. What jp stores itself is spelled so, too, and means
something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import msgspec

from jp.config.keys import KeyPath
from jp.config.model import JsonObject


def adapted(raw: JsonObject) -> JsonObject:
    """`raw` with values of another form rewritten: model ids, reasoning, caching, the state of tools."""
    for path, rewrite in _REWRITES:
        raw = _rewritten(raw, path, rewrite)
    return raw


class Spelling:
    """Rewrites the configurations of one conversation, in order: its base, then its deltas."""

    def __init__(self) -> None:
        self._aliases: dict[str, Any] = {}

    def take(self, raw: JsonObject) -> JsonObject:
        """`raw` in jp's spelling; taking the result again changes nothing."""
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
                **{name: form[name] for name in form if name in {"strategy", "dedup"}},
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
