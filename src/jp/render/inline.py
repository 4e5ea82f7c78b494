"""Inline Markdown: source to styled text, and the places at which the source of a paragraph can be cut.

markdown-it decides what is emphasis, code and link; two rules are added: formulas and bare addresses stay as they are,
whatever stars and underscores they contain. Without color, the marks of emphasis and code are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from rich.console import Console
from rich.text import Text

from jp.render.sanitize import sanitize
from jp.render.theme import Look

if TYPE_CHECKING:
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

SEGMENT = 64
"""Least length of a segment of a paragraph."""

_BOUND = 1000
"""A segment of this length ends at the next word even where markup is open; at twice that, inside a word."""

_LONGEST_WORD = 4096
_BLANKS = re.compile(r"[ \t]+")
_MARKUP = re.compile(r"[\\`*_~\[\]<&$\n]|!\[|://")
_FORMULA = r"\$\$(?!\s)[^$\n]{1,500}\$\$|\$(?![\s$])[^$\n]{1,200}(?<=\S)\$(?!\d)"
_FORMULAS = re.compile(rf"\\\(.{{1,1000}}?\\\)|\\\[.{{1,1000}}?\\\]|{_FORMULA}", re.DOTALL)
"""Inline mathematics. A price is none: no dollar sign follows it, or one after a space, or one before a digit."""

_ADDRESS = re.compile(r"://[^\s<>`*\[\]|]*[A-Za-z0-9/=&#%-]")
_SCHEME = re.compile(r"(?:\A|[^A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]*\Z")
_LONGEST_SCHEME = 32

_WIDE = "[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60\U0001f300-\U0001faff\U00020000-\U0003fffd]"
_CUT = re.compile(rf"(?<=[^\s\\])(?=[ \n]\S)|(?<={_WIDE})(?={_WIDE})")
_OPEN = re.compile(
    r"`|\*(?=[^\s*])|~~(?=[^\s~])|(?<![\w_])_+(?=[^\s_])"
    r"|\[(?![^\[\]]*\])|\]\(|<[A-Za-z/!?][^<>]*\Z|\$(?![\s$])[^$\n]{0,200}\Z|\$\$(?!\s)[^$\n]{0,500}\Z"
)
"""Text that more source could turn into markup."""

_MARKS = {
    f"{name}_{end}": mark
    for name, mark in (("strong", ("bold", "**")), ("em", ("italic", "*")), ("s", ("strike", "~~")))
    for end in ("open", "close")
}
_CODE, _LINK, _TARGET = "cyan", "underline", "dim"


class InlineParser:
    """Parses inline markup, for one look."""

    def __init__(self, look: Look) -> None:
        self._has_color = look.color
        self._parser = MarkdownIt("commonmark").enable("strikethrough")
        self._parser.normalizeLink = _keep_link
        self._parser.normalizeLinkText = _keep_link_text
        ruler = self._parser.inline.ruler
        ruler.before("escape", "formula", _parse_formula)
        ruler.after("text", "address", _parse_address)

    def parse(self, source: str, style: str = "") -> Text:
        """Return the text of `source`, in `style`; a hard break is a line feed.

        `source` has been sanitized; what its entities stand for is sanitized here.
        """
        text = Text()
        for segment in split(source, self):
            self._append(text, self._tokens(segment), style)
        return text

    def is_closed(self, source: str) -> bool:
        """Return whether no more source can change what `source` means."""
        if _MARKUP.search(source) is None:
            return True
        tokens = self._tokens(source)
        if any(token.type == "text_special" and token.markup in {"\\(", "\\["} for token in tokens):
            return False
        return _OPEN.search("".join(token.content if token.type == "text" else "\0" for token in tokens)) is None

    def _tokens(self, source: str) -> list[Token]:
        tokens: list[Token] = []
        self._parser.inline.parse(source, self._parser, {}, tokens)
        return tokens

    def _append(self, text: Text, tokens: Iterable[Token], style: str) -> None:
        styles = [style] if style else []
        links: list[tuple[str, int]] = []
        for token in tokens:
            kind = token.type
            if kind == "link_open":
                links.append((sanitize(str(token.attrGet("href") or "")), len(text)))
                styles.append(_LINK)
            elif kind == "link_close":
                styles.remove(_LINK)
                address, start = links.pop()
                if text.plain[start:] not in {address, address.removeprefix("mailto:")}:
                    self._add(text, f" ({address})", _TARGET)
            elif kind in _MARKS:
                name, mark = _MARKS[kind]
                if kind.endswith("_open"):
                    styles.append(name)
                else:
                    styles.remove(name)
                self._add(text, "" if self._has_color else mark)
            else:
                self._add(text, self._leaf(token), *styles, *([_CODE] if kind == "code_inline" else []))

    def _add(self, text: Text, content: str, *styles: str) -> None:
        text.append(content, " ".join(styles) if self._has_color else None)

    def _leaf(self, token: Token) -> str:
        content = _BLANKS.sub(" ", sanitize(token.content).replace("\n", " "))
        match token.type:
            case "softbreak":
                return " "
            case "hardbreak":
                return "\n"
            case "code_inline":
                return content if self._has_color else f"`{content}`"
            case "image":
                return f"[image: {content}] ({sanitize(str(token.attrGet('src') or ''))})"
            case _:
                return content


class Segmenter:
    """Collects the source of one paragraph and releases it in segments, none of which ends inside markup.

    The segments depend on the source alone, not on the pieces in which it comes.
    """

    def __init__(self, inline: InlineParser) -> None:
        self._inline = inline
        self.held = ""
        self._wanted = self._searched = SEGMENT

    def feed(self, text: str) -> list[str]:
        """Add to the paragraph, and return the segments that are final."""
        self.held += text
        segments: list[str] = []
        while (cut := self._next_cut()) is not None:
            if cut < _BOUND and not self._inline.is_closed(self.held[:cut]):
                # The next attempt is half as far again, so that all of them together stay linear.
                self._wanted = self._searched = cut + max(1, cut // 2)
                continue
            segments.append(self.held[:cut])
            self.held = self.held[cut:]
            self._wanted = self._searched = SEGMENT
        return segments

    def rest(self) -> str:
        """Return what was not released."""
        rest, self.held = self.held, ""
        self._wanted = self._searched = SEGMENT
        return rest

    def _next_cut(self) -> int | None:
        found = _CUT.search(self.held, self._searched, 2 * _BOUND + 2)
        if found is not None and found.start() <= 2 * _BOUND:
            return found.start()
        if len(self.held) > 2 * _BOUND + 1:
            return 2 * _BOUND
        self._searched = max(self._wanted, len(self.held) - 1)
        return None


def split(source: str, inline: InlineParser) -> Iterator[str]:
    """Yield the segments of a whole source."""
    segmenter = Segmenter(inline)
    yield from segmenter.feed(source)
    yield segmenter.rest()


class Flow:
    """Wraps one paragraph with rich while it grows: every line but the last one is final."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._line = Text()

    @property
    def held(self) -> str:
        """The text of the line that is not final."""
        return self._line.plain

    def feed(self, text: Text, width: int) -> list[Text]:
        """Add text, and return the lines that are final."""
        if text.plain[:1] == " " and self._line.plain[-1:] in {"", "\n", " "}:
            text = text[1:]
        self._line.append_text(text)
        if len(self._line) <= width and self._line.plain.isascii() and "\n" not in self._line.plain:
            return []
        lines = wrap(self._line, width, self._console)
        self._line = lines.pop() if lines and len(lines[-1]) <= _LONGEST_WORD else Text()
        return lines

    def finish(self, width: int) -> list[Text]:
        """Return the lines that were not returned yet."""
        lines = wrap(self._line, width, self._console) if self._line else []
        self._line = Text()
        return lines


