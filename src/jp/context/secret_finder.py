"""All secrets of a text: by shape, by name, on command lines such as `curl -u name:X`, and percent-encoded."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from jp.context.secret_names import sensitive
from jp.context.secret_shapes import Span, shapes
from jp.context.secret_values import BARE, QUOTE, Runs, assigned, judged, lowered_ascii, quoted

_OPTION = re.compile(
    r"-(?<=[\s\"'\\n]-)(?:"
    r"-(?P<name>[A-Za-z][A-Za-z0-9_-]{2,40}+)(?P<sign>=|[ \t]{1,4})(?=[^\s-])"
    r"|(?P<option>[fgikLsSv]{0,6}[uU]|p)(?:=|[ \t]{1,4})?(?P<attached>[\"'\\]{0,16}[^\s\"'\\;|&]{3,256})"
    r"|(?P<other>[abwP])[ \t]{1,4}(?P<apart>[\"'\\]{0,16}[^\s\"'\\;|&]{3,256}))"
).finditer
"""An option and its value. Options of one letter are looked at only behind a command that takes a secret there."""

_ANY = re.compile(
    r"(?:\b|(?<=\\[nrt]))"
    r"(?:curl|https?|xh|smb|rpc|mysql|mariadb|sshpass|mongo|login|7z|redis-cli|ldap|sqlcmd|bcp|unzip|zip)"
)
_COMMANDS: tuple[tuple[re.Pattern[str], str, bool, re.Pattern[str]], ...] = tuple(
    (re.compile(rf"(?:\b|(?<=\\[nrt]))(?:{command})\b[^\n|;&]*\Z"), options, may_be_apart, re.compile(value))
    for command, options, may_be_apart, value in (
        (r"curl", "uU", True, r"[^:$]{0,64}:(?P<secret>.+)"),
        (r"curl", "b", True, r"[^=$]{1,64}=(?P<secret>.+)"),
        (r"https?|xh", "a", True, r"[^:$]{0,64}:(?P<secret>.+)"),
        (r"smbclient|rpcclient", "U", True, r"[^%$]{0,64}%(?P<secret>.+)"),
        (r"(?:mysql|mariadb)[a-z-]*", "p", False, r"(?P<secret>.+)"),
        (r"sshpass|mongo[a-z]*|login|7z", "p", True, r"(?P<secret>.+)"),
        (r"redis-cli", "a", True, r"(?P<secret>.+)"),
        (r"ldap[a-z]+", "w", True, r"(?P<secret>.+)"),
        (r"sqlcmd|bcp|zip|unzip", "P", True, r"(?P<secret>.+)"),
    )
)
"""Commands, which of their options take a secret, whether a blank may be before it, and its place in the value."""

_LOGINS = {"user": "u", "proxy-user": "u", "cookie": "b"}
"""Long options of curl whose value holds a secret, by the short ones."""

_REACH = 240
_NO_SECRET = re.compile(r"[$<{%\[].*|[*.x]+|-.*|[0-9]{1,5}", re.DOTALL)
"""What a command line has in a secret's place: variables, templates, other options."""

_ENCODED = re.compile(r"%(?:3[AaDd]|40|2[0256])")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_RUN = re.compile(r"[^\s\"'<>\\`]*+")
_LONGEST_RUN = 4_000
_DEEPEST = 2
"""How often words are decoded that are percent-encoded: an address in an address in an address."""


def find_secrets(text: str) -> list[Span]:
    """The secrets in `text`, in their order; none overlap."""
    found = _found(text, _DEEPEST)
    return _merged(sorted(found)) if found else found


def _found(text: str, depth: int) -> list[Span]:
    lowered = lowered_ascii(text)
    runs = Runs(text)
    found = [*shapes(text, lowered), *assigned(runs, lowered), *_in_commands(runs)]
    if depth and "%" in text:
        found += _percent_encoded(text, depth)
    return found


def _percent_encoded(text: str, depth: int) -> Iterator[Span]:
    """What is found in the words that are percent-encoded once these are decoded."""
    done = 0
    for hit in _ENCODED.finditer(text):
        if hit.start() < done:
            continue
        before = _RUN.match(text[max(done, hit.start() - _LONGEST_RUN) : hit.start()][::-1])
        start = hit.start() - (before.end() if before else 0)
        run = _RUN.match(text, hit.end(), hit.end() + _LONGEST_RUN)
        done = run.end() if run else hit.end()
        escapes = [escape.start() - 2 * number for number, escape in enumerate(_ESCAPE.finditer(text, start, done))]
        decoded = _ESCAPE.sub(lambda escape: chr(int(escape[0][1:], 16)), text[start:done])
        for span in _found(decoded, depth - 1):
            ends = (at + 2 * bisect_left(escapes, start + at) for at in (span.start, span.end))
            yield Span(start + next(ends), start + next(ends), span.kind)


def _in_commands(runs: Runs) -> Iterator[Span]:
    """The secrets in options; they may overlap."""
    text = runs.text
    for found in _OPTION(text):
        name = found["name"]
        if name is None or name in _LOGINS:
            yield from _of_command(text, found, _LOGINS.get(name or ""))
        elif found["sign"] != "=" and (known := sensitive(name)) is not None:
            if QUOTE.match(text, found.end()):
                yield from quoted(runs, found.end(), known)
            else:
                yield from judged(text, runs.span(BARE, found.end()), known, bare=True)


_LONG_VALUE = re.compile(r"[\"'\\]{0,16}[^\s\"'\\;|&]{3,256}")


def _of_command(text: str, found: re.Match[str], short: str | None) -> Iterator[Span]:
    before = text[max(found.start() - _REACH, 0) : found.start()]
    if not _ANY.search(before):
        return
    option = short or (found["option"] or found["other"])[-1]
    if short:
        value = _LONG_VALUE.match(text, found.end())
        start, end = value.span() if value else (0, 0)
    else:
        start, end = found.span("attached" if found["attached"] else "apart")
    while text[start] in "\"'\\" and start < end:
        start += 1
    is_apart = text[start - 1].isspace()
    for command, options, may_be_apart, pattern in _COMMANDS:
        if option not in options or (is_apart and not may_be_apart) or not command.search(before):
            continue
        secret = pattern.fullmatch(text, start, end)
        if secret and not _NO_SECRET.fullmatch(secret["secret"]):
            yield Span(secret.start("secret"), end, "password")


def _merged(spans: list[Span]) -> list[Span]:
    """Of spans that overlap one, with the kind of the first; there is at least one, and they are in order."""
    merged = [spans[0]]
    for span in spans[1:]:
        last = merged[-1]
        if span.start < last.end:
            merged[-1] = Span(last.start, max(last.end, span.end), last.kind)
        else:
            merged.append(span)
    return merged
