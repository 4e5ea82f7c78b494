"""Where the source of a paragraph may be cut while the rest of it is still coming.

A cut is safe where no emphasis, code span, link, tag or formula is open: both sides mean the same on their own as
together. What is cut depends on the text alone, never on how it came. Where something stays open for long (a star that
nobody closes), the source is cut all the same, so that showing it stays linear in its length.
"""

from __future__ import annotations

import re

SEGMENT = 64
"""A segment is at least this long."""

BOUND = 2000
"""A segment of about this length ends even where something is open; at twice that, in the middle of a word."""

FORMULA = re.compile(r"\$\$(?!\s)[^$\n]{1,500}\$\$|\$(?![\s$])[^$\n]{1,200}(?<=\S)\$(?!\d)")
"""Inline mathematics. A price is none: no dollar sign follows it, or one after a space, or one before a digit."""

_LAST_CUT = 2 * BOUND
_FORMULA_BOUND = 500
_FORMULA_STOP = re.compile(r"[$\n]")
_TAG_BOUND = 500
_TAG_STOP = re.compile(r"[<>\n]")
_TAG_FIRST = re.compile(r"[A-Za-z/!?]")

_LONGEST_RUN = 100
"""So many equal characters in a row are ornament."""

_SPECIAL = re.compile(r"\\(?:.|\Z)|([`*_~$])\1{,99}|\[|\]|<", re.DOTALL)
_TICKS = re.compile(r"`{1,100}")
_TARGET = re.compile(r"\\(?:.|\Z)|[()]", re.DOTALL)
_FORMULA_ENDS = {"\\(": re.compile(r"\\(?:\)|\Z)"), "\\[": re.compile(r"\\(?:\]|\Z)")}
_WIDE = "[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60\U0001f300-\U0001faff\U00020000-\U0003fffd]"
_CUT = re.compile(rf"(?<=[^\s\\]) (?=\S)|(?<={_WIDE})(?={_WIDE})")


