"""Suggestions for mistyped names. Pure."""

from __future__ import annotations

from collections.abc import Iterable

MIN_SIMILARITY = 0.66
"""Minimum similarity of a suggestion: two of three letters."""


def closest_names(word: str, known: Iterable[str], *, most: int = 1, alike: float = MIN_SIMILARITY) -> tuple[str, ...]:
    """Return up to `most` of the `known` names that are most similar to `word`, ignoring case, the best first.

    `alike` is the minimum similarity, 0 to 1.
    """
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(b=word.casefold(), autojunk=False)
    found: list[tuple[float, str]] = []
    for name in known:
        matcher.set_seq1(name.casefold())
        if matcher.real_quick_ratio() >= alike and matcher.quick_ratio() >= alike and matcher.ratio() >= alike:
            found.append((matcher.ratio(), name))
    return tuple(name for _, name in sorted(found, key=lambda scored: scored[0], reverse=True)[:most])
