"""Secrets leave a text before anything is derived from it: a digest, a prompt for a summary, a report, a name, a log.

Known by their shape (what vendors issue, tokens in three parts, private keys, passwords in addresses), by the name
that they are assigned to, or by the command that they are given to. It takes time in proportion to the text, whatever
the text is. A secret with neither a known shape nor a telling name, such as one in prose that is only a word, is not
found.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from jp.context.secret_names import SecretKind
    from jp.context.secret_shapes import Span

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
"""What every secret has in it or beside it."""


class Redacted(msgspec.Struct, frozen=True):
    """`text` is the very object that came in where nothing was `found`: the kinds of what was, in their order."""

    text: str
    found: tuple[SecretKind, ...] = ()


def redact(text: str) -> Redacted:
    """`text` with `[redacted:KIND]` in place of each secret; nothing else changes. Again, it finds nothing."""
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
    """The text of `redact`: as `known` has it, or learns it now."""
    found = known.get(text)
    if found is None:
        found = known[text] = redact(text).text
    return found


def has_no_sign(text: str) -> bool:
    """Whether nothing in `text` can be a secret, found without what takes milliseconds to prepare."""
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
