"""Secrets that give themselves away by their shape, whatever stands around them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from jp.context.secret_names import SecretKind


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
    r"gl[a-z]{2,6}-": "[A-Za-z0-9_.-]{16,}",
    r"xox[a-z]-|xapp-": "[A-Za-z0-9-]{8,}",
    r"ya29\.|hvs\.|dckr_[a-z]{3}_|pypi-|nvapi-|tvly-|glsa_|GOCSPX-|sq0[a-z]{3}-": _KEY,
    r"hf_|npm_|gsk_|xai-|csk-|pplx-|lin_api_": "[A-Za-z0-9]{16,}",
    r"SG\.": r"[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}",
    r"shpat_|shpss_|shpca_|shppa_|do[opr]_v1_": "[A-Fa-f0-9]{16,}",
    r"key-": "[0-9a-f]{32}(?![A-Za-z0-9-])",
}
"""What the keys that vendors issue begin with, and what follows. Each beginning ends with one of `-`, `_` and `.`."""

_SEPARATORS = tuple(
    re.compile(rf"{separator}(?:{'|'.join(f'(?<={each})' for each in before)})(?=[A-Za-z0-9_+/-]{{8}})")
    for separator, before in (
        (
            "-",
            (
                "sk-|x[a-z]-|pp-|pi-|ly-|ai-|lx-|PX-",
                "(?<![a-z])key-",
                *(f"{issuer}[a-z]{{{count}}}-" for issuer, counts in (("gl", (2, 3, 4, 5)), ("q0", (3,))) for count in counts),
            ),
        ),
        ("_", ("ve_|st_|ec_|h[opusr]_|at_|sa_|hf_|pm_|sk_|pi_|ss_|ca_|pa_|v1_",)),
        (r"\.", (r"29\.|vs\.|SG\.",)),
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
    r"|(?<=EA)(?<![A-Za-z0-9+/]EA)(?P<square>AA[A-Za-z0-9_-]{40,})(?![+/])"
    r"|(?P<age>GE-SECRET-KEY-1[A-Z0-9]{16,}))"
)
"""Keys of AWS and Google, tokens of Telegram and Square, keys of age: found in one search, as all have an `A`."""

_BOT_NUMBER = re.compile(r"[0-9]{6,16}:\Z")
_BEGINS_WITH_K = re.compile(r"K(?=[0-9a-f]{32})(?<=SK)(?<![A-Za-z0-9]SK)[0-9a-f]{32}(?![A-Za-z0-9])")
"""Keys of Twilio, from their second letter on: it is rarer."""

_WEB_TOKEN = re.compile(
    r"eyJ(?:(?<![A-Za-z0-9_-]eyJ)|(?<=\\[nrt]eyJ))[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]*+){1,3}"
)

_HOOK = re.compile(
    r"k(?<=hook)(?:s\.slack(?:-gov)?\.com/[a-z]{1,16}/|s/[0-9]{5,}/|\.office\.com/)(?P<secret>[A-Za-z0-9@/_-]{16,})"
)
"""Addresses that anybody may send messages to who knows them."""

_DIGIT = re.compile(r"[0-9]")
_DIGIT_OR_CAPITAL = re.compile(r"[0-9A-Z]")

_PRIVATE_KEY = re.compile(r"-----(?:(?P<begins>BEGIN)|END) (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_ARMOUR = re.compile(
    r"(?:\s*+(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]*+)*+"
    r"[\s\\]*+(?:[A-Za-z0-9+/=]{16,}+[\s\\]*+)*+(?:[A-Za-z0-9+/]{1,15}={1,2})?"
)
_ARMOUR_BACKWARDS = re.compile(r"[\s\\]*+(?:=?[A-Za-z0-9+/=]{1,64}+[\s\\]++)?(?:[A-Za-z0-9+/=]{16,}+[\s\\]*+)*+")
_LONGEST_KEY = 16_000

_USERINFO = re.compile(
    r"://(?P<user>[^\s/:@\"'<>\\]{0,128})(?::(?P<password>(?!\[redacted:)[^\s/\"'<>\\]{1,256}))?@(?=[^\s@])"
)
_OPAQUE_USER = re.compile(r"(?=.*[0-9])[A-Za-z0-9_.~-]{16,}")
_LOGIN = re.compile(r"\blogin\s{1,9}\S{1,128}\s{1,9}password\s{1,9}(\S{1,256})")
_BEARER = re.compile(r"\b[Bb](?:earer|EARER)\s{1,3}([A-Za-z0-9._~+/=-]{8,})")


def shapes(text: str, lowered: str) -> Iterator[Span]:
    """The secrets in `text`, and `lowered`, that are known by their shape, in any order; they may overlap."""
    yield from _issued(text)
    yield from _with_capitals(text)
    yield from (Span(*found.span("secret"), "credential") for found in _HOOK.finditer(text))
    if "PRIVATE KEY" in text:
        yield from _private_keys(text)
    if "@" in text and "://" in text:
        yield from _in_addresses(text)
    if "password" in text and "login" in text:
        yield from (Span(*found.span(1), "password") for found in _LOGIN.finditer(text))
    if "bearer" in lowered:
        yield from _bearers(text)


def _issued(text: str) -> Iterator[Span]:
    done = 0
    barren: dict[int | None, int] = {}  # up to where what follows a beginning is known to be words, by the beginning
    for at in sorted([found.end() for pattern in _SEPARATORS for found in pattern.finditer(text)]):
        beginning = _BEGINNING.search(text, max(at - _LONGEST_BEGINNING, done), at)
        if beginning is None or at < barren.get(beginning.lastindex, 0):
            continue
        found = _ISSUED_KEY.match(text, beginning.start())
        if found and _DIGIT_OR_CAPITAL.search(text, at, found.end()):
            done = found.end()
            yield Span(found.start(), done, "api-key")
        elif found:
            barren[beginning.lastindex] = found.end()


def _with_capitals(text: str) -> Iterator[Span]:
    for found in _BEGINS_WITH_A.finditer(text):
        match found.lastgroup:
            case "bot":
                number = _BOT_NUMBER.search(text, max(found.start() - 17, 0), found.start())
                yield Span(number.start() if number else found.start(), found.end(), "token")
            case "square":
                yield Span(found.start() - 1, found.end(), "api-key")
            case "age":
                yield Span(*found.span(), "private-key")
            case _:
                yield Span(*found.span(), "api-key")
    yield from (Span(found.start() - 1, found.end(), "api-key") for found in _BEGINS_WITH_K.finditer(text))
    if "eyJ" in text:
        yield from (Span(*found.span(), "token") for found in _WEB_TOKEN.finditer(text))


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
