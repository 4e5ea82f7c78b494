"""What the official SDK says of the Responses API: whether a request is one, and what a stream says."""

from __future__ import annotations

from typing import Any

from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

from sdk_types import assert_typed

_WHOLE = TypeAdapter[Any](ResponseCreateParamsNonStreaming)
_STREAMED = TypeAdapter[Any](ResponseCreateParamsStreaming)


def assert_accepted(body: dict[str, Any]) -> None:
    """The SDK's types have a place for everything in `body`, and miss nothing."""
    assert_typed(body, _STREAMED if body["stream"] else _WHOLE)
