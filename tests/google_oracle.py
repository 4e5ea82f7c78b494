"""What the official SDK says: whether a request is one, and what a stream says."""

from __future__ import annotations

import base64
from functools import cache
from typing import Any, cast

import msgspec

Body = dict[str, Any]


@cache
def _request() -> type[Any]:
    """The body of `streamGenerateContent`, of the SDK's own types. They refuse what they do not know."""
    from google.genai import types
    from pydantic import BaseModel, ConfigDict
    from pydantic.alias_generators import to_camel

    class Request(BaseModel):
        model_config = ConfigDict(
            alias_generator=to_camel, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"
        )

        contents: list[types.Content]
        system_instruction: types.Content | None = None
        tools: list[types.Tool] | None = None
        tool_config: types.ToolConfig | None = None
        generation_config: types.GenerationConfig | None = None

    return Request


def _same_bytes(value: object) -> object:
    """The value with base64 in one alphabet: the SDK writes the one that is safe in addresses."""
    if isinstance(value, dict):
        found = cast("Body", value)
        opaque = {name: found[name] for name in ("thoughtSignature", "data") if isinstance(found.get(name), str)}
        plain = {name: _same_bytes(item) for name, item in found.items() if name not in opaque}
        return {**plain, **{name: base64.urlsafe_b64decode(_safe(text)) for name, text in opaque.items()}}
    return [_same_bytes(item) for item in cast("list[object]", value)] if isinstance(value, list) else value


def _safe(text: str) -> str:
    return text.replace("+", "-").replace("/", "_")


def assert_accepted(body: Body) -> None:
    """The SDK's types have a place for everything in `body`, and what comes out equals what went in."""
    read = _request().model_validate_json(msgspec.json.encode(body))

    assert _same_bytes(msgspec.json.decode(read.model_dump_json(by_alias=True, exclude_unset=True))) == _same_bytes(
        msgspec.to_builtins(body)
    )
