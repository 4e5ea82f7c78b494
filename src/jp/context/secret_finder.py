"""All secrets of a text: by shape, by name, on command lines, and percent-encoded."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

import msgspec

from jp.context.secret_shapes import LONGEST_NAME, Sensitive, Span, sensitive, shapes

_TELLING = (
    r"k(?:(?<=tok)en|ey|(?<=cook)ie)",
    r"w(?<=pw)d",
    r"u(?<=au)th",
    r"cre(?:(?<=secre)t|d)",
    r"ss(?:(?<=pass)|(?<=sess)ion)",
    r"g(?<=sig)(?:nature)?(?==)",
)
"""Patterns of names whose values may be secrets, each from a rare letter on.

A search for a pattern that begins with one certain letter is many times as fast as for one that begins with several.
"""

_KEY, _PWD, _AUTH, _CRED, _PASS, _SIG = (
    re.compile(
        telling + r"[a-z0-9_-]{0,40}+"
        r"(?P<close>\\{0,7}[\"']?\]?)"
        r"(?P<operator>[ \t]*+(?::=|=>|=(?![=~>])|:(?!:))[ \t]*+"
        r"(?:(?=(?P<type>[a-z_][a-z0-9_.|\[\]]{0,40}+[ \t]*+=[ \t]*+)[\"']))?"
        r"|>|[ \t]{1,4}(?:(?:is|was|to):?[ \t]{1,4})?(?=\S{0,40}?[0-9]))"
    ).finditer
    for telling in _TELLING
)
"""On lowered text: the end of a name, and what stands between it and its value.

