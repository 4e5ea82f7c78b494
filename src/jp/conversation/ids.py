"""Identity: entry ids, conversation ids, slugs."""

from __future__ import annotations

import re
import unicodedata

from jp.errors import UsageError
from jp.remedies import Show, phrase

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_CHARS = 10
_ENTROPY_CHARS = 16
ENTROPY_BYTES = 10
"""The random bytes of an entry id."""

_SLUG_CHARS = 60
_PREFIX = "jp-c"
_DIGITS = re.compile(r"[0-9]{1,18}")


def _base32(number: int, chars: int) -> str:
    digits: list[str] = []
    for _ in range(chars):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def _successor(entry_id: str) -> str:
    number = 0
    for char in entry_id:
        number = number * 32 + _ALPHABET.index(char)
    return _base32(number + 1, len(entry_id))


def entry_id(*, milliseconds: int, entropy: bytes, last: str = "") -> str:
    """Return a new entry id: 26 characters that sort by time, and after `last` even if the clock went back.

    `milliseconds` since the Unix epoch; `entropy` has `ENTROPY_BYTES` bytes. A `last` of another form is ignored, and
    so is the last of all ids, which nothing sorts after.
    """
    fresh = _base32(milliseconds, _TIME_CHARS) + _base32(int.from_bytes(entropy), _ENTROPY_CHARS)
    well_formed = len(last) == len(fresh) and all(char in _ALPHABET for char in last)
    has_successor = well_formed and last.strip(_ALPHABET[-1]) != ""
    return _successor(last) if has_successor and last >= fresh else fresh


class ConversationId(str):
    """A conversation's id as users see it: `jp-c` and the deciseconds since the Unix epoch."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> ConversationId:
        """Read an id, with or without its prefix.

        Raises:
            UsageError: it is none.
        """
        digits = text.removeprefix(_PREFIX)
        if _DIGITS.fullmatch(digits) is None:
            msg = f"{text!r} is not a conversation id"
            hint = phrase("ids look like 'jp-c17800836875'; list them with `", Show("conversations"), "`")
            raise UsageError(msg, hint=hint)
        return cls.of_digits(digits)

    @classmethod
    def of_digits(cls, digits: str) -> ConversationId:
        """Return the id that has these digits."""
        return cls(_PREFIX + digits)

    @classmethod
    def at(cls, deciseconds: int) -> ConversationId:
        """Return the id of a conversation that was created at this time."""
        return cls(f"{_PREFIX}{deciseconds}")

    @property
    def deciseconds(self) -> int:
        """Return the time of its creation, since the Unix epoch."""
        return int(self.digits)

    @property
    def digits(self) -> str:
        """Return the digits with which the name of its directory begins."""
        return self.removeprefix(_PREFIX)


def slug(title: str) -> str:
    """Return the words of `title` for a directory's name: at most 60 characters, ASCII, possibly empty."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if len(words) <= _SLUG_CHARS:
        return words
    return words[: _SLUG_CHARS + 1].rpartition("-")[0] or words[:_SLUG_CHARS]
