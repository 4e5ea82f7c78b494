"""What reading a stranger's JSON has to be ready for, whoever the vendor is. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from jp.conversation.entries import InputChange, Usage
from jp.provider.errors import ProviderError
from jp.provider.parts import ToolCallStart

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises: at what is no JSON or of another type, no UTF-8, or nested without end."""

_MOST_TOKENS = 2**53 - 1
"""More than anybody counts, and as much as every reader of JSON holds exactly."""


def unreadable(provider: str, what: str = "event") -> ProviderError:
    """The error of an event that has to be understood and cannot be: the next answer may be a better one."""
    article = "an" if what[0] in "aeiou" else "a"
    return ProviderError(f"{provider} sent {article} {what} that cannot be read", kind="transient")


def text_of(raw: msgspec.Raw) -> str:
    """JSON as text. What of it is no UTF-8 is replaced: it has not been looked at yet."""
    return bytes(raw).decode(errors="replace")


def counted(
    *,
    prompt: int | None,
    output: int | None,
    cache_read: int | None = None,
    cache_write: int | None = None,
    reasoning: int | None = None,
) -> Usage:
    """Tokens in classes that do not overlap, of counts in which they do.

    `prompt` is counted with what was read from a cache and written to one, `output` with the reasoning. Counts that
    are missing, or make no sense, are 0.
    """
    read, write, out = _tokens(cache_read), _tokens(cache_write), _tokens(output)
    return Usage(
        input=max(0, _tokens(prompt) - read - write),
        output=out,
        cache_read=read,
        cache_write=write,
        # Some report more than the whole output: what a summary of it would have taken.
        reasoning=min(_tokens(reasoning), out),
    )


def _tokens(count: int | None) -> int:
    return min(max(0, count or 0), _MOST_TOKENS)


def plausible(usage: Usage) -> Usage:
    """`usage` with 0 for what makes no sense."""
    return Usage(**{name: _tokens(getattr(usage, name)) for name in Usage.__struct_fields__})


def input_changes(raw: msgspec.Raw) -> tuple[InputChange, ...] | None:
    """Return the `input_transformations` of a response, None where it has none that can be read.

    Anthropic names a `type` and a `path`, OpenAI a `type`, an `action` and an `id` (their SDKs' types, 2026-11-22).
    """
    try:
        found = msgspec.json.decode(raw, type=list[dict[str, Any]] | None)
    except UNREADABLE:
        return None
    if found is None:
        return None
    return tuple(
        InputChange(
            type="_".join(str(each[name]) for name in ("type", "action") if each.get(name)),
            path=str(each.get("path") or each.get("id") or ""),
            reason=str(each.get("reason") or ""),
        )
        for each in found
    )


class CallStarts:
    """The beginnings of the calls of one response, each under an id of its own."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._ids: set[str] = set()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._ids)

    def start(self, index: int, *, given: str, name: str, number: int | None = None) -> ToolCallStart:
        """The call that begins in block `index`: a missing id is made up of `number`, a repeated one is told apart.

        Raises:
            ProviderError: it has no name.
        """
        if not name:
            raise self.nameless()
        mark = index if number is None else number
        call_id = given or f"call_{mark}"
        while call_id in self._ids:
            call_id = f"{call_id}_{mark}"
        self._ids.add(call_id)
        return ToolCallStart(index, call_id, name)

    def nameless(self) -> ProviderError:
        """The error of a call without a name."""
        return ProviderError(f"{self._provider} sent a call without a name", kind="transient")
