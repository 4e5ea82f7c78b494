"""The difference of two texts as a unified diff, in bounded time. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

_AROUND = 3
_MOST_COMPARED = 3_000
"""Beyond so many lines that differ, they are not compared line by line: that may take quadratic time."""

_NO_END = "\\ No newline at end of file"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """`lines` are a unified diff without line feeds; `first` and `last` are the changed lines of the new text."""

    lines: tuple[str, ...]
    first: int
    last: int

    def text(self, most: int | None = None) -> str:
        """The diff, with at most so many lines where a bound is given."""
        if most is None or len(self.lines) <= most:
            return "\n".join(self.lines)
        left_out = len(self.lines) - most
        return "\n".join([*self.lines[:most], f"… {left_out:,} more lines of the diff"])


def difference(path: str, old: str, new: str) -> Difference:
    """The difference from `old` to `new`, two texts that are not the same, of the file `path`."""
    before, after = _lines(old), _lines(new)
    head = _same(before, after)
    tail = _same(before[head:][::-1], after[head:][::-1])
    return Difference(
        lines=(f"--- {path}", f"+++ {path}", *_hunks(before, after, head, tail)),
        first=head + 1,
        last=max(head + 1, len(after) - tail),
    )


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    end = lines.pop()
    return [*lines, f"{end}\n{_NO_END}"] if end else lines


def _same(before: Sequence[str], after: Sequence[str]) -> int:
    pairs = enumerate(zip(before, after, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(before), len(after)))


def _hunks(before: list[str], after: list[str], head: int, tail: int) -> Iterator[str]:
    # What is the same at both ends is not compared again; three lines of it are shown.
    skipped = max(0, head - _AROUND)
    old = before[skipped : len(before) - max(0, tail - _AROUND)]
    new = after[skipped : len(after) - max(0, tail - _AROUND)]
    if len(old) + len(new) > _MOST_COMPARED:
        yield _heading(skipped, skipped + len(old), skipped, skipped + len(new))
        yield from _replaced(old, new, head - skipped, min(tail, _AROUND))
        return
    from difflib import SequenceMatcher

    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_AROUND):
        yield _heading(skipped + group[0][1], skipped + group[-1][2], skipped + group[0][3], skipped + group[-1][4])
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from _marked(" ", old[old_start:old_end])
            else:
                yield from _marked("-", old[old_start:old_end])
                yield from _marked("+", new[new_start:new_end])


def _replaced(old: list[str], new: list[str], lead: int, trail: int) -> Iterator[str]:
    """All of `old` but so many lines at its ends, by all of `new`."""
    yield from _marked(" ", old[:lead])
    yield from _marked("-", old[lead : len(old) - trail])
    yield from _marked("+", new[lead : len(new) - trail])
    yield from _marked(" ", old[len(old) - trail :])


def _marked(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield from f"{sign}{line}".split("\n")


def _heading(old_start: int, old_end: int, new_start: int, new_end: int) -> str:
    return f"@@ -{_span(old_start, old_end)} +{_span(new_start, new_end)} @@"


def _span(start: int, end: int) -> str:
    count = end - start
    # As `diff -u` has it: where there is no line, the one before it is named.
    return f"{start if count == 0 else start + 1}" + ("" if count == 1 else f",{count}")
