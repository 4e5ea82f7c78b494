"""Which names say that their value is a secret: of settings, fields, headers, flags and variables."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

SecretKind = Literal[
    "api-key", "authorization", "cookie", "credential", "key", "password", "private-key", "secret", "session", "token"
]
"""What a value is, as the marker in its place says."""

LONGEST_NAME = 64


class Sensitive(msgspec.Struct, frozen=True):
    """What a name promises. `certain` is False where the name alone is a word of everyday prose and code."""

    kind: SecretKind
    certain: bool = True


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_WHEREVER: dict[str, SecretKind] = {
    "password": "password",
    "passwd": "password",
    "passphrase": "password",
    "credential": "credential",
    "secret": "secret",
    "apikey": "key",
    "authorization": "authorization",
}
"""Parts of a name that make it sensitive wherever they stand in it."""

_LAST: dict[str, SecretKind] = {
    "token": "token",
    "key": "key",
    "cookie": "cookie",
    "session": "session",
    "sessionid": "session",
    "auth": "authorization",
    "pwd": "password",
    "pass": "password",
    "signature": "key",
    "sig": "key",
}
"""Parts with which a sensitive name ends."""

_PASSWORDS_OF = ("", "db", "o", "pg", "root", "ssh", "user")
"""What may be before `pass` and the like in one word."""

_ALONE = frozenset({"token", "key", "cookie", "session", "auth", "pwd", "pass", "signature", "sig"})

_DESCRIBES = _words("""
    arn at budget changed class count counts dir enabled env error expiration expires expiry field file format
    handler helper in index len length limit limits manager max method min mode name param path pattern policy
    provider regex required reset size status store tag tags timeout ttl type uri url usage used variable
""")
"""What a name ends with whose value is not the secret and only about it."""

_COUNTED = _words("""
    avg average budget cached completion context input max maximum mean min minimum n num number output prompt
    reasoning remaining thinking total used
""")
"""What stands before tokens that are counted and not kept secret."""

_HARMLESS_TOKENS = _words("""
    bos continuation end eos mask next pad page special start stop unk
""")
_HARMLESS_KEYS = _words("""
    arrow bucket cache column composite compound config data default dict field foreign group hash hot index
    issue item json label locale lookup map metric natural node object order page param partition primary
    project public query range react routing row short sort storage tag translation unique
""")
_WORDS_IN_KEY = _words("""
    donkey flunkey hockey jockey lackey malarkey monkey turkey whiskey
""")


@lru_cache(maxsize=4096)
def sensitive(name: str) -> Sensitive | None:
    """What `name` says of its value; None where it promises no secret, as `max_tokens` and `primary_key` do not."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1] in {"value", "val", "raw", "string"}:
        words.pop()
    if words[-2:] == ["key", "data"]:
        words.pop()
    if not words or words[-1] in _DESCRIBES:
        return None
    joined = "".join(words)
    for part, kind in _WHEREVER.items():
        if part in joined:
            return Sensitive(kind, certain=joined not in {"secret", "credential", "authorization"})
    singular = joined if joined.endswith(("pass", "sessions")) else joined.removesuffix("s")
    for part, kind in _LAST.items():
        if singular.endswith(part) and not _is_harmless(words, singular, part):
            return Sensitive(kind, certain=singular not in _ALONE)
    return None


def _is_harmless(words: list[str], singular: str, part: str) -> bool:
    before = {*words[:-1], singular.removesuffix(part)}
    if part == "token":
        return not before.isdisjoint(_COUNTED | _HARMLESS_TOKENS)
    if part == "key":
        return singular in _WORDS_IN_KEY or not before.isdisjoint(_HARMLESS_KEYS)
    if part in {"pass", "sig", "auth", "session", "signature"}:
        return words[-1] not in {
            part,
            f"{part}s",
            *(f"{owner}{part}" for owner in ("db", "o", "pg", "ssh", "user", "root")),
        }
    return False
