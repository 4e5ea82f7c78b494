"""Ask a provider for an exact count of tokens. Pure.

The request goes over the transport that the counted request would take: the vendors' SDKs would ask the same, after an
import of a second.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import JsonObject
from jp.provider.base import WireRequest
from jp.provider.errors import ProviderError


class _Count(msgspec.Struct):
    """What providers answer; each has one of these."""

    input_tokens: int | None = None
    total_tokens: int | None = msgspec.field(name="totalTokens", default=None)


def count_at(request: WireRequest, path: str, names: Collection[str], *, body: JsonObject | None = None) -> WireRequest:
    """Return what asks at `path` for the tokens of those fields of a request, or of `body`, that have `names`."""
    whole = request.body if body is None else body
    return replace(
        request, path=path, body={name: value for name, value in whole.items() if name in names}, framing="json"
    )


def counted(provider: str, body: bytes) -> int:
    """Return the tokens that a provider has counted.

    Raises:
        ProviderError: it does not say how many.
    """
    try:
        count = msgspec.json.decode(body, type=_Count)
    except (msgspec.DecodeError, UnicodeDecodeError):
        count = _Count()
    tokens = count.total_tokens if count.input_tokens is None else count.input_tokens
    if tokens is None:
        raise ProviderError(f"{provider} answered the request for a count without one", kind="transient")
    return tokens
