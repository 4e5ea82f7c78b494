"""Secrets that are known by their shape, and names that say that their value is a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

SecretKind = Literal[
    "api-key", "authorization", "cookie", "credential", "key", "password", "private-key", "secret", "session", "token"
]
"""The kind of a secret, which the marker in its place names."""

LONGEST_NAME = 64


class Sensitive(msgspec.Struct, frozen=True):
    """The kind of value that a name implies. `certain` is False for names that are also words of prose and code."""

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
"""Parts of a name that make it sensitive at any place."""

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


_ALONE = frozenset({"token", "key", "cookie", "session", "auth", "pwd", "pass", "signature", "sig"})

_DESCRIBES = _words("""
    arn at budget changed class count counts dir enabled env error expiration expires expiry field file format
    handler helper in index len length limit limits manager max method min mode name param path pattern policy
    provider regex required reset size status store tag tags timeout ttl type uri url usage used variable
""")
"""Endings of names whose value is not the secret but describes it."""

_COUNTED = _words("""
    avg average budget cached completion context input max maximum mean min minimum n num number output prompt
    reasoning remaining thinking total used
""")
"""Words before tokens that are counted, not secret."""

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
    """Return the kind of secret that `name` implies, None for names such as `max_tokens` and `primary_key`."""
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


class Span(msgspec.Struct, frozen=True, order=True, gc=False):
    """A secret from `start` up to, not including, `end`."""

    start: int
    end: int
    kind: SecretKind


_KEY = "[A-Za-z0-9_-]{16,}"
_ISSUED: dict[str, str] = {
    r"sk-": _KEY,
    r"[sr]k_live_|[sr]k_test_": "[A-Za-z0-9]{8,}",
    r"whsec_": "[A-Za-z0-9+/=]{16,}",
    r"gh[opusr]_|github_pat_": "[A-Za-z0-9_]{16,}",
    r"gl[a-z]{1,4}t-": "[A-Za-z0-9_.-]{16,}",
    r"xox[a-z]-|xapp-": "[A-Za-z0-9-]{8,}",
    r"ya29\.|hvs\.|dckr_[a-z]{3}_|pypi-|nvapi-|tvly-|glsa_|GOCSPX-|sq0[a-z]{3}-": _KEY,
    r"hf_|npm_|gsk_|xai-|csk-|pplx-|lin_api_": "[A-Za-z0-9]{16,}",
    r"SG\.": r"[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}",
    r"shpat_|shpss_|shpca_|shppa_|do[opr]_v1_": "[A-Fa-f0-9]{16,}",
    r"key-": "[0-9a-f]{32}(?![A-Za-z0-9-])",
}
"""Prefixes of the keys that vendors issue, and the pattern of the rest. Each prefix ends with one of `-`, `_` and `.`.
"""

_HYPHEN, _UNDERSCORE, _DOT = (
    re.compile(rf"{separator}(?<={before})(?=[A-Za-z0-9_+/-]{{8}})").finditer
    for separator, before in (
        ("-", "sk-|x[a-z]-|pp-|pi-|ly-|ai-|lx-|PX-|ey-|[abcdfmrtw]t-|[st]p-"),
        ("_", "ve_|st_|ec_|h[opusr]_|at_|sa_|hf_|pm_|sk_|pi_|ss_|ca_|pa_|v1_"),
        (r"\.", r"29\.|vs\.|SG\."),
    )
)
"""The end of a beginning, perhaps: what is rare in any text, so that little is looked at twice.

