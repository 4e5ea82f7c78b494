"""What the official SDK says: whether a request is one, and what a stream says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast

from anthropic.types.beta.message_create_params import MessageCreateParamsStreaming as BetaParams
from anthropic.types.message_create_params import MessageCreateParamsStreaming as Params
from pydantic import TypeAdapter

_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
"""In the version of the API that jp speaks, but no longer in the one that the SDK speaks."""


@cache
def _adapter(*, beta: bool) -> TypeAdapter[Any]:
    return TypeAdapter(BetaParams if beta else Params)


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
    beta = "block_binding" in body.get("thinking", {})
    known = {name: value for name, value in body.items() if name not in _SAMPLING}

    assert _plain(_adapter(beta=beta).validate_python(known)) == known
