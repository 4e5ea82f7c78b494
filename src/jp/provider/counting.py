"""Exact counts: what a provider is asked to count of a request, and what it answers. Pure.

A count is asked for over the transport that the request itself would take: the vendors' SDKs would ask the same, after
an import of a second. Gemini's cannot: it counts neither the system prompt nor the tools of its own API.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from jp.conversation.entries import JsonObject
from jp.provider.base import WireRequest
from jp.provider.errors import ProviderError

COUNTING = ("anthropic", "openai", "google")
"""The kinds of providers that count."""

_NOT_COUNTING = ("bedrock",)
"""The clouds that do not, though the vendor does."""

_ANTHROPIC = frozenset({
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "cache_control",
    "speed",
})
_OPENAI = frozenset({
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "truncation",
    "conversation",
    "previous_response_id",
})
_VERTEX = frozenset({"contents", "systemInstruction", "tools", "generationConfig"})
"""What is counted of a request: the rest says how it is answered."""


class _Count(msgspec.Struct):
    """What providers answer; each has one of these."""

    input_tokens: int | None = None
    total_tokens: int | None = msgspec.field(name="totalTokens", default=None)


def count_request(kind: str, request: WireRequest, *, platform: str | None = None) -> WireRequest | None:
    """What asks for the tokens of `request`; None where nobody counts them.

    `kind` is what the provider speaks, `platform` the cloud that it is in.
    """
    if kind not in COUNTING or platform in _NOT_COUNTING:
        return None
    match kind:
        case "anthropic":
            path, body = f"{request.path}/count_tokens", _part(request.body, _ANTHROPIC)
        case "openai":
            path, body = f"{request.path}/input_tokens", _part(request.body, _OPENAI)
        case _:
            path = request.path.partition(":streamGenerateContent")[0]
            whole: JsonObject = {"generateContentRequest": {"model": path.removeprefix("/"), **request.body}}
            path, body = f"{path}:countTokens", _part(request.body, _VERTEX) if platform else whole
    return replace(request, path=path, body=body, framing="json")


def counted(provider: str, body: bytes) -> int:
    """The tokens that a provider has counted.

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


def _part(body: JsonObject, names: frozenset[str]) -> JsonObject:
    return {name: value for name, value in body.items() if name in names}
