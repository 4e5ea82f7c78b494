"""How many tokens a text is, roughly: no tokenizer is asked, so that every model and an empty network are served."""

from __future__ import annotations

_HIGH_BYTES = bytes(range(128, 256))
_ASCII_PER_TOKEN = 4.0
_OTHER_BYTES_PER_TOKEN = 2.5


def estimate_tokens(text: str) -> int:
    """Tokens of `text`: a token for 4 ASCII characters, or for 2.5 UTF-8 bytes of any other script."""
    encoded = text.encode("utf-8", "replace")
    ascii_count = len(encoded) if text.isascii() else len(encoded.translate(None, _HIGH_BYTES))
    other = len(encoded) - ascii_count
    return round(ascii_count / _ASCII_PER_TOKEN + other / _OTHER_BYTES_PER_TOKEN)


def estimate_tokens_of_bytes(size: int) -> int:
    """Tokens of `size` bytes of text that is not at hand."""
    return round(size / _ASCII_PER_TOKEN)
