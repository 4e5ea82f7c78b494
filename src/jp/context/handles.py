"""Handles: short addresses by which something left out can be recalled.

A handle is a beginning of the sha256 of raw content, at least eight hexadecimal digits long. It is given when content
is first met and stays what it is when more content comes: text that holds it has been sent already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Protocol

SHORTEST = 8
"""Digits of a handle, unless two contents of one conversation begin alike."""


class Artifacts(Protocol):
    """Where a host keeps the originals of what is left out."""

    def handle(self, sha256: str) -> str:
        """The handle of the content with this checksum; nothing is stored yet."""
        ...

    def keep(self, content: str) -> str:
        """Store `content`, if it is not there already, and return its handle."""
        ...

    def recall(self, handle: str) -> str | None:
        """What was kept under `handle`, exactly; None where there is no such thing."""
        ...


def checksum_of(content: str | bytes) -> str:
    """The sha256 of raw content in hexadecimal digits; of text, of its UTF-8.

    Half of a surrogate pair, which JSON can spell and UTF-8 cannot, counts as the three bytes that it would have.
    """
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()


def assign_handles(checksums: Iterable[str]) -> dict[str, str]:
    """The checksum for each handle of a conversation whose contents were first met in this order.

    Each gets the shortest beginning that no earlier one shares; so nothing that comes later changes a handle.
    """
    assigned: dict[str, str] = {}
    alike: dict[str, list[str]] = {}
    for checksum in checksums:
        others = alike.setdefault(checksum[:SHORTEST], [])
        if checksum not in others:
            assigned[_shortest(checksum, others)] = checksum
            others.append(checksum)
    return assigned


def look_up(handle: str, assigned: Mapping[str, str]) -> str | None:
    """The checksum that `handle` names: as it was assigned, or as the beginning of only one, in either case of letters.

    None for what names nothing, or several.
    """
    wanted = handle.lower()
    if wanted in assigned:
        return assigned[wanted]
    if len(wanted) < SHORTEST:
        return None
    found = [checksum for checksum in assigned.values() if checksum.startswith(wanted)]
    return found[0] if len(found) == 1 else None


def _shortest(checksum: str, others: Iterable[str]) -> str:
    length = SHORTEST
    for other in others:
        while other.startswith(checksum[:length]):
            length += 1
    return checksum[:length]
