"""Original text as it may stand in something new: without secrets, and cut around a marker where it is too long."""

from __future__ import annotations

from jp.context.markers import Cutter, marker, shortest_limit
from jp.context.redaction import redacted

_HEAD_SHARE = 3
_TAIL_SHARE = 4
"""Of what is kept of a long text, its end gets one part in four."""

NOTE = 40
"""Characters, at most, of the note in a text that was cut plainly."""


def without_secrets(original: str, known: dict[str, str] | None = None) -> str:
    """`original` as it may be written anew: no secrets, and no halves of surrogate pairs, which no file takes.

    `known` is what `jp.context.redaction.redacted` remembers.
    """
    text = redacted(original, {} if known is None else known)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def excerpt(original: str, limit: int, cutter: Cutter) -> str:
    """`original` without its secrets in at most `limit` characters; its marker's handle recalls the original itself.

    Where the limit is too small for a marker, the excerpt gets as long as one.
    """
    text = without_secrets(original, cutter.known)
    if len(text) <= limit:
        return text
    limit = max(limit, shortest_limit(cutter.nonce))
    if len(text) <= limit:
        return text
    handle = cutter.artifacts.keep(original)
    kept = limit - len(marker(cutter.nonce, handle, len(text)))
    head = kept * _HEAD_SHARE // _TAIL_SHARE
    tail = len(text) - (kept - head)
    return text[:head] + marker(cutter.nonce, handle, tail - head) + text[tail:]


def cut_plainly(text: str, limit: int) -> str:
    """The beginning and end of `text`, with a note between; at most `NOTE` characters more than `limit`."""
    if len(text) <= limit:
        return text
    head = limit * _HEAD_SHARE // _TAIL_SHARE
    tail = len(text) - (limit - head)
    return f"{text[:head]} [{tail - head} characters left out] {text[tail:]}"
