"""Tokens of a message by a real tokenizer where one is installed, else by jp's estimate.

tiktoken's o200k is used where `TIKTOKEN_CACHE_DIR` names a folder with its ranks, so that nothing is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from jp.context.budget import estimate_message
from jp.context.types import Message, ReasoningBlock, TextBlock

_ENVELOPE = 4
"""Tokens of what stands around a message or a call on the wire."""


class _Encoding(Protocol):
    def encode_ordinary(self, text: str, /) -> Sequence[int]: ...


class _Tiktoken(Protocol):
    def get_encoding(self, name: str, /) -> _Encoding: ...


class Tokenizer(NamedTuple):
    """Count tokens; `name` is what tables say of it."""

    name: str
    count_message: Callable[[Message], int]
    truncate: Callable[[str, int], str]

    def count(self, messages: Sequence[Message]) -> int:
        """Return the tokens of all `messages`."""
        return sum(map(self.count_message, messages))


def estimating() -> Tokenizer:
    """Return jp's own estimate, with four characters a token where a text is cut."""

    def truncate(text: str, tokens: int) -> str:
        return text[: tokens * 4]

    return Tokenizer("jp's estimate", estimate_message, truncate)


@cache
def tokenizer() -> Tokenizer:
    """Return tiktoken's o200k where it is installed with its ranks, else the estimate."""
    if not os.environ.get("TIKTOKEN_CACHE_DIR"):
        return estimating()
    try:
        library = cast("_Tiktoken", import_module("tiktoken"))
    except ImportError:
        return estimating()
    return measured_by(library.get_encoding("o200k_base"), "tiktoken's o200k")


def measured_by(encoding: _Encoding, name: str) -> Tokenizer:
    """Return a tokenizer that counts with `encoding`; texts that were counted once are not encoded again."""

    @cache
    def tokens_in(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    def count(message: Message) -> int:
        blocks = (TextBlock(text=message.content),) if isinstance(message.content, str) else message.content
        texts = [block.text for block in blocks if isinstance(block, TextBlock | ReasoningBlock)]
        called = [text for call in message.calls for text in (call.name, call.arguments)]
        return sum(map(tokens_in, (*texts, *called))) + _ENVELOPE * (1 + len(message.calls))

    def truncate(text: str, tokens: int) -> str:
        start = text[: tokens * 8]
        while tokens_in(start) > tokens:
            start = start[: len(start) * tokens // max(tokens_in(start), tokens + 1)]
        return start

    return Tokenizer(name, count, truncate)
