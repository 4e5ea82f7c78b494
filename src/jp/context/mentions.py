"""What a transcript names that cannot be guessed: an index of paths, commits, numbers of issues, addresses, errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest

import msgspec
from msgspec.structs import replace

from jp.context.summary_schema import shortened

INDEX_LIMIT = 7_000
LONGEST_ERROR = 200
LONGEST_MENTION = 240

_BETWEEN_WORDS = "\"'`<>()[]{},;|\\…"
"""What ends a word, beside white space."""

_ENDINGS = ".:!?*"
"""What a word that ends a sentence, or stands out in it, ends with."""

_ENDS = bytes(code for code in range(0x80) if chr(code).isspace() or chr(code) in _BETWEEN_WORDS)
_WORD_PER_LINE = bytes.maketrans(_ENDS, b"\n" * len(_ENDS))
"""Puts words on lines of their own. In UTF-8, where what ends a word and is not ASCII is still a part of it."""

_TOLD_APART = re.compile(rb"(?:[^/#0-9]*\n)?(.*+)")
"""A word with a slash, a `#` or a digit, as all words with a class have, and the lines before it; or the last line."""

_TELLING = re.compile(
    rb"^(?:[^\n/]*+/.*|(?=[^\n#0-9]*+[#0-9])[^\n\x80-\xff]*+[\x80-\xff].*"
    rb"|(?:(?:#|[A-Z][A-Z0-9]{1,9}-)[0-9]{1,7}|[0-9a-f]{7,40})[.:!?*]*)$",
    re.MULTILINE,
)
"""Of words on lines of their own, those that may have a class, and few others."""

_ISSUE = re.compile(r"#[0-9]{1,7}|[A-Z][A-Z0-9]{1,9}-[0-9]{1,7}")
_COMMIT = re.compile(r"(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}")
_PATH = re.compile(r"(?:~|\.{1,2})?/?[\w.@+-]+(?:/[\w.@+-]+)+/?|(?:~|\.{1,2})?/[\w.@+-]+/?")
_POSITION = re.compile(r":[0-9]+(?::[0-9]+)?$")
_URL = re.compile(r"https?://[^/]+\S*")
_ERROR = re.compile(r"(?i)(?:error|exception|\b(?:failed|failure|fatal|panic|panicked|traceback))\b")
_HINTS_OF_ERRORS = tuple(
    re.compile(hint + rb"[^\n]*+")
    for hint in (
        rb"error(?![a-z0-9_])",
        rb"x(?<=ex)ception(?![a-z0-9_])",
        rb"fa(?<![a-z0-9_]fa)(?:il(?:ed|ure)|tal)(?![a-z0-9_])",
        rb"panic(?<![a-z0-9_]panic)(?:ked)?(?![a-z0-9_])",
        rb"b(?<=traceb)(?<![a-z0-9_]traceb)ac(?:k(?![a-z0-9_])|[\x80-\xff])",
    )
)
"""Of text in lower case, what one of these finds stands in every line that tells of an error.

In ASCII every such line tells of one. Elsewhere what follows or precedes may be a letter that is none here, as a `k`
may be the sign for Kelvin.
"""

_FORMS_OF_I = ("\u0130".encode(), "\u0131".encode())
"""Letters that the pattern takes for an `i` and that are none in lower case."""


class Mentions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The most frequent of each class first."""

    issues: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()


_MOST = {"issues": 120, "commits": 40, "paths": 80, "errors": 40, "urls": 30}


def mentions_in(texts: Iterable[str], *, outputs: Iterable[str] = ()) -> Mentions:
    """The index of `texts` and of `outputs`, of tools, all redacted; only in those are lines that tell of errors."""
    printed = [_encoded(text) for text in outputs]
    errors: Counter[str] = Counter()
    for line, count in _error_lines(printed):
        errors[shortened(line.strip(), LONGEST_ERROR)] += count
    found: dict[str, Counter[str]] = {name: Counter() for name in _MOST}
    for word, count in _telling_words(chain(map(_encoded, texts), printed)):
        name, value = classified(word)
        if name:
            found[name][value] += count
    found["errors"] = errors
    return within({name: _ranked(found[name]) for name in _MOST})


