"""Which names are near to one that was mistyped, for every hint that proposes one. Pure."""

from __future__ import annotations

from collections.abc import Iterable

MIN_SIMILARITY = 0.66
"""How much of two names has to agree: of three letters two."""


def closest_names(word: str, known: Iterable[str], *, most: int = 1, alike: float = MIN_SIMILARITY) -> tuple[str, ...]:
    """Up to `most` of the `known` names that are spelled most like `word`, best first; letter case does not count.

    `alike` is how much of them has to agree, from 0 to 1. Empty where nothing is near.
    """
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(b=word.casefold(), autojunk=False)
    found: list[tuple[float, str]] = []
    for name in known:
        matcher.set_seq1(name.casefold())
        if matcher.real_quick_ratio() >= alike and matcher.quick_ratio() >= alike and matcher.ratio() >= alike:
            found.append((matcher.ratio(), name))
    return tuple(name for _, name in sorted(found, key=lambda scored: scored[0], reverse=True)[:most])
