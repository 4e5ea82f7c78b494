"""Results whose content stands elsewhere in the transcript, and results that a later change has made stale."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from jp.context.results import Delivered
from jp.context.tool_kinds import CHANGING

_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_NEWEST_READS = 8
"""So many reads of one path are looked through for a range."""


class Elsewhere(msgspec.Struct, frozen=True):
    """Where the content of a result stands as well: in the result number `keeper`, as it is or as a part of it."""

    keeper: int
    is_whole: bool


class Overlaps:
    """Finds, for results in the order of their transcript, what else has their content."""

    def __init__(self, results: Sequence[Delivered], replaceable: Sequence[bool]) -> None:
        self._results = results
        self._newest: dict[str, int] = {}
        self._reads: dict[str, list[int]] = {}
        self._changes: dict[str, list[int]] = {}
        for number, result in enumerate(results):
            if result.message.meta.digested is None:
                self._newest[result.sha256] = number
            path = result.facts.path
            if path and result.kind == "read" and not replaceable[number] and result.body is not None:
                self._reads.setdefault(path, []).append(number)
            if path and result.kind in CHANGING and not result.message.is_error:
                self._changes.setdefault(path, []).append(number)

    def elsewhere(self, number: int) -> Elsewhere | None:
        """The newest result with the same content as this one, or a read that stays and has it as a part."""
        result = self._results[number]
        newest = self._newest.get(result.sha256, number)
        if newest > number:
            return Elsewhere(newest, is_whole=True)
        if result.kind != "read" or result.body is None or not result.facts.path:
            return None
        for other in reversed(self._reads.get(result.facts.path, [])[-_NEWEST_READS:]):
            if other > number and _contains(self._results[other], result):
                return Elsewhere(other, is_whole=False)
        return None

    def stale_since(self, number: int) -> int | None:
        """The first later result of a call that changed the path that this one read."""
        result = self._results[number]
        if result.kind != "read" or not result.facts.path:
            return None
        changes = self._changes.get(result.facts.path, [])
        at = bisect_right(changes, number)
        return changes[at] if at < len(changes) else None


def _contains(outer: Delivered, inner: Delivered) -> bool:
    """Whether a read of more lines has those of another, word for word: what changed in between does not."""
    wide, narrow = _RANGE.fullmatch(outer.facts.lines), _RANGE.fullmatch(inner.facts.lines)
    if narrow is None or (outer.facts.lines and wide is None):
        return False
    if wide is not None and not int(wide[1]) <= int(narrow[1]) <= int(narrow[2]) <= int(wide[2]):
        return False
    return (inner.body or "").rstrip("\n") in (outer.body or "")