def words_in(text: str) -> list[str]:
    """The words of `text`, without quotes, brackets and the like."""
    for separator in _BETWEEN_WORDS:
        text = text.replace(separator, " ")
    return text.split()


def classified(word: str) -> tuple[str, str]:
    """The class of a word and what of it counts: a path without its line; two empty strings where it has no class."""
    value = word.rstrip(_ENDINGS)
    if len(value) > LONGEST_MENTION:
        return "", ""
    if "/" in value:
        return _with_slash(value)
    if _ISSUE.fullmatch(value):
        return "issues", value
    return ("commits", value) if _COMMIT.fullmatch(value) else ("", "")


def merge_mentions(older: Mentions, newer: Mentions) -> Mentions:
    """One index: first what both have, then in turn what only the newer and what only the older one has."""
    return within({name: _merged(getattr(older, name), getattr(newer, name)) for name in _MOST})


def within(classes: Mapping[str, Sequence[str]], limit: int = INDEX_LIMIT) -> Mentions:
    """An index of at most `limit` characters: each class within its number, the longest class giving way first."""
    kept = {name: list(texts[: _MOST[name]]) for name, texts in classes.items()}
    sizes = {name: sum(len(text) + 1 for text in texts) for name, texts in kept.items()}
    while sum(sizes.values()) > limit:
        longest = max(sizes, key=lambda name: sizes[name])
        sizes[longest] -= len(kept[longest].pop()) + 1
    return replace(Mentions(), **{name: tuple(texts) for name, texts in kept.items()})


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _telling_words(texts: Iterable[bytes]) -> Iterator[tuple[str, int]]:
    """The words of all `texts` that may have a class, and how often each stands there; some of them more than once."""
    counts = Counter[bytes](_TOLD_APART.findall(b"\n".join(texts).translate(_WORD_PER_LINE)))
    for word in _TELLING.findall(b"\n".join(counts)):
        whole = _decoded(word)
        for part in (whole,) if whole.isascii() else whole.replace("…", " ").split():
            yield part, counts[word]


def _error_lines(texts: Iterable[bytes]) -> Iterator[tuple[str, int]]:
    """The lines of all `texts` that tell of errors, and how often each stands there; some of them more than once.

    The pattern is slow, so it only sees lines of which a hint does not say enough.
    """
    counts = Counter(chain.from_iterable(map(_lines_with_hints, texts)))
    for raw, count in counts.items():
        whole = _decoded(raw)
        lines = whole.splitlines()
        for line in lines:
            if (len(lines) == 1 and whole.isascii()) or _ERROR.search(line):
                yield line, count


def _lines_with_hints(text: bytes) -> Iterable[bytes]:
    if not text.isascii() and any(letter in text for letter in _FORMS_OF_I):
        return [line for line in text.split(b"\n") if not line.isascii() or _has_hint(line)]
    lowered = text.lower()
    found: dict[int, bytes] = {}
    for hint in _HINTS_OF_ERRORS:
        for match in hint.finditer(lowered):
            start = text.rfind(b"\n", 0, match.start()) + 1
            found[start] = text[start : match.end()]
    return found.values()


def _has_hint(line: bytes) -> bool:
    lowered = line.lower()
    return any(hint.search(lowered) for hint in _HINTS_OF_ERRORS)


def _with_slash(value: str) -> tuple[str, str]:
    if value.startswith("http") and _URL.fullmatch(value):
        return "urls", value
    path = _POSITION.sub("", value) if ":" in value else value
    return ("paths", path) if _is_path(path) else ("", "")


def _is_path(text: str) -> bool:
    """Whether `text` reads as a path; two words with a slash between them are none."""
    return _PATH.fullmatch(text) is not None and ("." in text or text[0] in "/~" or text.count("/") > 1)


def _ranked(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(text for _, text in sorted((-count, text) for text, count in counts.items() if text))


def _merged(older: tuple[str, ...], newer: tuple[str, ...]) -> tuple[str, ...]:
    both = set(older).intersection(newer)
    only_newer = (text for text in newer if text not in both)
    only_older = (text for text in older if text not in both)
    rest = chain.from_iterable(zip_longest(only_newer, only_older))
    return (*(text for text in newer if text in both), *(text for text in rest if text is not None))
