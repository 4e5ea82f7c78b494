"""The regular expressions of a search, which mean the same to ripgrep and to Python. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import assert_never

import msgspec

from jp.tool.files.territory import FileAccessError

Range = tuple[int, int]
"""From the first code point to the last."""

HIGHEST = 0x10FFFF

# The property White_Space.
_WHITE_SPACE: tuple[Range, ...] = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0x85, 0x85),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)

# Of a word though their category says nothing of it: Join_Control, and letters in circles and squares (Alphabetic).
_WORDS_BESIDES: tuple[Range, ...] = (
    (0x200C, 0x200D),
    (0x24B6, 0x24E9),
    (0x1F130, 0x1F149),
    (0x1F150, 0x1F169),
    (0x1F170, 0x1F189),
)
_WORD_CATEGORIES = frozenset({"Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl", "Pc"})
_WITH_WORDS: tuple[Range, ...] = ((0, 0x323AF), (0xE0100, 0xE01EF))
"""Outside of these, no character is of a word."""


def forms(code: int) -> tuple[int, ...]:
    """A character with its other cases, as far as they are single characters, sorted."""
    char = chr(code)
    return tuple(sorted({code, *(ord(form) for form in (char.lower(), char.upper()) if len(form) == 1)}))


def white_space() -> tuple[Range, ...]:
    """What Unicode calls white space."""
    return _WHITE_SPACE


@cache
def word_characters() -> tuple[Range, ...]:
    """What words consist of: Unicode's letters, marks, digits, connectors and joiners (UTS #18, Annex C)."""
    from unicodedata import category

    codes = (code for start, end in _WITH_WORDS for code in range(start, end + 1))
    besides = {code for start, end in _WORDS_BESIDES for code in range(start, end + 1)}
    return _runs(code for code in codes if category(chr(code)) in _WORD_CATEGORIES or code in besides)


