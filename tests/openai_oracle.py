"""What the official SDK says of the Responses API: whether a request is one, and what a stream says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast


@cache
def _adapter(*, streams: bool) -> Any:
    from openai.types.responses.response_create_params import (
        ResponseCreateParamsNonStreaming,
        ResponseCreateParamsStreaming,
    )
    from pydantic import TypeAdapter

    return TypeAdapter(ResponseCreateParamsStreaming if streams else ResponseCreateParamsNonStreaming)


def _plain(value: object) -> object:
    """The value with everything lazy read: only reading validates it."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in cast("Mapping[str, object]", value).items()}
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return [_plain(item) for item in cast("Iterable[object]", value)]


def assert_accepted(body: dict[str, Any]) -> None:
    """The SDK's types have a place for everything in `body`, and miss nothing.

    What they do not know they would drop, so what comes out has to equal what went in.
    """
    assert _plain(_adapter(streams=body["stream"]).validate_python(body)) == body
