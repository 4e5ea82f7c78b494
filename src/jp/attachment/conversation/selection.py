"""`jp` URIs: which conversation, which of its turns, and what of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal
from urllib.parse import unquote

import msgspec

from jp.attachment.base import AttachmentError

Content = Literal["assistant", "user", "reasoning", "tools"]

CONTENTS: tuple[Content, ...] = ("assistant", "user", "reasoning", "tools")
"""Everything that can be selected of a turn, in the canonical order."""

_BY_NAME: dict[str, tuple[Content, ...]] = {
    **{name: (name,) for name in CONTENTS},
    **{name[0]: (name,) for name in CONTENTS},
    "*": CONTENTS,
    "all": CONTENTS,
}

Raw = Literal["no", "entries", "all"]
"""Whether entries are wanted as they are stored, and with `all` metadata and base configuration before them."""

_URI = re.compile(r"jp:(?://)?(?:jp-c)?(?P<digits>[0-9]{1,18})/?(?:\?(?P<query>.*))?", re.IGNORECASE | re.DOTALL)
_BOUND = r"(-?[0-9]{1,9})"
_SINGLE = re.compile(_BOUND)
_RANGE = re.compile(rf"{_BOUND}?\.\.{_BOUND}?")
_IS_RANGE = re.compile(r"[0-9.-]+")

FORMS = "Write 'jp:ID', or 'jp:ID?select=CONTENT:TURNS', such as 'jp:jp-c17800836875?select=user,assistant:0..3'."
_CONTENT_FORMS = "CONTENT is a list of 'user', 'assistant', 'reasoning' and 'tools', or '*' for all of them."
_TURN_FORMS = "TURNS is N, A..B, A.., ..B or '..', counted from 0; '-N' stands for the last N turns."


class TurnRange(msgspec.Struct, frozen=True):
    """Turns by their numbers, 0-based, inclusive. A negative bound counts the turns that stand, from the end."""

    start: int
    end: int

    @property
    def text(self) -> str:
        """The one way to write it."""
        if self.end == -1 and self.start < 0:
            return str(self.start)
        if self.start == self.end:
            return str(self.start) if self.start >= 0 else f"{self.start}..{self.end}"
        return f"{self.start or ''}..{'' if self.end == -1 else self.end}"

    def of(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Those of `numbers`, the turns that stand in their order, that lie in the range."""
        if not numbers:
            return ()
        start = self.start if self.start >= 0 else numbers[max(self.start, -len(numbers))]
        end = self.end
        if end < 0:
            end = numbers[end] if -end <= len(numbers) else -1
        return tuple(number for number in numbers if start <= number <= end)


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A `jp` URI taken apart. `digits` are those of an id, or its beginning; `contents` has the canonical order."""

    digits: str
    contents: tuple[Content, ...] = ("assistant",)
    turns: TurnRange = TurnRange(-1, -1)
    raw: Raw = "no"

    @property
    def text(self) -> str:
        """Contents and turns as a selector."""
        names = "*" if self.contents == CONTENTS else ",".join(name[0] for name in self.contents)
        return f"{names}:{self.turns.text}"

    @property
    def uri(self) -> str:
        """The canonical URI; what is the default is left out."""
        default = Selection(digits=self.digits).text
        select = [] if self.text == default else [f"select={self.text}"]
        raw = {"no": [], "entries": ["raw"], "all": ["raw=all"]}[self.raw]
        query = "&".join([*select, *raw])
        return f"jp:jp-c{self.digits}" + (f"?{query}" if query else "")


def parse_selection(uri: str) -> Selection:
    """Take `uri` apart: `jp:jp-c17800836875?select=u,a:0..3&raw`, also with `//` after the scheme.

    The selector is the original's, but that turns count from 0 as everywhere in jp.

    Raises:
        AttachmentError: it is malformed.
    """
    match = _URI.fullmatch(uri)
    if match is None:
        raise AttachmentError(f"{uri!r} names no conversation", hint=FORMS)
    selection = Selection(digits=match["digits"])
    seen: set[str] = set()
    for parameter in (match["query"] or "").split("&"):
        if not parameter:
            continue
        name, equals, value = parameter.partition("=")
        if name in seen:
            raise AttachmentError(f"{uri!r} has {name!r} twice", hint=FORMS)
        seen.add(name)
        selection = _with(selection, uri, name, unquote(value) if equals else None)
    return selection


def _with(selection: Selection, uri: str, name: str, value: str | None) -> Selection:
    if name == "select" and value is not None:
        contents, turns = _selector(value, uri)
        return msgspec.structs.replace(selection, contents=contents, turns=turns)
    if name == "raw" and (value or "") in {"", "all"}:
        return msgspec.structs.replace(selection, raw="all" if value else "entries")
    written = name if value is None else f"{name}={value}"
    hint = "'select=CONTENT:TURNS', 'raw' and 'raw=all' are understood."
    raise AttachmentError(f"{uri!r} has {written!r}, which is not understood", hint=hint)


def _selector(text: str, uri: str) -> tuple[tuple[Content, ...], TurnRange]:
    default = Selection(digits="")
    content, colon, turns = text.partition(":")
    if colon:
        return _contents(content, uri), _turns(turns, uri)
    if _IS_RANGE.fullmatch(text):
        return default.contents, _turns(text, uri)
    return _contents(text, uri), default.turns


def _contents(text: str, uri: str) -> tuple[Content, ...]:
    wanted: set[Content] = set()
    for name in text.split(","):
        found = _BY_NAME.get(name.strip().lower())
        if found is None:
            raise AttachmentError(f"{uri!r} selects {name!r}, which no turn has", hint=_CONTENT_FORMS)
        wanted.update(found)
    return tuple(content for content in CONTENTS if content in wanted)


def _turns(text: str, uri: str) -> TurnRange:
    written = text.strip()
    if (single := _SINGLE.fullmatch(written)) is not None:
        number = int(single[1])
        return TurnRange(number, number if number >= 0 else -1)
    if (match := _RANGE.fullmatch(written)) is None:
        raise AttachmentError(f"{uri!r} has {text!r} for its turns", hint=_TURN_FORMS)
    start, end = int(match[1] or 0), int(match[2] or -1)
    if start > end and (start < 0) == (end < 0):
        raise AttachmentError(f"{uri!r} has a range that ends before it begins: {text!r}", hint=_TURN_FORMS)
    return TurnRange(start, end)