def wrap(text: Text, width: int, console: Console) -> list[Text]:
    """Return the lines of `text`. A long word stays whole, so that it can be copied, except in wide scripts."""
    if text.plain.isascii():
        lines = [
            line for part in text.split("\n", allow_blank=True) for line in part.divide(_breaks(part.plain, width))
        ]
    else:
        lines = list(text.wrap(console, max(width, 2), overflow="fold"))
    for line in lines:
        line.rstrip()
    return lines


def _breaks(line: str, width: int) -> list[int]:
    """Return where lines begin; rich would cut words that are too long, or wrap nothing."""
    starts = [0]
    while len(line) - starts[-1] > width:
        space = line.rfind(" ", starts[-1], starts[-1] + width + 1)
        if space < 0:
            space = line.find(" ", starts[-1] + width)
        if space < 0:
            break
        starts.append(space + 1)
    return starts[1:]


def _keep_link(url: str) -> str:
    """Return the address as it was written."""
    return url


def _keep_link_text(link: str) -> str:
    return link


def _parse_formula(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - markdown-it calls its rules so
    """Keep mathematics as it is."""
    if state.src[state.pos] not in "\\$":
        return False
    found = _FORMULAS.match(state.src, state.pos, state.posMax)
    return found is not None and _push(state, found[0], silent=silent)


def _parse_address(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - markdown-it calls its rules so
    """Keep an address in running text as it is."""
    if state.src[state.pos] != ":" or _SCHEME.search(state.pending[-_LONGEST_SCHEME:]) is None:
        return False
    found = _ADDRESS.match(state.src, state.pos, state.posMax)
    return found is not None and _push(state, found[0], silent=silent)


def _push(state: StateInline, text: str, *, silent: bool) -> bool:
    if not silent:
        state.push("text_special", "", 0).content = text
    state.pos += len(text)
    return True
