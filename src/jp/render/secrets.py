"""Secrets that are known as such: the keys that jp has read, and variables whose names say what they are.

Nothing that jp prints or keeps of its own accord has them.
"""

from __future__ import annotations

from collections.abc import Mapping

_ENDINGS = ("_API_KEY", "_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_SHORTEST = 8
_MASK = "***"
_kept: set[str] = set()


def keep_secret(secret: str) -> None:
    """Mask `secret`, which does not stand in the environment, from now on."""
    if len(secret) >= _SHORTEST:
        _kept.add(secret)


def mask(text: str, environment: Mapping[str, str]) -> str:
    """Return `text` with secrets masked: those that were kept, and values of variables with such names."""
    for secret in _kept:
        text = text.replace(secret, _MASK)
    for name, value in environment.items():
        if name.upper().endswith(_ENDINGS) and len(value) >= _SHORTEST:
            text = text.replace(value, _MASK)
    return text