class Cutter:
    """Collects the source of one paragraph and gives it out in segments."""

    def __init__(self) -> None:
        self._text = ""
        self._restart(0)

    @property
    def held(self) -> str:
        """What was not given out; it stays."""
        return self._text[self._start :]

    def feed(self, text: str) -> list[str]:
        """Add to the paragraph, and take what can be taken."""
        self._text += text
        segments: list[str] = []
        while True:
            # Nothing beyond this bound is looked at before there was a cut.
            bound = min(len(self._text), self._start + _LAST_CUT + 2 * _LONGEST_RUN)
            special = self._pattern.search(self._text, self._position, bound)
            end = bound if special is None else special.start()
            cut = self._cut_before(end)
            if cut:
                segments.append(self._text[self._start : cut])
                self._restart(cut)
            elif special is None or not self._read(special):
                self._forget(end)
                return segments

    def rest(self) -> str:
        """What was not given out."""
        rest, self._text = self._text, ""
        self._restart(0)
        return rest

    def _restart(self, start: int) -> None:
        """Begin a segment at `start`."""
        self._start = start
        self._position = start  # what lies before was read
        self._plain_from = start  # from here up to the position nothing opens or closes, and there is no place to cut
        self._pattern = _SPECIAL
        self._ticks = ""
        self._parentheses = 0
        self._brackets: list[int] = []  # how many delimiters were open where each began
        self._delimiters: list[tuple[str, int]] = []

    def _forget(self, position: int) -> None:
        """Drop what was given out; reading goes on at `position`."""
        self._text = self._text[self._start :]
        self._position = position - self._start
        self._plain_from -= self._start
        self._start = 0

    def _cut_before(self, end: int) -> int:
        """Where to cut between what was read and `end`; 0 for nowhere."""
        is_neutral = self._pattern is _SPECIAL and not self._brackets and not self._delimiters
        first, last = self._start + (SEGMENT if is_neutral else BOUND), self._start + _LAST_CUT
        first = max(self._plain_from, first)
        found = _CUT.search(self._text, first, min(end + 1, last)) if first < end else None
        if found is not None:
            return found.end()
        if end > last:
            return max(self._plain_from, last)
        self._plain_from = max(self._plain_from, end - 1)
        return 0

    def _read(self, special: re.Match[str]) -> bool:
        """Follow what opens and closes; whether that could be decided by what is there."""
        if self._pattern is _TICKS:
            end = self._read_closing_ticks(special)
        elif self._pattern is _TARGET:
            end = self._read_target(special)
        elif self._pattern is not _SPECIAL:
            end = special.end() if len(special[0]) > 1 else 0
            self._pattern = _SPECIAL if end else self._pattern
        else:
            end = self._read_special(special)
        if end:
            self._position = self._plain_from = end
        return end > 0

    def _read_special(self, special: re.Match[str]) -> int:
        """Where reading goes on; 0 where more has to come first."""
        first, end = special[0][0], special.end()
        if first == "[":
            self._brackets.append(len(self._delimiters))
        elif first == "<":
            end = self._read_tag(special.start())
        elif first == "\\":
            end = self._read_escape(special)
        elif first == "]":
            end = self._read_bracket(end)
        elif len(special[0]) < _LONGEST_RUN:
            end = self._read_run(special) if end < len(self._text) else 0
        return end

    def _read_run(self, run: re.Match[str]) -> int:
        match run[0][0]:
            case "`":
                self._ticks, self._pattern = run[0], _TICKS
            case "$":
                return self._read_formula(run.start(), run.end())
            case _:
                self._read_delimiters(run)
        return run.end()

    def _read_escape(self, escape: re.Match[str]) -> int:
        if len(escape[0]) == 1:
            return 0
        self._pattern = _FORMULA_ENDS.get(escape[0], _SPECIAL)
        return escape.end()

    def _read_closing_ticks(self, run: re.Match[str]) -> int:
        if run.end() == len(self._text) and len(run[0]) < _LONGEST_RUN:
            return 0
        if run[0] == self._ticks:
            self._pattern = _SPECIAL
        return run.end()

    def _read_target(self, special: re.Match[str]) -> int:
        if special[0] == "\\":
            return 0
        self._parentheses += {"(": 1, ")": -1}.get(special[0], 0)
        if self._parentheses == 0:
            self._pattern = _SPECIAL
        return special.end()

    def _read_bracket(self, end: int) -> int:
        if end == len(self._text):
            return 0
        if not self._brackets:
            return end
        del self._delimiters[self._brackets.pop() :]
        if self._text[end] != "(":
            return end
        self._parentheses, self._pattern = 1, _TARGET
        return end + 1

    def _read_tag(self, start: int) -> int:
        if start + 1 == len(self._text):
            return 0
        if _TAG_FIRST.match(self._text, start + 1) is None:
            return start + 1
        stop = _TAG_STOP.search(self._text, start + 1, start + _TAG_BOUND)
        if stop is None:
            return start + 1 if len(self._text) >= start + _TAG_BOUND else 0
        return stop.end() if stop[0] == ">" else start + 1

    def _read_formula(self, start: int, end: int) -> int:
        stop = _FORMULA_STOP.search(self._text, end, end + _FORMULA_BOUND)
        wanted = end + _FORMULA_BOUND if stop is None else stop.end() + 1
        if len(self._text) <= wanted:
            return 0
        found = FORMULA.match(self._text, start)
        return found.end() if found else end

    def _read_delimiters(self, run: re.Match[str]) -> None:
        character, count = run[0][0], len(run[0])
        before = self._text[run.start() - 1] if run.start() > self._start else " "
        opens, closes = _flanks(character, before, self._text[run.end()])
        if character == "~" and count == 1:
            return
        while closes and count:
            depth = self._opener(character)
            if depth < 0:
                break
            available = self._delimiters[depth][1]
            del self._delimiters[depth:]
            if available > count:
                self._delimiters.append((character, available - count))
            count -= min(available, count)
        if opens and count:
            self._delimiters.append((character, count))

    def _opener(self, character: str) -> int:
        """The innermost open run of `character` outside of any bracket that has begun since; -1 for none."""
        floor = self._brackets[-1] if self._brackets else 0
        for depth in range(len(self._delimiters) - 1, floor - 1, -1):
            if self._delimiters[depth][0] == character:
                return depth
        return -1


def _flanks(character: str, before: str, after: str) -> tuple[bool, bool]:
    """Whether a run of delimiters between these two can open, and close (CommonMark 0.31, 6.2)."""
    after_blank, before_blank = after.isspace(), before.isspace()
    after_sign, before_sign = not after_blank and not after.isalnum(), not before_blank and not before.isalnum()
    is_left = not after_blank and (not after_sign or before_blank or before_sign)
    is_right = not before_blank and (not before_sign or after_blank or after_sign)
    if character != "_":
        return is_left, is_right
    return is_left and (not is_right or before_sign), is_right and (not is_left or after_sign)