What may be the `type` of a variable may be a name with a value of its own as well, and is looked at again.
"""

_NAME_BACKWARDS = re.compile(r"[A-Za-z0-9_-]*+")
_LINE_START = re.compile(r"(?:\A|\n|\\n)[ \t]{0,16}(?:[-+<>][ \t]?)?(?:(?:export|set|ENV)[ \t])?\Z")
_MARGIN = 28

_PAIR = re.compile(r"value\\{0,7}[\"']?[ \t]*+[:=][ \t]*+")
_NAME_BEFORE = re.compile(
    r"(?:name|key)[\"'\\]{0,8}\s{0,9}[:=]\s{0,9}[\"'\\]{0,8}([a-z0-9_-]{1,64}+)[\"'\\]{0,8}\s{0,9},?\s{0,40}[\"'\\]{0,8}\Z"
)
_NAME_AFTER = re.compile(
    r"[\"'\\]{1,8}\s{0,9},\s{0,40}[\"'\\]{1,8}(?:name|key)[\"'\\]{1,8}\s{0,9}:\s{0,9}[\"'\\]{1,8}([a-z0-9_-]{1,64})"
)
_PAIR_REACH = 200

QUOTE = re.compile(r"[rbfuRBFU]{0,2}(\\{0,7})(\"{3}|'{3}|'\\{0,7}\"\\{0,7}'\\{0,7}\"\\{0,7}'|[\"'`])")
# Groups are atomic and not possessive: Python before 3.11.5 matches possessive groups wrong (CPython issue 106052).
_STRINGS = re.compile(r"\[(?>(?:\s*+,?+\s*+(?:\"(?>(?:[^\"\\]++|\\.)*)\"|'(?>(?:[^'\\]++|\\.)*)'))+)", re.DOTALL)
_STRING = re.compile(r"\"((?>(?:[^\"\\]++|\\.)*))\"|'((?>(?:[^'\\]++|\\.)*))'", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*+[ \t]++")

BARE = re.compile(r"(?>(?:\\(?![nrt\"'])|[^\s\\\"'`,;&<>)\]}]++)*)")
_WORD = re.compile(r"(?>(?:\\(?![nrt\"'])|[^\s\\\"'`]++)*)")
_PHRASE = re.compile(r"(?>(?:\\(?![nrt\"'])|[^\r\n\\\"'`]++)*)")
_LINE = re.compile(r"(?>(?:\\(?![nrt])|[^\r\n\\]++)*)")
_ELEMENT = re.compile(r"[^<\r\n]*+")

_HARMLESS = re.compile(
    r"\[redacted:[a-z-]+\].*|[*.x?_\u2022-]*|<[^<>]*>?|\$\{?[A-Za-z_]\w*\}?|\{\{?[^{}]*\}?\}?|%[a-z]|%\(\w*\)s|\[?redacted\W?|none|null|nil"
    r"|true|false|[>|][+-]?|undefined|typeof|await|new|--[a-z][a-z-]*|required|optional|str|string|int|integer|number|bool|boolean|any|object|bytes|text",
    re.IGNORECASE | re.DOTALL,
)
"""Values that say nothing: markers, templates, variables, names of types."""

_CODE = re.compile(r"[({\[&*!]|[A-Za-z_][\w.]*+(?:[(\[]|[!?](?:[(\[.]|\Z)|\|[A-Za-z_|]|::|->|=>)")
_PATH_OF_NAMES = re.compile(r"(?:[A-Za-z_]+\.)*(?P<last>[A-Za-z_]+)")
_IDENTIFIES = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|20[0-9]{2}-[01][0-9]-.*", re.DOTALL)
"""Names of sessions in logs, which give access to nothing."""

_WORDS = re.compile(r"[A-Za-z]?[a-z]*+(?:[-_ ./:][A-Za-z]?[a-z]*+)*")
"""Plain words, which are never keys or tokens."""

_MARKER = re.compile(r"\[redacted:[a-z-]+\]")
_ELLIPSIS = re.compile(r"\S{0,16}(?:\.\.\.|\u2026|x{4,}|X{4,}|\*{3,})")
"""Placeholders of secrets in documentation."""

_SAID = re.compile(r"[\"'`\\]{0,16}(?P<value>[^\s\"'`\\,;&<>(){}\[\]]{6,512})")
_PROSE_KEY = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])(?:[A-Za-z0-9_~+=.-]{16,}|[A-Za-z0-9+/=]{32,})")
_PROSE_PASSWORD = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[^/:]{6,}")
_METHOD = re.compile(
    r"(?:base|sha|md|utf|aes|rsa|rs|hs|es|ed|bcrypt|scrypt|argon|pbkdf|oauth|http|tls|x|v|p|n|id|http|s)-?[0-9].*"
    r"|[0-9a-f]{40}|.*\.[A-Za-z]{1,4}|20[0-9]{2}-.*",
    re.IGNORECASE,
)
"""Values that describe a password or a token: an encoding, a version, a file."""
_SETTING = re.compile(r"[a-z_]{5,}(?:\.[a-z_-]+[0-9]{0,3})+")
"""The path of a setting, which prose calls a key and which is no secret."""

_WORD_BEFORE = re.compile(r"([A-Za-z]{2,20})[ \t]\Z")
_SAID_KINDS = frozenset({"password", "token", "key", "secret", "credential"})

_BELOW = re.compile(
    r"(?:[>|][+-]?[0-9]?)?[ \t]{0,8}(?:\r?\n|\\{1,7}n)(?:[ \t]|\\t){1,40}"
    r"(?P<value>[A-Za-z0-9_~+=./-]{12,})[ \t]{0,8}(?![^\s\\\"'])"
)
"""In YAML, the value of a name in the line below it."""

_NESTED_REACH = 4_000
_BRACES = re.compile(r"[{}\[\]]")
_NESTED_STRING = re.compile(
    r"[\"'](?=[^0-9\"']*[0-9])(?=[^A-Za-z\"']*[A-Za-z])(?P<value>[A-Za-z0-9_~+=./-]{12,})\\{0,7}[\"'](?!\\{0,7}\s{0,9}:)"
)

_OPAQUE_RUN = re.compile(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{10,}")
_OPERATORS = frozenset({"=", ":", "=>", ":="})

_LONGEST_JUDGED = 512
_NUMBER = re.compile(r"[-+]?[0-9][0-9_.]*[kKmM%]?")
_OPAQUE = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9_~+=:.|-]{12,}")


def assigned(runs: Runs, lowered: str) -> list[Span]:
    """Return the secrets in a text that the name before them reveals, in any order; they can overlap."""
    names = [*_KEY(lowered), *_PWD(lowered), *_AUTH(lowered), *_CRED(lowered), *_PASS(lowered), *_SIG(lowered)]
    has_pairs = "value" in lowered
    if not names and not has_pairs:
        return []
    spans = [span for found in _in_order(names) for span in _after_name(runs, found)]
    return [*spans, *_pairs(runs, lowered)] if has_pairs else spans


def _in_order(names: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return `names` in the order of the text; of those with the same end, the longest."""
    backwards = sorted(names, key=_start, reverse=True)
    return list({match.start("close"): match for match in backwards}.values())[::-1]


def _start(found: re.Match[str]) -> int:
    return found.start()


_SEPARATORS = " \t;,"


