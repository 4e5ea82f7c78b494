"""Text from others made safe for a terminal and a log line: control characters, quoting, secrets, links."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

MOST_SPACES = 32
"""A longer run of spaces is counted, and so is one at the end of a line."""

_MOST_NEWLINES = 3
_MOST_KINDS = 3_000
_MOST_MARKS = 2
_NAMES = {" ": "space", "\n": "newline", "\t": "tab", "\r": "CR", "\x1b": "ESC", "\x07": "BEL", "\x08": "BS"}
_BRACKETS = "⟨⟩\u2329\u232a\u3008\u3009"  # the last two pairs look like the first
_BLANK = "\u2800\u1160\u115f\u3164\uffa0\ufffc"
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that Unicode lets a terminal omit (Default_Ignorable_Code_Point), tags and variation selectors among them.
"""

_CONFUSABLE = ("CYRILLIC ", "GREEK ", "ARMENIAN ", "CHEROKEE ", "COPTIC ", "LISU ", "GEORGIAN ")
_SEEN_AS_OTHER = frozenset({"", "<font>", "<compat>", "<narrow>", "<small>", "<noBreak>"})
_WORD = re.compile(r"[^\W_]+")
_ASCII_LETTER = re.compile("[A-Za-z]")
_RUN = re.compile(r"[!-~]+|(.)\1*", re.DOTALL)
_TOKEN = re.compile(r"⟨[^⟩]*(?:⟩|\Z)|\A[^⟨⟩]*⟩")


def escape(text: str, *, is_line: bool = False) -> str:
    """Return `text` with only printable characters and line feeds; with `is_line`, without line feeds."""
    return "".join(_pieces(text, is_line=is_line))


def escape_line(text: str) -> str:
    """Return `text` as one line of printable characters."""
    is_plain = text.isascii() and text.isprintable() and "  " not in text and not text.endswith(" ")
    return text if is_plain else escape(text, is_line=True)


def printable(text: str) -> str:
    """Return text that is composed of escaped text and jp's own words with every other character escaped."""
    return "".join(char if char.isprintable() or char == "\n" else _token(char, 1) for char in text)