def complement(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Every character that is in none of the ranges, which are sorted. Halves of characters are in neither."""
    found: list[Range] = []
    start = 0
    for first, last in (*ranges, (HIGHEST + 1, HIGHEST + 1)):
        if first > start:
            found += _without_halves(start, first - 1)
        start = last + 1
    return tuple(found)


_HALVES = (0xD800, 0xDFFF)


def _without_halves(start: int, end: int) -> tuple[Range, ...]:
    below, above = (start, min(end, _HALVES[0] - 1)), (max(start, _HALVES[1] + 1), end)
    return tuple(part for part in (below, above) if part[0] <= part[1])


def _runs(codes: Iterable[int]) -> tuple[Range, ...]:
    found: list[Range] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return tuple(found)


MOST_REPEATED = 1_000
"""How often something may be repeated, repetitions within repetitions multiplied."""

_ONE_LINE = "a search looks at one line at a time, and a line has no line feed"
_LONGEST = 2_000
_MOST_FOLDED = 2_000
_LINE_FEED, _SPACE, _DELETE = 10, 32, 127
_SURROGATES = (0xD800, 0xDFFF)
_META = frozenset("\\.+*?()|[]{}^$#&-~")
_CONTROLS = {"a": "\a", "f": "\f", "r": "\r", "t": "\t", "v": "\v"}
_CLASSES = frozenset("dDsSwW")
_CODE = re.compile(
    r"x\{([0-9A-Fa-f]{1,6})\}|u\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})"
)
_COUNT = re.compile(r"\{(?=,?[0-9])([0-9]{0,6})(,?)([0-9]{0,6})\}")
_LAZY = re.compile(r"\?")
_NAMED = re.compile(r"\?(?:P?<[A-Za-z_]\w*>|:)")
_FLAGS = re.compile(r"\?([ims]*)(?:-([ims]+))?([:)])")
_POSIX_CLASS = re.compile(r"\[:(\^?)([a-z]+):\]")
_POSIX: dict[str, tuple[Range, ...]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "blank": ((9, 9), (32, 32)),
    "digit": ((48, 57),),
    "lower": ((97, 122),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}


class _Set(msgspec.Struct, frozen=True, kw_only=True):
    """One character out of `ranges` or of the `classes`, which are letters such as `w`; or one that is none of them."""

    ranges: tuple[Range, ...] = ()
    classes: str = ""
    negated: bool = False


class _Boundary(msgspec.Struct, frozen=True):
    """Where a word begins or ends; or where none does."""

    negated: bool


_Token = str | _Set | _Boundary
"""A `str` is written alike for both."""


class Expression(msgspec.Struct, frozen=True):
    """An expression that was read."""

    tokens: tuple[_Token, ...]

    def for_ripgrep(self) -> str:
        """As ripgrep is told it."""
        return "".join(map(_for_ripgrep, self.tokens))

    def for_python(self) -> str:
        """As `re` is told it."""
        return "".join(map(_for_python, self.tokens))


def expression_of(pattern: str) -> Expression:
    """Read a pattern.

    Raises:
        FileAccessError: it is malformed, or has what a search does not.
    """
    if not pattern:
        raise FileAccessError("'pattern' is empty")
    if len(pattern) > _LONGEST:
        raise FileAccessError(f"'pattern' has {len(pattern):,} characters; at most {_LONGEST:,} are searched for")
    return Expression(tuple(_Reader(pattern).tokens()))


def _problem(why: str) -> FileAccessError:
    return FileAccessError(f"'pattern' cannot be searched for: {why}")


class _Group(msgspec.Struct, kw_only=True):
    """A group that is being read: whether case counts in it, and how often its parts are repeated at most."""

    ignores_case: bool
    repeated: int = 1


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._groups = [_Group(ignores_case=False)]
        # How often the parts of what came last are repeated; None: it cannot be repeated.
        self._last: int | None = None

    def tokens(self) -> Iterator[_Token]:
        while self._at < len(self._pattern):
            yield from self._next()
        if len(self._groups) > 1:
            raise _problem("a '(' is not closed")

    def _taken(self) -> str:
        self._at += 1
        return self._pattern[self._at - 1]

    def _matched(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        match = expression.match(self._pattern, self._at)
        self._at = self._at if match is None else match.end()
        return match

    def _next(self) -> Iterator[_Token]:
        if (count := self._matched(_COUNT)) is not None:
            yield self._counted(count)
            return
        match self._taken():
            case "*" | "+" | "?" as sign:
                yield self._repeated(sign, 1)
            case "(":
                yield from self._opened()
            case ")":
                yield self._closed()
            case "|" | "^" | "$" as sign:
                self._last = None
                yield sign
            case char:
                token = self._atom(char)
                self._last = None if isinstance(token, _Boundary) else 1
                yield token

    def _atom(self, char: str) -> _Token:
        match char:
            case ".":
                return "."
            case "[":
                return self._set()
            case "\\":
                return self._escaped()
            case _:
                return self._letter(ord(char))

    def _counted(self, count: re.Match[str]) -> str:
        least = int(count[1] or 0)
        most = int(count[3]) if count[3] else None
        if most is not None and most < least:
            raise _problem(f"{count[0]!r} ends before it begins")
        if not count[2]:
            return self._repeated(f"{{{least}}}", least)
        return self._repeated(f"{{{least},{'' if most is None else most}}}", least if most is None else most)

    def _repeated(self, sign: str, most: int) -> str:
        if self._last is None:
            raise _problem(f"there is nothing that {sign!r} could repeat")
        group = self._groups[-1]
        group.repeated = max(group.repeated, self._last * most)
        if group.repeated > MOST_REPEATED:
            raise _problem(f"it repeats something more than {MOST_REPEATED:,} times")
        # Whether a repetition takes as much as it can or as little decides where it ends, not whether it is found.
        self._matched(_LAZY)
        self._last = None
        return sign

    def _opened(self) -> Iterator[str]:
        group = self._groups[-1]
        self._last = None
        flags = self._matched(_FLAGS)
        if flags is None or flags[3] == ":":
            if flags is None and not self._matched(_NAMED) and self._pattern.startswith("?", self._at):
                raise _problem(
                    f"{self._pattern[self._at - 1 : self._at + 2]!r} is none of (…), (?:…), (?P<name>…), (?i)"
                )
            self._groups.append(_Group(ignores_case=group.ignores_case))
            yield "(?:"
        if flags is not None:
            turned_on, turned_off = "i" in flags[1], "i" in (flags[2] or "")
            self._groups[-1].ignores_case = (group.ignores_case or turned_on) and not turned_off

    def _closed(self) -> str:
        if len(self._groups) == 1:
            raise _problem("a ')' closes nothing; the character is written '\\)'")
        group = self._groups.pop()
        self._groups[-1].repeated = max(self._groups[-1].repeated, group.repeated)
        self._last = group.repeated
        return ")"

    def _escaped(self) -> _Token:
        if self._at == len(self._pattern):
            raise _problem("it ends with a single '\\'")
        if (code := self._code()) is not None:
            return self._letter(code)
        char = self._taken()
        if char in _CLASSES:
            return _Set(classes=char)
        if char in {"b", "B"}:
            return _Boundary(char == "B")
        return self._letter(ord(self._character(char)))

    def _code(self) -> int | None:
        match = self._matched(_CODE)
        code = None if match is None else int(match[match.lastindex or 0], 16)
        if code is not None and code > HIGHEST:
            raise _problem(f"there is no character {code:X}")
        return code

    def _character(self, escaped: str) -> str:
        if escaped in _CONTROLS:
            return _CONTROLS[escaped]
        if escaped == "n":
            raise _problem(_ONE_LINE)
        if escaped in "<>" or (escaped.isascii() and escaped.isalnum()):
            raise _problem(f"'\\{escaped}' means nothing here")
        return escaped

    def _letter(self, code: int) -> _Token:
        _require_character(code)
        if code == _LINE_FEED:
            raise _problem(_ONE_LINE)
        found = forms(code) if self._groups[-1].ignores_case else (code,)
        return _spelled(code) if len(found) == 1 else _Set(ranges=tuple((form, form) for form in found))

    def _set(self) -> _Token:
        negated = self._pattern.startswith("^", self._at)
        self._at += negated
        ranges: list[Range] = []
        classes = ""
        is_first = True
        while is_first or not self._pattern.startswith("]", self._at):
            is_first = False
            item = self._item()
            match item:
                case str():
                    classes += item
                case tuple():
                    ranges += item
                case _:
                    ranges += self._cased(self._range(item))
        self._at += 1
        kept = _without_line_feed(ranges)
        if kept or classes:
            return _Set(ranges=kept, classes=classes, negated=negated)
        if negated:
            return "."
        raise _problem(_ONE_LINE)

    def _item(self) -> int | str | tuple[Range, ...]:
        """What is next in a set: a character, the letter of a class, or the ranges of one."""
        if self._at >= len(self._pattern):
            raise _problem("a '[' is not closed; the character is written '\\['")
        if (named := self._matched(_POSIX_CLASS)) is not None:
            if named[2] not in _POSIX:
                raise _problem(f"{named[0]!r} is no class; these are: {', '.join(_POSIX)}")
            return complement(_POSIX[named[2]]) if named[1] else _POSIX[named[2]]
        char = self._taken()
        if char != "\\":
            return ord(char)
        if (code := self._code()) is not None:
            return code
        char = self._taken() if self._at < len(self._pattern) else "b"
        if char == "n":
            return _LINE_FEED
        return char if char in _CLASSES else ord(self._character(char))

    def _range(self, start: int) -> Range:
        rest = self._pattern[self._at : self._at + 2]
        if not rest.startswith("-") or rest in {"-", "-]"}:
            return start, start
        self._at += 1
        end = self._item()
        if not isinstance(end, int) or end < start:
            raise _problem(f"the range that begins with {chr(start)!r} has no end")
        return start, end

    def _cased(self, found: Range) -> tuple[Range, ...]:
        start, end = found
        _require_character(start)
        if not self._groups[-1].ignores_case:
            return (found,)
        if end - start > _MOST_FOLDED:
            raise _problem(f"a range of more than {_MOST_FOLDED:,} characters cannot ignore their case")
        others = {form for code in range(start, end + 1) for form in forms(code)}
        return (found, *((form, form) for form in sorted(others) if not start <= form <= end))


def _require_character(code: int) -> None:
    if _SURROGATES[0] <= code <= _SURROGATES[1]:
        raise _problem("it holds half a character")


def _without_line_feed(ranges: list[Range]) -> tuple[Range, ...]:
    split = [part for start, end in ranges for part in _split(start, end)]
    return tuple(part for part in split if part[0] <= part[1])


def _split(start: int, end: int) -> tuple[Range, ...]:
    return ((start, _LINE_FEED - 1), (_LINE_FEED + 1, end)) if start <= _LINE_FEED <= end else ((start, end),)


def _spelled(code: int) -> str:
    char = chr(code)
    if code < _SPACE or code == _DELETE:
        return f"\\x{code:02x}"
    return f"\\{char}" if char in _META else char


def _in_brackets(ranges: tuple[Range, ...]) -> str:
    return "".join(_spelled(start) if start == end else f"{_spelled(start)}-{_spelled(end)}" for start, end in ranges)


def _for_ripgrep(token: _Token) -> str:
    match token:
        case str():
            return token
        case _Boundary(negated=negated):
            return "\\B" if negated else "\\b"
        case _Set(ranges=ranges, classes=classes, negated=negated):
            named = "".join(f"\\{letter}" for letter in classes)
            return f"[{'^' if negated else ''}{_in_brackets(ranges)}{named}]"
        case _:
            assert_never(token)


def _for_python(token: _Token) -> str:
    match token:
        case str():
            return token
        case _Boundary(negated=negated):
            word = f"[{_in_brackets(word_characters())}]"
            here, there = ("=", "!") if negated else ("!", "=")
            return f"(?:(?<={word})(?{here}{word})|(?<!{word})(?{there}{word}))"
        case _Set(ranges=ranges, classes=classes, negated=negated):
            named = "".join(map(_class_for_python, classes))
            return f"[{'^' if negated else ''}{_in_brackets(ranges)}{named}]"
        case _:
            assert_never(token)


def _class_for_python(letter: str) -> str:
    match letter:
        case "d" | "D":
            return f"\\{letter}"
        case "s":
            return _in_brackets(white_space())
        case "S":
            return _in_brackets(complement(white_space()))
        case "w":
            return _in_brackets(word_characters())
        case _:
            return _in_brackets(complement(word_characters()))
