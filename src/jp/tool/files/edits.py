"""Edits of a text: all of them, each where it fits, or none. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from jp.tool.files.errors import FileAccessError

_PLACES_SHOWN = 5
_REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<braced>\w+)\}|(?P<bare>\w+))")


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """What is replaced by what. `number` counts the edits of a call from 1."""

    number: int
    old: str
    new: str
    replace_all: bool = False

    def fail(self, why: str) -> FileAccessError:
        """What is wrong with it, in words for the model; nothing has been changed."""
        return FileAccessError(f"pattern {self.number}: {why}. Nothing was changed.")


class Match(msgspec.Struct, frozen=True):
    """Where an expression matches: from `start` to before `end`, with the text of each group by number and name."""

    start: int
    end: int
    groups: Mapping[str, str | None]


def replaced_exactly(text: str, edit: Edit) -> tuple[str, int]:
    """`text` with the edit, and how often it applied.

    Raises:
        FileAccessError: `old` is not there, or more than once where only one is meant.
    """
    if not edit.old:
        raise edit.fail("'old' is empty")
    if edit.old == edit.new:
        raise edit.fail("'old' and 'new' are the same")
    count = text.count(edit.old)
    if count == 0:
        raise edit.fail(f"'old' is not in the file{_near(text, edit.old)}")
    if count > 1 and not edit.replace_all:
        places = _places(text, _found(text, edit.old))
        raise edit.fail(
            f"'old' is in the file {count} times, at {places}; make it longer, or say replace_all where all are meant"
        )
    return text.replace(edit.old, edit.new), count


def replaced_matches(text: str, edit: Edit, matches: Sequence[Match]) -> tuple[str, int]:
    """`text` with what matches the expression of the edit replaced, and how often.

    Raises:
        FileAccessError: nothing matches, more than one where only one is meant, or `new` refers to no group.
    """
    if not matches:
        raise edit.fail("the expression 'old' matches nothing in the file")
    if len(matches) > 1 and not edit.replace_all:
        places = _places(text, [match.start for match in matches])
        raise edit.fail(
            f"the expression 'old' matches {len(matches)} times, at {places}; "
            "make it narrower, or say replace_all where all are meant"
        )
    pieces: list[str] = []
    done = 0
    for match in matches:
        pieces += (text[done : match.start], _filled(edit, match.groups))
        done = match.end
    return "".join([*pieces, text[done:]]), len(matches)


def _filled(edit: Edit, groups: Mapping[str, str | None]) -> str:
    def fill(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        name = found["braced"] or found["bare"]
        if name not in groups:
            raise edit.fail(f"'new' refers to ${{{name}}}, but 'old' has no such group; a dollar sign is written '$$'")
        return groups[name] or ""

    return _REFERENCE.sub(fill, edit.new)


def _found(text: str, old: str) -> list[int]:
    starts: list[int] = []
    start = text.find(old)
    while start >= 0:
        starts.append(start)
        start = text.find(old, start + len(old))
    return starts


def _places(text: str, starts: Sequence[int]) -> str:
    shown = dict.fromkeys(str(text.count("\n", 0, start) + 1) for start in starts[:_PLACES_SHOWN])
    more = " and more" if len(starts) > _PLACES_SHOWN else ""
    return f"line {', '.join(shown)}{more}" if len(shown) == 1 and not more else f"lines {', '.join(shown)}{more}"


def _near(text: str, old: str) -> str:
    """Where the file has `old` but for white space at the ends of its lines."""
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    if not any(wanted):
        return ""
    lines = [line.strip() for line in text.split("\n")]
    for index, line in enumerate(lines):
        if line == wanted[0] and lines[index : index + len(wanted)] == wanted:
            return f"; line {index + 1} begins what differs from it in white space only"
    return ""