def tokens(line: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a row of escaped text, each with whether it is a token, or the rest of one."""
    end = 0
    for found in _TOKEN.finditer(line):
        if found.start() > end:
            yield line[end : found.start()], False
        yield found[0], True
        end = found.end()
    if end < len(line):
        yield line[end:], False


def _pieces(text: str, *, is_line: bool) -> Iterator[str]:
    confused = () if text.isascii() else _confused(text)
    marks = _MOST_MARKS  # of the letter before; where there is none, a mark has nothing to stand on
    for run in _runs_of(text).finditer(text):
        char, count = run[1], len(run[0])
        if char is None:
            yield run[0]
            marks = 0 if run[0][-1].isalpha() else _MOST_MARKS
        elif char == "\n" and not is_line:
            yield "\n" * count if count <= _MOST_NEWLINES else f"\n{_token(char, count - 2)}\n"
        elif char == " ":
            is_trailing = run.end() == len(text) or text[run.end()] == "\n"
            yield _token(char, count) if is_trailing or count > MOST_SPACES else run[0]
            marks = _MOST_MARKS
        elif _is_mark(char):
            marks += count
            yield run[0] if marks <= _MOST_MARKS and not _is_hidden(char) else _token(char, count)
        elif run.start() in confused or _is_hidden(char):
            yield _token(char, count)
            marks = _MOST_MARKS
        else:
            yield run[0]
            marks = 0 if char.isalpha() else _MOST_MARKS


def _runs_of(text: str) -> re.Pattern[str]:
    """Return what finds stretches of plain characters, and runs of any other one: long texts have few kinds."""
    if text.isascii() or len(kinds := set(text)) > _MOST_KINDS:
        return _RUN
    plain = "".join(char for char in kinds if not char.isascii() and _is_plain(char))
    return re.compile(rf"[!-~{re.escape(plain)}]+|(.)\1*", re.DOTALL)


def _is_plain(char: str) -> bool:
    return not (_is_hidden(char) or _is_mark(char) or _is_confusable(char))


def _token(char: str, count: int) -> str:
    name = _NAMES.get(char) or f"U+{ord(char):04X}"
    return f"⟨{name}⟩" if count == 1 else f"⟨{name}*{count}⟩"


@lru_cache(maxsize=4096)
def _is_hidden(char: str) -> bool:
    """Return whether a terminal may show nothing for a character, or what is shown for another one."""
    if not char.isprintable() or char in _BRACKETS or char in _BLANK or _IGNORABLE.match(char):
        return True
    from unicodedata import category, decomposition, normalize

    if category(char) == "Me":
        return True
    other = normalize("NFKC", char)
    kind = decomposition(char).partition(" ")[0]
    is_seen_as_other = (kind if kind.startswith("<") else "") in _SEEN_AS_OTHER
    return not char.isascii() and len(other) == 1 and other.isascii() and is_seen_as_other


@lru_cache(maxsize=4096)
def _is_mark(char: str) -> bool:
    from unicodedata import category

    return category(char) in {"Mn", "Mc", "Me"}


def _confused(text: str) -> Collection[int]:
    """Return where letters of a script that looks like Latin are in one word with Latin letters."""
    return {
        word.start() + index
        for word in _WORD.finditer(text)
        if not word[0].isascii() and _ASCII_LETTER.search(word[0])
        for index, char in enumerate(word[0])
        if _is_confusable(char)
    }


@lru_cache(maxsize=4096)
def _is_confusable(char: str) -> bool:
    from unicodedata import name

    return not char.isascii() and name(char, "").startswith(_CONFUSABLE)


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
    """Return `text` without control sequences; a sequence that is incomplete at its end is dropped.

    With `keep_colors`, SGR sequences stay, except for conceal: the caller has to reset them.
    """
    if _CONTROL.search(text) is None:
        return text
    sanitizer = Sanitizer(keep_colors=keep_colors)
    return sanitizer.feed(text) + sanitizer.finish()


def one_line(text: str) -> str:
    """Return `text` sanitized, with every run of white space as one space: for a line that must stay a line."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip(" ")
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
        """Return whether the open string ends in `text`, or is too long to be one; if not, `text` is kept."""
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
    """Return the SGR sequence with these parameters, without conceal; empty if nothing is left, or if it is private."""
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


_ENDINGS = ("_API_KEY", "_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_SHORTEST = 8
_MASK = "***"
_kept: set[str] = set()


def keep_secret(secret: str) -> None:
    """Mask `secret`, which is not in the environment, from now on."""
    if len(secret) >= _SHORTEST:
        _kept.add(secret)


def mask(text: str, environment: Mapping[str, str]) -> str:
    """Return `text` with secrets masked: those that were kept, and values of variables with such names."""
    for secret in _kept:
        text = text.replace(secret, _MASK)
    for name, value in environment.items():
        if name.upper().endswith(_ENDINGS) and len(value) >= _SHORTEST:
            text = text.replace(value, _MASK)
    return text


_LONGEST_TARGET = 2000
_TARGET = re.compile(rf"(?:https?|file)://[!-~]{{1,{_LONGEST_TARGET}}}")
_WEB_ADDRESS = re.compile(r"(?<!\w)https?://[^\s<>\"'`\x1b]++(?!\x1b)")
_OPENABLE = re.compile(r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?(?:[/?#][!-~]*)?")
_QUOTED_PATH = re.compile(r"'(/[^'\\\x00-\x1f\x7f-\x9f]+)'")
_PUNCTUATION = ".,;:!?*_"
_BRACKET_PAIRS = {")": "(", "]": "[", "}": "{"}
_LINK = re.compile(r"\x1b\]8;;[!-~]*\x1b\\")


def hyperlink(text: str, target: str) -> str:
    """Return `text`, which is safe to show, as a link to `target`; without one where the target may not be opened.

    For the text of others it has to be the address that is shown, so that a link cannot lie.
    """
    return f"\x1b]8;;{target}\x1b\\{text}\x1b]8;;\x1b\\" if _TARGET.fullmatch(target) else text


def link_path(text: str, path: str) -> str:
    """Return `text` as a link to the file at the absolute `path` of this machine."""
    from jp.conversation.resource import file_uri

    return hyperlink(text, f"file://{os.uname().nodename}{file_uri(path).removeprefix('file://')}")


def addresses(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the addresses of web pages begin and end in `text`.

    An address with a user name or with characters other than printable ASCII is omitted: it may look like another one.
    """
    if "://" not in text:
        return
    for found in _WEB_ADDRESS.finditer(text):
        if len(found[0]) <= _LONGEST_TARGET:
            end = found.start() + len(_without_punctuation(found[0]))
            if found[0].isascii() and _OPENABLE.fullmatch(text, found.start(), end):
                yield found.start(), end


def _without_punctuation(address: str) -> str:
    """Return an address without what belongs to the sentence around it."""
    while address:
        last = address[-1]
        opening = _BRACKET_PAIRS.get(last)
        if last not in _PUNCTUATION and (opening is None or address.count(opening) >= address.count(last)):
            break
        address = address[:-1]
    return address


def link_addresses(text: str) -> str:
    """Return `text`, which is safe to show, with every address of a web page as a link to what is shown."""
    pieces: list[str] = []
    position = 0
    for start, end in addresses(text):
        pieces += [text[position:start], hyperlink(text[start:end], text[start:end])]
        position = end
    return "".join([*pieces, text[position:]])


def link_message(text: str) -> str:
    """Return a message of jp's own, which is safe to show, with links to web pages and quoted absolute paths."""
    return _QUOTED_PATH.sub(lambda found: f"'{link_path(found[1], found[1])}'", link_addresses(text))


def link_words(text: str, paths: Mapping[str, str]) -> str:
    """Return `text`, which is safe to show, with every word of `paths` as a link to its absolute path."""
    words = {sanitize(word): path for word, path in paths.items() if word}
    if not words:
        return text
    longest_first = sorted(words, key=len, reverse=True)
    found = re.compile(rf"(?<![\w/])(?:{'|'.join(map(re.escape, longest_first))})(?![\w/])")
    return found.sub(lambda match: link_path(match[0], words[match[0]]), text)


def without_links(text: str) -> str:
    """Return `text` without the control sequences of links."""
    return _LINK.sub("", text)
