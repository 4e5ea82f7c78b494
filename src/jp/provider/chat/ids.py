"""The ids of calls, as servers take them. Pure."""

from __future__ import annotations

from typing import Literal, assert_never

from jp.provider.arrangement import plain_id

CallIds = Literal["any", "short"]

_LONGEST = 40
"""OpenAI's own server takes no more characters."""

_CUT = 32
"""How much is left of a longer one: a number may follow where ids repeat."""

_SHORT = 9
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def plain(call_id: str, number: int) -> str:
    """An id that most servers take."""
    return plain_id(call_id if len(call_id) <= _LONGEST else call_id[:_CUT], number)


def short(call_id: str, number: int) -> str:
    """An id of nine letters and digits: the one that was given where it is such, else always the same for the same."""
    if number == 1 and len(call_id) == _SHORT and call_id.isascii() and call_id.isalnum():
        return call_id
    from hashlib import sha256

    rest = int.from_bytes(sha256(f"{number} {call_id}".encode(errors="surrogatepass")).digest(), "big")
    digits: list[str] = []
    for _ in range(_SHORT):
        rest, digit = divmod(rest, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(digits)


def wire_id(call_id: str, number: int, *, kind: CallIds) -> str:
    """The id under which the `number`th call of an id goes back to a server."""
    match kind:
        case "any":
            return plain(call_id, number)
        case "short":
            return short(call_id, number)
        case _:
            assert_never(kind)