class Runs:
    """The ends of runs of characters. Each run is read once, however many names are in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.nested_until = 0
        self._last: dict[re.Pattern[str], tuple[int, int, int]] = {}

    def span(self, pattern: re.Pattern[str], at: int) -> tuple[int, int]:
        """From `at` to the end of what `pattern` matches there, without separators at its end."""
        start, end, trimmed = self._last.get(pattern, (0, 0, 0))
        if not start <= at < end:
            found = pattern.match(self.text, at)
            end = trimmed = found.end() if found else at
            while trimmed > at and self.text[trimmed - 1] in _SEPARATORS:
                trimmed -= 1
            self._last[pattern] = (at, end, trimmed)
        return at, max(at, trimmed)


def lowered_ascii(text: str) -> str:
    """Return `text` with its ASCII letters in lower case; every character keeps its place."""
    if text.isascii():
        return text.lower()
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _after_name(runs: Runs, found: re.Match[str]) -> Iterator[Span]:
    text, operator = runs.text, found["operator"]
    start, end = _name_at(text, found)
    before = text[start - 1 : start]
    if operator == ">" and before != "<":
        return
    name = text[start:end]
    if operator[0].isspace() and operator[-1].isspace() and operator.strip(" \t") not in _OPERATORS:
        yield from _said(text, start, name, found.end())
        return
    known = sensitive(name)
    if known is None or text.endswith("[redacted:", 0, start):
        return
    is_string = bool(found["close"]) or ("=" in operator and QUOTE.match(text, found.end()) is not None)
    is_field = is_string and known.kind != "key"
    known = Sensitive(known.kind, known.certain or is_field or before in {"?", "&"})
    at = found.end("type") if found["type"] else found.end()
    if QUOTE.match(text, at) or text.startswith("[", at):
        yield from quoted(runs, at, known)
    elif operator == ">":
        value = runs.span(_ELEMENT, at)
        if text.startswith("</", value[1]):
            yield from judged(text, value, known, bare=False)
    else:
        yield from _bare(runs, at, known, _Place(name.lower(), operator, _starts_line(text, start), before))


def _said(text: str, start: int, name: str, at: int) -> Iterator[Span]:
    """Find `password X`, `the api key is X`: a value that looks like one, after a word for it."""
    known = sensitive(name)
    if known is not None and not known.certain:
        word = _WORD_BEFORE.search(text, max(start - 21, 0), start)
        known = sensitive(f"{word[1]}_{name}") if word else known
    found = _SAID.match(text, at)
    if known is None or known.kind not in _SAID_KINDS or found is None or text.endswith("[redacted:", 0, start):
        return
    value = found["value"].rstrip(".:!?")
    like = _PROSE_PASSWORD if known.kind == "password" else _PROSE_KEY
    if (known.kind == "password" and not known.certain) or (known.kind == "key" and _SETTING.fullmatch(value)):
        return
    if like.fullmatch(value) and not _METHOD.fullmatch(value) and not _HARMLESS.fullmatch(value):
        yield Span(found.start("value"), found.start("value") + len(value), known.kind)


def _nested(runs: Runs, at: int, known: Sensitive) -> Iterator[Span]:
    """Find `"tokens": {"name": {"value": "X"}}`: each string in it that looks like a secret."""
    text, depth, end = runs.text, 0, at
    for brace in _BRACES.finditer(text, at, at + _NESTED_REACH):
        depth += 1 if brace[0] in "{[" else -1
        end = brace.end()
        if depth == 0:
            break
    start, runs.nested_until = max(at, runs.nested_until), max(end, runs.nested_until)
    for found in _NESTED_STRING.finditer(text, start, end):
        if not _IDENTIFIES.fullmatch(found["value"]):
            yield Span(*found.span("value"), known.kind)


class _Place(msgspec.Struct, frozen=True):
    """The assignment of a value without quotes: after which name, by what, and whether the name starts its line."""

    name: str
    operator: str
    starts_line: bool
    before: str


def _bare(runs: Runs, at: int, known: Sensitive, place: _Place) -> Iterator[Span]:
    text = runs.text
    if text[at : at + 1] in {"{", "["}:
        if known.kind in _SAID_KINDS - {"key"} or known.certain:
            yield from _nested(runs, at, known)
        return
    if ":" in place.operator and known.kind != "key" and (below := _BELOW.match(text, at)):
        if _OPAQUE.fullmatch(below["value"]):
            yield Span(*below.span("value"), known.kind)
        return
    spaced = ":" in place.operator or place.operator.strip() not in {"", place.operator}
    if place.name.endswith(("authorization", "cookie")) and ":" in place.operator:
        start, end = runs.span(_LINE if place.starts_line else _PHRASE, at)
        is_header = bool(_SCHEME.match(text, start, end)) or "=" in text[start:end]
        yield from judged(text, (start, end), Sensitive(known.kind, known.certain or is_header), bare=True)
    elif place.starts_line and spaced and known.kind == "password" and known.certain:
        yield from judged(text, runs.span(_PHRASE, at), known, bare=True)
    else:
        wide = place.starts_line and place.before not in {"?", "&"}
        yield from judged(text, runs.span(_WORD if wide else BARE, at), known, bare=True)


def quoted(runs: Runs, at: int, known: Sensitive) -> Iterator[Span]:
    """Find the secrets in the string, the list or the object at `at`, whose name implies `known`."""
    text = runs.text
    quote = QUOTE.match(text, at)
    if quote:
        yield from judged(text, (quote.end(), _closing(text, quote)), known, bare=False)
        return
    strings = _STRINGS.match(text, at)
    if not strings:
        yield from _nested(runs, at, known)
    else:
        for found in _STRING.finditer(text, at, strings.end()):
            yield from judged(text, found.span(found.lastindex or 0), known, bare=False)


def judged(text: str, value: tuple[int, int], known: Sensitive, *, bare: bool) -> Iterator[Span]:
    """Yield the value from one place to another, if it is a secret."""
    start, end = value
    scheme = _SCHEME.match(text, start, end) if known.kind == "authorization" else None
    start = scheme.end() if scheme else start
    while bare and end > start and text[end - 1] == "\\":
        end -= 1
    beginning = text[start : min(end, start + _LONGEST_JUDGED)]
    if _HARMLESS.fullmatch(beginning) or (known.kind != "password" and _NUMBER.fullmatch(beginning)):
        return
    if known.kind == "session" and (_IDENTIFIES.fullmatch(beginning) or not _OPAQUE_RUN.search(beginning)):
        return
    if _ELLIPSIS.fullmatch(beginning) or (
        known.kind in {"key", "token"} and _WORDS.fullmatch(_MARKER.sub("", beginning))
    ):
        return
    is_opaque = end - start < _LONGEST_JUDGED and _OPAQUE.fullmatch(beginning)
    if (known.certain or is_opaque) and not (bare and _is_code(beginning)):
        yield Span(start, end, known.kind)


def _is_code(value: str) -> bool:
    """Return whether a value without quotes is an expression: a call, or a variable with the name of a secret."""
    if _CODE.match(value):
        return True
    path = _PATH_OF_NAMES.fullmatch(value)
    return path is not None and sensitive(path["last"]) is not None


def _closing(text: str, quote: re.Match[str]) -> int:
    """Return the end of the string that `quote` opened: the end of its line if nothing closes it.

    In a string that is itself quoted `n` times over, each quote has 2^n - 1 backslashes before it, and escaped
    characters in it have twice as many and one.
    """
    start, depth = quote.end(), len(quote[1])
    at = text.find(quote[2], start)
    while at >= 0 and _backslashes(text, start, at) % (2 * depth + 2) != depth:
        at = text.find(quote[2], at + 1)
    end = len(text) if at < 0 else at - depth
    line = text.find("\n", start, end)
    return end if line < 0 else line


def _backslashes(text: str, start: int, end: int) -> int:
    at = end
    while at > start and text[at - 1] == "\\":
        at -= 1
    return end - at


def _starts_line(text: str, start: int) -> bool:
    return _LINE_START.search(text, max(start - _MARGIN, 0), start) is not None


def _name_at(text: str, found: re.Match[str]) -> tuple[int, int]:
    end = found.start("close")
    before = text[max(found.start() - LONGEST_NAME, 0) : found.start()][::-1]
    name = _NAME_BACKWARDS.match(before)
    start = found.start() - (name.end() if name else 0)
    if text[start - 1 : start] == "\\" and text[start : start + 1] in {"n", "r", "t"}:
        start += 1
    return start, end


def _pairs(runs: Runs, lowered: str) -> Iterator[Span]:
    """Find `{"name": "API_KEY", "value": "…"}`, in either order."""
    text = runs.text
    for found in _PAIR.finditer(lowered):
        at = found.end()
        named = _NAME_BEFORE.search(lowered, max(found.start() - _PAIR_REACH, 0), found.start())
        quote = QUOTE.match(text, at)
        if named is None and quote:
            named = _NAME_AFTER.match(lowered, _closing(text, quote))
        known = None if named is None else sensitive(text[named.start(1) : named.end(1)])
        if known is None:
            continue
        certain = Sensitive(known.kind)
        if quote:
            yield from quoted(runs, at, certain)
        else:
            yield from judged(text, runs.span(BARE, at), certain, bare=True)


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
"""Words of a command line in the place of a secret: variables, templates, other options."""

_ENCODED = re.compile(r"%(?:3[AaDd]|40|2[0256])")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_RUN = re.compile(r"[^\s\"'<>\\`]*+")
_LONGEST_RUN = 4_000
_DEEPEST = 2
"""Number of times that percent-encoded words are decoded: an address in an address in an address."""


def find_secrets(text: str) -> list[Span]:
    """Return the secrets in `text`, in order; none overlap."""
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
    """Find secrets in percent-encoded words after decoding them."""
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
    """Find the secrets in options; they can overlap."""
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
    """Join overlapping spans, with the kind of the first. `spans` are in order, and there is at least one."""
    merged = [spans[0]]
    for span in spans[1:]:
        last = merged[-1]
        if span.start < last.end:
            merged[-1] = Span(last.start, max(last.end, span.end), last.kind)
        else:
            merged.append(span)
    return merged
