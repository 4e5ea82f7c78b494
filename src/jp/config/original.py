"""The original JP's stored configurations, in the spelling of this one, as far as it knows their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from jp.config.keys import KeyPath
from jp.config.model import JsonObject


def adapted(raw: JsonObject) -> JsonObject:
    """`raw` with values of another form rewritten: model ids, reasoning, caching, the state of tools."""
    for path, rewrite in _REWRITES:
        raw = _rewritten(raw, path, rewrite)
    return raw


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
        case {"state": bool() as state}:
            return state
        case "on" | "always":
            return True
        case "off" | "explicit":
            return False
        case _:
            return value


_REWRITES: tuple[tuple[KeyPath, Callable[[Any], Any]], ...] = (
    (("assistant", "model", "id"), _model_id),
    (("assistant", "model", "parameters", "reasoning"), _reasoning),
    (("assistant", "request", "cache"), _cache),
    (("conversation", "tools", "*", "enable"), _enable),
)
