"""How alike two names are, for proposals to whom mistyped one. Pure."""

from __future__ import annotations

from difflib import SequenceMatcher


def alikeness(one: str, other: str) -> float:
    """How alike two names of files are, from 0 to 1, whatever their case: an extension that agrees says little."""
    stems = (one.casefold().rpartition("."), other.casefold().rpartition("."))
    first, second = (stem or extension for stem, _, extension in stems)
    return SequenceMatcher(None, first, second, autojunk=False).ratio()
