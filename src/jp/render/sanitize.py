"""Removal of everything that would control a terminal.

Removed are escape sequences (ECMA-48: CSI, the strings OSC, DCS, SOS, PM and APC, every other ESC sequence), the
controls C0 (but line feed and tab), DEL and C1, in their one-character forms too, and the explicit bidirectional
controls, with which a line can be made to read as another (U+202A-202E, U+2066-2069; the marks and joiners that
scripts need stay). A carriage return becomes a line feed, CR LF one of them. A lone surrogate becomes U+FFFD.

A string without an end would hide everything after it: one that has no end within `STRING_BOUND` characters loses
its introducer only. The result never depends on how a text was cut, and each character is looked at a bounded number
of times.
"""

from __future__ import annotations

import re

STRING_BOUND = 4096
_SEQUENCE_BOUND = 64

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SEQUENCE = re.compile(
    # A string ends where a terminal ends it: at BEL, ST, CAN or SUB, and before any other ESC or C1.
    f"(?P<string>(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x18\x1a\x1b\x80-\x9f]{{0,{STRING_BOUND}}}"
    "(?:[\x07\x18\x1a\x9c]|(?=[\x1b\x80-\x9f])))"
    f"|(?:\x1b\\[|\x9b)(?P<parameters>[0-?]{{0,{_SEQUENCE_BOUND}}})(?P<intermediate>[ -/]{{0,8}})(?P<final>[@-~])"
    "|\x1b[ -/]{0,8}[0-~]"
    "|\r\n?"
    "|(?P<surrogate>[\ud800-\udfff])"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
_UNFINISHED_SEQUENCE = re.compile(f"(?:(?:\x1b\\[|\x9b)[0-?]{{0,{_SEQUENCE_BOUND}}}[ -/]{{0,8}}|\x1b[ -/]{{0,8}})\\Z")
_STRING_START = re.compile("\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f]")
_STRING_END = re.compile("[\x07\x18\x1a\x1b\x80-\x9f]")
_INTRODUCERS = "\x1b\x90\x98\x9b\x9d\x9e\x9f"
_CANCEL = "\x18"
_COLOR_PARAMETERS = re.compile(r"[0-9;:]*\Z")
_CONCEAL = "8"
_EXTENDED_COLORS = ("38", "48", "58")
_EXTENDED_LENGTHS = {"5": 3, "2": 5}
"""Number of parameters of an extended color, itself included, by its second one."""


def sanitize(text: str, *, keep_colors: bool = False) -> str:
    """`text` without anything that steers a terminal; a sequence that it ends in is dropped.

    With `keep_colors`, SGR sequences stay, but for conceal: what they change has to be reset by the caller.
    """
    if _CONTROL.search(text) is None:
        return text
    sanitizer = Sanitizer(keep_colors=keep_colors)
    return sanitizer.feed(text) + sanitizer.finish()


def one_line(text: str) -> str:
    """`text` sanitized, with every run of white space as one space: for a line that must stay a line."""
    return " ".join(sanitize(text).split())


class Sanitizer:
    """`sanitize` for a text that comes in pieces: a sequence that is cut by a piece's end does not leak."""

    def __init__(self, *, keep_colors: bool = False) -> None:
        self._keep_colors = keep_colors
        self._held = ""
        self._string: list[str] = []
        self._string_size = 0
        self._after_return = False

    def feed(self, text: str) -> str:
        """Return what can be shown of `text` and of what was held back before it."""
        if not self._string and not self._held and not self._after_return and _CONTROL.search(text) is None:
            return text
        if self._string and not self._string_ends(text):
            return ""
        return self._take("".join((*self._string_taken(), self._held, text)), is_last=False)

    def finish(self) -> str:
        """Return what was held back and is text after all. The sanitizer can be used again."""
        rest = self._take("".join((*self._string_taken(), self._held)), is_last=True)
        self._after_return = False
        return rest

    def _string_ends(self, text: str) -> bool:
        """Whether the string that is open ends in `text`, or is too long to be one; if not, `text` is kept."""
        if _STRING_END.search(text) or self._string_size + len(text) > STRING_BOUND + 2:
            return True
        self._string.append(text)
        self._string_size += len(text)
        return False

    def _string_taken(self) -> list[str]:
        pieces, self._string, self._string_size = self._string, [], 0
        return pieces

    def _take(self, text: str, *, is_last: bool) -> str:
        self._held = ""
        if self._after_return and text:
            self._after_return = False
            text = text.removeprefix("\n")
        if not is_last:
            text = self._hold_back(text)
        return _SEQUENCE.sub(self._replace, text)

    def _hold_back(self, text: str) -> str:
        """Keep what the next piece may complete, and return what comes before it."""
        start = max(text.rfind(introducer) for introducer in _INTRODUCERS)
        tail = text[start:] if start >= 0 else ""
        if _is_open_string(tail):
            self._string, self._string_size = [tail], len(tail)
        elif _UNFINISHED_SEQUENCE.match(tail):
            self._held = tail
        else:
            self._after_return = text.endswith("\r")
            return text
        # The introducer that is kept ends what comes before it; so does CAN, which itself is never shown.
        return f"{text[:start]}{_CANCEL}"

    def _replace(self, match: re.Match[str]) -> str:
        if match["surrogate"]:
            return "\ufffd"
        if match[0][0] == "\r":
            return "\n"
        if self._keep_colors and match["final"] == "m" and not match["intermediate"]:
            return _color(match["parameters"])
        return ""


def _is_open_string(tail: str) -> bool:
    return (
        len(tail) <= STRING_BOUND + 2 and _STRING_START.match(tail) is not None and _STRING_END.search(tail, 1) is None
    )


def _color(parameters: str) -> str:
    """The SGR sequence with these parameters, without conceal; nothing where only that, or a private one, was there."""
    if not _COLOR_PARAMETERS.match(parameters):
        return ""
    fields = parameters.split(";")
    kept: list[str] = []
    index = 0
    while index < len(fields):
        length = 1
        if fields[index] in _EXTENDED_COLORS and index + 1 < len(fields):
            length = _EXTENDED_LENGTHS.get(fields[index + 1], 1)
        if fields[index].partition(":")[0].lstrip("0") != _CONCEAL:
            kept.extend(fields[index : index + length])
        index += length
    return f"\x1b[{';'.join(kept)}m" if kept else ""


class PlainText(Sanitizer):
    """The text without control sequences, at once."""

    def preview(self) -> str:
        """Return nothing: the text is shown at once."""
        return ""

    def settle(self) -> str:
        """Return nothing: only what may be part of a control sequence is held back."""
        return ""
