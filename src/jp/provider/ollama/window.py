"""Whether a request fits the window that Ollama was asked to hold, and whether it did. Pure.

A server that is not told otherwise, and any server before 0.12.6, answers a request that is too long as if nothing
was amiss: it forgets the oldest messages, or cuts the middle out of the prompt. What betrays it is its own count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

import msgspec

from jp.context.estimate import estimate_tokens
from jp.conversation.entries import JsonObject
from jp.provider.base import Unfit

_REPEATED = re.compile(r"(.)\1{3,}", re.DOTALL)
"""What a tokenizer may have one token for, however long it is."""

_MARGIN = 2
"""No vocabulary that is in use takes fewer tokens for a text than the estimate divided by this."""

_CROWDED = 0.75
"""The share of the window from which on an estimate does not rule out that the prompt did not fit."""

_SHORTEST = 1024
"""No model that is in use was made for fewer tokens than this: a shorter request was not cut, whatever is counted."""

_BRIM = 1
"""How far from the window a count is that fills it."""

_KEPT = 16
"""How many tokens of the beginning a server keeps at most when it throws away half of a prompt, unless told."""

_LOADED_NANOSECONDS = 1_000_000_000
"""A server that took longer than this to load the model has nothing of the prompt in its cache."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What the server counted: tokens, None where it does not say; and how long the model took to load.

    `prompt` is not to be relied on as it is: some versions leave out what they had in their cache.
    """

    prompt: int | None = None
    cached: int | None = None
    output: int = 0
    load_nanoseconds: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether `prompt` certainly counts all that was read, cached or not."""
        return self.cached is not None or self.load_nanoseconds >= _LOADED_NANOSECONDS


def window_of(body: JsonObject) -> int | None:
    """The window that a request asks for, None where it leaves that to the server."""
    options: object = body.get("options")
    window = cast("JsonObject", options).get("num_ctx") if isinstance(options, dict) else None
    return window if isinstance(window, int) else None


def hint(body: JsonObject, provider: str) -> str:
    """How more of a conversation fits."""
    return (
        f"set `providers.llm.{provider}.context_window` higher than {window_of(body)}, as far as the model and the "
        "memory go, or send less: fewer attachments, or a new conversation with `jp query --new`"
    )


def unfit(body: JsonObject, provider: str) -> Unfit | None:
    """Why a request need not be sent: it is certain not to fit. None where it may."""
    window = window_of(body)
    if window is None or (least := least_tokens(body, more_than=window)) <= window:
        return None
    message = f"{provider} holds {window} tokens, and the request has {least} at the very least"
    return Unfit(message=message, hint=hint(body, provider))


def shortfall(body: JsonObject, counted: Counted) -> str:
    """What the server's count says of how much it has read, empty where that may be all.

    Either it stopped at the brim; or it threw half away, as servers that make room do; or it read less than there
    is in any case, where the count can be relied on.
    """
    window, prompt = window_of(body), counted.prompt
    if window is None or prompt is None:
        return ""
    if abs(prompt - window) <= _BRIM:
        return f"the request filled all of the {window} tokens that it holds"
    estimate = _estimate(body)
    if 0 <= prompt - window // 2 <= _KEPT and estimate > window * _CROWDED:
        return f"it has read {prompt} tokens of about {estimate}"
    is_suspect = counted.is_whole and estimate > _SHORTEST and prompt < estimate // _MARGIN
    if is_suspect and prompt < least_tokens(body, more_than=prompt):
        return f"it has read {prompt} tokens of about {estimate}"
    return ""


def is_full(body: JsonObject, counted: Counted) -> bool:
    """Whether prompt and answer together are all that the server holds."""
    window = window_of(body)
    return window is not None and counted.prompt is not None and counted.prompt + counted.output >= window - _BRIM


def least_tokens(body: JsonObject, *, more_than: int) -> int:
    """How many tokens a request certainly has; any number up to `more_than` where it is no more than that."""
    texts = tuple(_texts(body))
    if sum(map(len, texts)) <= more_than:
        return more_than
    return sum(estimate_tokens(_REPEATED.sub(r"\1\1\1", text)) for text in texts) // _MARGIN


def _estimate(body: JsonObject) -> int:
    return sum(map(estimate_tokens, _texts(body)))


def _texts(body: JsonObject) -> Iterator[str]:
    """The texts that every template shows a model: not what it thought before, and of tools what they say in words."""
    messages: list[JsonObject] = body["messages"]
    for message in messages:
        yield message["content"]
        for call in message.get("tool_calls", ()):
            yield from _leaves(call)
    tools: list[JsonObject] = body.get("tools", [])
    for tool in tools:
        yield tool["function"]["description"]


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, object]", value).values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _leaves(item)