Each begins with one character, which is found many times as fast as one of several.
"""

_BEGINNING = re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:{'|'.join(f'({each})' for each in _ISSUED)})\Z")
_LONGEST_BEGINNING = 16
_ISSUED_KEY = re.compile("|".join(f"(?:{beginning}){rest}" for beginning, rest in _ISSUED.items()))

_BEGINS_WITH_A = re.compile(
    r"A(?:(?:(?<![A-Za-z0-9]A)|(?<=\\[nrt]A))(?P<key>[KS]IA[A-Z0-9]{16}|Iza[A-Za-z0-9_-]{30,})"
    r"|(?<=[0-9]:A)(?P<bot>A[A-Za-z0-9_-]{30,})"
    r"|(?<=EA)(?:(?<![A-Za-z0-9+/]EA)|(?<=\\[nrt]EA))(?P<square>AA[A-Za-z0-9_-]{40,})(?![+/])"
    r"|(?P<age>GE-SECRET-KEY-1[A-Z0-9]{16,}))"
).finditer
"""Keys of AWS and Google, tokens of Telegram and Square, keys of age: found in one search, as all have an `A`."""

_BOT_NUMBER = re.compile(r"[0-9]{6,16}:\Z")
_BEGINS_WITH_K = re.compile(
    r"K(?=[0-9a-f]{32})(?<=SK)(?:(?<![A-Za-z0-9]SK)|(?<=\\[nrt]SK))[0-9a-f]{32}(?![A-Za-z0-9])"
).finditer
"""Keys of Twilio, from their second letter on: it is rarer."""

_WEB_TOKEN = re.compile(
    r"eyJ(?:(?<![A-Za-z0-9_-]eyJ)|(?<=\\[nrt]eyJ))[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]*+){1,3}"
).finditer

_HOOK = re.compile(
    r"k(?<=hook)(?:s\.slack(?:-gov)?\.com/[a-z]{1,16}/|s/[0-9]{5,}/|\.office\.com/)(?P<secret>[A-Za-z0-9@/_-]{16,})"
).finditer
"""Addresses that accept messages from everyone who knows them."""

_DIGIT = re.compile(r"[0-9]")
_DIGIT_OR_CAPITAL = re.compile(r"[0-9A-Z]")

_PRIVATE_KEY = re.compile(r"-----(?:(?P<begins>BEGIN)|END) (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_ARMOUR = re.compile(
    r"(?>(?:\s*+(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]*+)*)"
    r"[\s\\]*+(?>(?:[A-Za-z0-9+/=]{16,}+[\s\\]*+)*)(?:[A-Za-z0-9+/]{1,15}={1,2})?"
)
_ARMOUR_BACKWARDS = re.compile(r"[\s\\]*+(?:=?[A-Za-z0-9+/=]{1,64}+[\s\\]++)?(?>(?:[A-Za-z0-9+/=]{16,}+[\s\\]*+)*)")
_LONGEST_KEY = 16_000

_USERINFO = re.compile(
    r"://(?P<user>[^\s/:@\"'<>\\]{0,128})(?::(?P<password>(?!\[redacted:)[^\s/\"'<>\\]{1,256}))?@(?=[^\s@])"
)
_OPAQUE_USER = re.compile(r"(?=.*[0-9])[A-Za-z0-9_.~-]{16,}")
_LOGIN = re.compile(r"\blogin\s{1,9}\S{1,128}\s{1,9}password\s{1,9}((?!\[redacted:)\S{1,256})").finditer
_BEARER = re.compile(r"\b[Bb](?:earer|EARER)\s{1,3}([A-Za-z0-9._~+/=-]{8,})")


def shapes(text: str, lowered: str) -> list[Span]:
    """Return the secrets in `text`, and `lowered`, that have a known shape, in any order; they can overlap.

    Most texts have none and many are short: this has to be cheap for a text without any.
    """
    found: list[Span] = []
    if hits := [*_HYPHEN(text), *_UNDERSCORE(text), *_DOT(text)]:
        found += _issued(text, sorted(hit.end() for hit in hits))
    for match in _BEGINS_WITH_A(text):
        found.append(_with_a(text, match))
    for match in _BEGINS_WITH_K(text):
        found.append(Span(match.start() - 1, match.end(), "api-key"))
    for match in _HOOK(text):
        found.append(Span(*match.span("secret"), "credential"))
    if "eyJ" in text:
        found += (Span(*match.span(), "token") for match in _WEB_TOKEN(text))
    found += _in_words(text, lowered)
    return found


def _in_words(text: str, lowered: str) -> list[Span]:
    found: list[Span] = []
    if "PRIVATE KEY" in text:
        found += _private_keys(text)
    if "@" in text and "://" in text:
        found += _in_addresses(text)
    if "password" in text and "login" in text:
        found += (Span(*match.span(1), "password") for match in _LOGIN(text))
    if "bearer" in lowered:
        found += _bearers(text)
    return found


def _issued(text: str, separators: Sequence[int]) -> Iterator[Span]:
    done = 0
    barren: dict[int | None, int] = {}  # up to where what follows a beginning is known to be words, by the beginning
    for at in separators:
        beginning = _BEGINNING.search(text, max(at - _LONGEST_BEGINNING, done), at)
        if beginning is None or at < barren.get(beginning.lastindex, 0):
            continue
        found = _ISSUED_KEY.match(text, beginning.start())
        if found and _DIGIT_OR_CAPITAL.search(text, at, found.end()):
            done = found.end()
            yield Span(found.start(), done, "api-key")
        elif found:
            barren[beginning.lastindex] = found.end()


def _with_a(text: str, found: re.Match[str]) -> Span:
    match found.lastgroup:
        case "bot":
            number = _BOT_NUMBER.search(text, max(found.start() - 17, 0), found.start())
            return Span(number.start() if number else found.start(), found.end(), "token")
        case "square":
            return Span(found.start() - 1, found.end(), "api-key")
        case "age":
            return Span(*found.span(), "private-key")
        case _:
            return Span(*found.span(), "api-key")


def _private_keys(text: str) -> Iterator[Span]:
    """Whole blocks, and what is left of one whose beginning or end was cut off."""
    opened: re.Match[str] | None = None
    done = 0
    for found in _PRIVATE_KEY.finditer(text):
        if found["begins"] is None:
            start = _start_of_armour(text, done, found.start()) if opened is None else opened.start()
            yield Span(start, found.end(), "private-key")
        elif opened is not None:
            yield Span(opened.start(), _end_of_armour(text, opened.end()), "private-key")
        opened = found if found["begins"] else None
        done = found.end()
    if opened is not None:
        yield Span(opened.start(), _end_of_armour(text, opened.end()), "private-key")


def _end_of_armour(text: str, start: int) -> int:
    armour = _ARMOUR.match(text, start)
    return start if armour is None else start + len(armour[0].rstrip())


def _start_of_armour(text: str, done: int, end: int) -> int:
    armour = _ARMOUR_BACKWARDS.match(text[max(done, end - _LONGEST_KEY) : end][::-1])
    return end if armour is None else end - armour.end()


def _in_addresses(text: str) -> Iterator[Span]:
    for found in _USERINFO.finditer(text):
        if found["password"]:
            yield Span(*found.span("password"), "password")
        elif _OPAQUE_USER.fullmatch(found["user"]):
            yield Span(*found.span("user"), "token")


def _bearers(text: str) -> Iterator[Span]:
    for found in _BEARER.finditer(text):
        if _DIGIT.search(found[1]):
            yield Span(*found.span(1), "token")
