"""What the official SDK says: whether a request is one, and what a stream says."""

from __future__ import annotations

from typing import Any

from anthropic.types.beta.message_create_params import MessageCreateParamsStreaming as BetaParams
from anthropic.types.message_create_params import MessageCreateParamsStreaming as Params
from pydantic import TypeAdapter

from sdk_types import assert_typed

_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
"""In the version of the API that jp speaks, but no longer in the one that the SDK speaks."""


_OPEN = TypeAdapter[Any](Params)
_BETA = TypeAdapter[Any](BetaParams)


def assert_accepted(body: dict[str, Any]) -> None:
    """The SDK's types have a place for everything in `body`, and miss nothing."""
    beta = "block_binding" in body.get("thinking", {})
    known = {name: value for name, value in body.items() if name not in _SAMPLING}
    assert_typed(known, _BETA if beta else _OPEN)
