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

_SPACED = bytes(
    ord(" ") if character in _BETWEEN_WORDS or character.isspace() else ord(character)
    for character in map(chr, range(0x80))
) + bytes(range(0x80, 0x100))
"""For bytes of UTF-8: spaces for whatever ends a word and is ASCII."""

_TELLING = re.compile(
    rb"^(?:[^\n/]*+/.*|(?=.*[#0-9]).*[\x80-\xff].*|(?:#|[A-Z][A-Z0-9]{1,9}-)[0-9]{1,7}[.:!?*]*|[0-9a-f]{7,40}[.:!?*]*)$",
    re.MULTILINE,
)
"""Every word that may have a class, and few others: of words on lines of their own, as UTF-8."""

_ISSUE = re.compile(r"#[0-9]{1,7}|[A-Z][A-Z0-9]{1,9}-[0-9]{1,7}")
_COMMIT = re.compile(r"(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}")
_PATH = re.compile(r"(?:~|\.{1,2})?/?[\w.@+-]+(?:/[\w.@+-]+)+/?|(?:~|\.{1,2})?/[\w.@+-]+/?")
_POSITION = re.compile(r":[0-9]+(?::[0-9]+)?$")
_URL = re.compile(r"https?://[^/]+\S*")
_ERROR = re.compile(r"(?i)\b(?:\w*error|\w*exception|failed|failure|fatal|panic|panicked|traceback)\b")
_HINTS_OF_ERRORS = (b"error", b"exception", b"fail", b"fatal", b"panic", b"traceb")
"""In lower case, one of these stands in every line that tells of an error."""

_FORMS_OF_I = "\u0130\u0131"
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
    """The index of `texts`, which are redacted; lines that tell of errors are looked for in `outputs`, of tools."""
    errors: Counter[str] = Counter()
    for line, count in _error_lines(outputs):
        errors[shortened(line.strip(), LONGEST_ERROR)] += count
    found: dict[str, Counter[str]] = {name: Counter() for name in _MOST}
    for word, count in _telling_words(texts):
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


def _telling_words(texts: Iterable[str]) -> Iterator[tuple[str, int]]:
    """The words of all `texts` that may have a class, and how often each stands there; some of them more than once."""
    counts: Counter[bytes] = Counter()
    for text in texts:
        counts.update(text.encode("utf-8", "surrogatepass").translate(_SPACED).split())
    for word in _TELLING.findall(b"\n".join(counts)):
        text = word.decode("utf-8", "surrogatepass")
        for part in (text,) if text.isascii() else text.replace("…", " ").split():
            yield part, counts[word]


def _error_lines(texts: Iterable[str]) -> Iterator[tuple[str, int]]:
    """The lines of all `texts` that tell of errors, and how often each stands there; some of them more than once.

    The pattern is slow, so it only sees lines that have a hint.
    """
    counts: Counter[bytes] = Counter()
    for text in texts:
        if not text.isascii() and any(letter in text for letter in _FORMS_OF_I):
            counts.update(line.encode("utf-8", "surrogatepass") for line in text.splitlines())
        else:
            counts.update(_lines_with_hints(text.encode("utf-8", "surrogatepass")))
    for raw, count in counts.items():
        for line in raw.decode("utf-8", "surrogatepass").splitlines():
            if _ERROR.search(line):
                yield line, count


def _lines_with_hints(raw: bytes) -> Iterable[bytes]:
    lowered = raw.lower()
    found: dict[int, bytes] = {}
    for hint in _HINTS_OF_ERRORS:
        at = lowered.find(hint)
        while at >= 0:
            start = raw.rfind(b"\n", 0, at) + 1
            end = raw.find(b"\n", at)
            found[start] = raw[start : len(raw) if end < 0 else end]
            at = -1 if end < 0 else lowered.find(hint, end)
    return found.values()


def _with_slash(value: str) -> tuple[str, str]:
    if _URL.fullmatch(value):
        return "urls", value
    path = _POSITION.sub("", value)
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
