"""Rough estimates of tokens, without a tokenizer: they work for every model and without a network."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_ASCII = 25
_HALF_OF_A_PAIR = 120

_BY_PLANE_ROW: tuple[tuple[range, int], ...] = (
    (range(0x03), 50),  # accented Latin letters
    (range(0x03, 0x04), 73),  # Greek
    (range(0x04, 0x05), 45),  # Cyrillic
    (range(0x05, 0x06), 60),  # Armenian, Hebrew
    (range(0x06, 0x09), 55),  # Arabic, Syriac
    (range(0x09, 0x0F), 85),  # Indic scripts, Thai, Lao
    (range(0x0F, 0x1E), 100),  # Tibetan to Mongolian
    (range(0x1E, 0x20), 90),  # Vietnamese letters, old Greek
    (range(0x20, 0x22), 100),  # dashes, quotes, arrows
    (range(0x22, 0x25), 150),  # symbols
    (range(0x25, 0x26), 60),  # frames, which come in rows
    (range(0x26, 0x2E), 150),  # symbols
    (range(0x2E, 0xD8), 100),  # Chinese, Japanese, Korean
    (range(0xD8, 0xE0), _HALF_OF_A_PAIR),
    (range(0xE0, 0x100), 100),  # private use, wide forms
)
"""Hundredths of a token for a character, by the upper eight of its sixteen bits.

In the order of what current vocabularies take for a character of the script; a `Calibration` corrects the rest. None is
below a fifth of a token for a byte of UTF-8, so that no text is far cheaper than its size.
"""

_WEIGHT_OF_ROW = bytes(weight for rows, weight in _BY_PLANE_ROW for _ in rows)
_ASCII_BYTES = bytes(range(0x80))
_WEIGHTS = sorted(set(_WEIGHT_OF_ROW))
_BYTES_PER_TOKEN = 4.0
_TOKENS_PER_EXTRA_BYTE = 0.375


def estimate_tokens(text: str) -> int:
    """Return the tokens of `text`: one for 4 ASCII characters, and a number that depends on the script for any other.

    Adding text never reduces the estimate.
    """
    if text.isascii():
        return round(len(text) / _BYTES_PER_TOKEN)
    raw = text.encode("utf-8", "surrogatepass")
    rest = raw.translate(None, _ASCII_BYTES)
    wide = rest.decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass")
    weights = wide[1::2].translate(_WEIGHT_OF_ROW)
    total = sum(weights.count(weight) * weight for weight in _WEIGHTS) + (len(raw) - len(rest)) * _ASCII
    return round(total / 100)


def estimate_tokens_of_bytes(size: int, chars: int | None = None) -> int:
    """Return the tokens of `size` bytes of text that is not loaded; `chars` is its number of characters, if known.

    Characters that take more than one byte cost more than their share.
    """
    if chars is None:
        return round(size / _BYTES_PER_TOKEN)
    return round(chars / _BYTES_PER_TOKEN + max(size - chars, 0) * _TOKENS_PER_EXTRA_BYTE)


PER_IMAGE = 1_600
"""Tokens of an image: providers scale one down until it costs about this much."""

_ADDRESS = r'(?<!\\)"(?:data:[\w/.+-]+;base64,)?'
_PICTURE = re.compile(_ADDRESS + r'(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR)[A-Za-z0-9+/]*={0,2}"')
_DOCUMENT = re.compile(_ADDRESS + "JVBERi0")
"""Strings of JSON that are an image (PNG, JPEG, GIF, WebP), and that begin a PDF, by their first bytes in Base64."""


class PartTokens(NamedTuple):
    """The estimated tokens of a part of a request; `encoded` is the number of images and documents in it."""

    tokens: int
    encoded: int


def estimate_parts(items: Iterable[bytes]) -> PartTokens:
    """Return the tokens of JSON. An image costs what images do, a document as much as its bytes would as text."""
    tokens = encoded = 0
    for item in items:
        text = item.decode()
        pieces = _PICTURE.split(text)
        tokens += sum(map(estimate_tokens, pieces)) + PER_IMAGE * (len(pieces) - 1)
        encoded += len(pieces) - 1 + len(_DOCUMENT.findall(text))
    return PartTokens(tokens, encoded)
