"""What has changed of a resource, as a unified diff, where that is much shorter than the resource. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from jp.context.handles import checksum_of

_CONTEXT = 3
_MOST_LINES = 20_000
"""Between the first and the last change: comparing more takes seconds."""

_SHARE = 2
"""A diff has less than one part in so many of the content."""

_DIGITS = 12
_HUNK = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a resource, and where it stands in words for a model."""

    text: str
    place: str


def short_diff(uri: str, before: Version, after: Version) -> str | None:
    """How `after` differs from `before`, with both checksums; None where that is not shorter than half of `after`."""
    old, new = _lines(before.text), _lines(after.text)
    start = _alike(old, new)
    end = _alike(old[start:][::-1], new[start:][::-1])
    skipped = max(start - _CONTEXT, 0)
    kept = max(end - _CONTEXT, 0)
    old, new = old[skipped : len(old) - kept], new[skipped : len(new) - kept]
    if max(len(old), len(new)) > _MOST_LINES:
        return None
    head = f"{uri} has changed since {before.place}. What is different now:\n"
    text = "".join([head, _named("---", before), _named("+++", after), *_hunks(old, new, skipped)])
    return text if len(text.encode()) * _SHARE < len(after.text.encode()) else None


def _named(sign: str, version: Version) -> str:
    return f"{sign} {version.place} (checksum: sha256:{checksum_of(version.text)[:_DIGITS]})\n"


def _lines(text: str) -> list[str]:
    """The lines of `text`, each with its line feed, where it has one."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _alike(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines in front are the same."""
    shorter = min(len(old), len(new))
    return next((number for number in range(shorter) if old[number] != new[number]), shorter)


def _hunks(old: Sequence[str], new: Sequence[str], skipped: int) -> Iterator[str]:
    """The hunks between two texts of which the first `skipped` lines were left out."""
    from difflib import unified_diff

    for line in list(unified_diff(old, new, n=_CONTEXT))[2:]:
        text = _HUNK.sub(lambda found: _moved(found, skipped), line) if line.startswith("@@") else line
        yield text if text.endswith("\n") else f"{text}\n\\ No newline at end of file\n"


def _moved(found: re.Match[str], skipped: int) -> str:
    first, second = int(found[1]) + skipped, int(found[3]) + skipped
    return f"@@ -{first}{found[2] or ''} +{second}{found[4] or ''} @@"
