"""What a transcript names that cannot be guessed: an index of paths, commits, numbers of issues, addresses, errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest

import msgspec
from msgspec.structs import replace

from jp.context.summary_schema import shortened

INDEX_LIMIT = 7_000
LONGEST_ERROR = 200
LONGEST_MENTION = 240

_TOKEN = re.compile(r"[^\s\"'`<>()\[\]{},;|\\…]+")
"""One class of characters and no nesting: linear in every text."""

_ISSUE = re.compile(r"#[0-9]{1,7}|[A-Z][A-Z0-9]{1,9}-[0-9]{1,7}")
_COMMIT = re.compile(r"(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}")
_PATH = re.compile(r"(?:~|\.{1,2})?/?[\w.@+-]+(?:/[\w.@+-]+)+/?|(?:~|\.{1,2})?/[\w.@+-]+/?")
_POSITION = re.compile(r":[0-9]+(?::[0-9]+)?$")
_URL = re.compile(r"https?://[^/]+\S*")
_ERROR = re.compile(r"(?i)\b(?:\w*error|\w*exception|failed|failure|fatal|panic|panicked|traceback)\b")


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
    counts: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for text in texts:
        counts.update(_TOKEN.findall(text))
    for text in outputs:
        errors.update(shortened(line.strip(), LONGEST_ERROR) for line in text.splitlines() if _ERROR.search(line))
    tokens: dict[str, Counter[str]] = {name: Counter() for name in _MOST}
    for token, count in counts.items():
        name, value = classified(token)
        if name:
            tokens[name][value] += count
    tokens["errors"] = errors
    return within({name: _ranked(tokens[name]) for name in _MOST})


def classified(token: str) -> tuple[str, str]:
    """The class of a word and what of it counts: a path without its line; two empty strings where it has no class."""
    value = token.rstrip(".:!?*")
    if len(value) > LONGEST_MENTION:
        return "", ""
    if _URL.fullmatch(value):
        return "urls", value
    if _ISSUE.fullmatch(value):
        return "issues", value
    if _COMMIT.fullmatch(value):
        return "commits", value
    path = _POSITION.sub("", value)
    return ("paths", path) if _is_path(path) else ("", "")


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
