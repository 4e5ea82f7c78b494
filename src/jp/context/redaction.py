"""Secrets leave a text before anything is derived from it."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from jp.context.markers import Cutter, marker, shortest_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from jp.context.secret_shapes import SecretKind, Span


_SHORT = 400
_SHORTEST = 8
"""Characters of the shortest text that a secret can be told in: it has a name or a shape, too."""

_SHORTEST_KEY = 16
_SIGNS = (
    *("key", "token", "cookie", "pwd", "auth", "secret", "cred", "pass", "sess", "sig", "login", "bearer"),
    *("://", "%", "eyj", "xox", "xapp-", "curl", "http ", "https ", "xh", "smb", "rpc"),
    *("mysql", "mariadb", "mongo", "7z", "redis", "ldap", "sql", "bcp", "zip"),
)
"""Parts of everything that is found in words shorter than `_SHORTEST_KEY`: what names a secret, or takes one."""

_NEEDED = re.compile(r"[0-9=:>-]")
"""Characters that every secret contains or is next to."""


class Redacted(msgspec.Struct, frozen=True):
    """`text` is the very object that came in where nothing was `found`: the kinds of what was, in their order."""

    text: str
    found: tuple[SecretKind, ...] = ()


def redact(text: str) -> Redacted:
    """Return `text` with `[redacted:KIND]` in place of each secret and no other change. A second pass finds nothing."""
    spans = secrets_in(text)
    if not spans:
        return Redacted(text)
    pieces: list[str] = []
    position = 0
    for span in spans:
        pieces += [text[position : span.start], f"[redacted:{span.kind}]"]
        position = span.end
    return Redacted("".join((*pieces, text[position:])), tuple(span.kind for span in spans))


def secrets_in(text: str) -> list[Span]:
    """Return where the secrets of `text` are, in order; none overlaps another."""
    if len(text) < _SHORTEST or _NEEDED.search(text) is None:
        return []
    if not _finder.cache_info().currsize and len(text) < _SHORT and has_no_sign(text):
        return []
    return _finder()(text)


def redacted(text: str, known: dict[str, str]) -> str:
    """Return the text of `redact`, from `known` if it is there; else add it."""
    found = known.get(text)
    if found is None:
        found = known[text] = redact(text).text
    return found


def has_no_sign(text: str) -> bool:
    """Return whether `text` certainly has no secret, without the patterns that take milliseconds to compile."""
    words = text.split()
    lowered = " ".join(words).lower()
    if any(sign in lowered for sign in _SIGNS):
        return False
    return not any(
        len(word) >= _SHORTEST_KEY and any(char.isdigit() or char.isupper() for char in word) for word in words
    )


@cache
def _finder() -> Callable[[str], list[Span]]:
    from jp.context.secret_finder import find_secrets

    return find_secrets


_HEAD_SHARE = 3
_TAIL_SHARE = 4
"""Of what is kept of a long text, its end gets one part in four."""


def without_secrets(original: str, known: dict[str, str] | None = None) -> str:
    """Return `original` in a writable form: no secrets, and no halves of surrogate pairs, which no file accepts.

    `known` is the cache of `jp.context.redaction.redacted`.
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
    """Return `original` without its secrets in at most `limit` characters; the marker's handle recalls the original.

    If the limit is too small for a marker, the excerpt gets as long as one.
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
    """Return the beginning and end of `text`, with a note between; at most `NOTE` characters more than `limit`."""
    if len(text) <= limit:
        return text
    head = limit * _HEAD_SHARE // _TAIL_SHARE
    tail = len(text) - (limit - head)
    return f"{text[:head]} [{tail - head} characters omitted] {text[tail:]}"
