"""The original JP's configurations: the stored ones in the spelling of this one, and the keys that this one has not.

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

_ONLY_THERE: Mapping[str, str] = {
    "": "interrupt plugins",
    "assistant": "name",
    "conversation": "default_id inquiry labels",
    "conversation.compaction": "rules",
    "conversation.tools.*": "cancellation_response format",
    "conversation.tools.*.style": "error parameters results_file_link",
    "editor": "inline",
    "providers.llm.openai": "base_url_env",
    "providers.mcp.*": "checksum type",
    "style": "inline_code lock_wait mcp_startup streaming tool_call typewriter",
    "style.code": "color copy_link file_link line_numbers",
    "style.markdown": "hr_style table_continuation_edge table_max_column_width theme",
    "style.reasoning": "background extend_across_tool_calls summary_model",
}
"""Settings of the original that jp has not, by the table that they stand in; `*` is any name."""


def is_only_originals(path: KeyPath) -> bool:
    """Whether a key that jp does not know is one that the original knows."""
    *above, name = path
    return any(
        name in names.split() and len(table) == len(above) and all(map(_fits, table, above))
        for table, names in ((key.split(".") if key else [], names) for key, names in _ONLY_THERE.items())
    )


def _fits(pattern: str, name: str) -> bool:
    return pattern in {"*", name}


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
