"""What the official SDK says of the Responses API: whether a request is one, and what a stream says."""

from __future__ import annotations

from functools import cache
from typing import Any

from sdk_types import assert_typed


@cache
def _adapter(*, streams: bool) -> Any:
    from openai.types.responses.response_create_params import (
        ResponseCreateParamsNonStreaming,
        ResponseCreateParamsStreaming,
    )
    from pydantic import TypeAdapter

    return TypeAdapter(ResponseCreateParamsStreaming if streams else ResponseCreateParamsNonStreaming)


def assert_accepted(body: dict[str, Any]) -> None:
    """The SDK's types have a place for everything in `body`, and miss nothing."""
    assert_typed(body, _adapter(streams=body["stream"]))
