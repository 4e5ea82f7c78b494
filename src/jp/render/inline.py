"""Markdown's inline markup: source to styled runs.

markdown-it decides what is emphasis, code and link; two rules are ours. Mathematics and bare addresses stay as they
are, whatever stars and underscores they hold. Where there is no colour, the marks of what styles would show are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jp.render.cuts import FORMULA
from jp.render.sanitize import sanitize
from jp.render.theme import Look
from jp.render.wrap import Run

if TYPE_CHECKING:
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

HARD_BREAK = "\n"
"""The text of a run that ends the line."""

_MARKUP = re.compile(r"[\\`*_~\[\]<&$\n]|!\[|://")
_LONGEST = 8192
"""Source beyond this is parsed in pieces: what is never closed costs more than its length."""

_SIMPLE = re.compile(
    r"(?<!`)`([^`\s](?:[^`\n]*[^`\s])?)`(?!`)"
    # Between a sign or a blank and a letter, a star can only open; the other way round, only close.
    r"|(?<![^\W_])(?<!\*)\*\*([^\W_](?:[^*`\n]*[^\W_])?)\*\*(?![^\W_]|\*)"
    r"|(?<![^\W_])(?<!\*)\*([^\W_](?:[^*`\n]*[^\W_])?)\*(?![^\W_]|\*)"
)

_FORMULAS = (
    re.compile(r"\\\(.{1,1000}?\\\)", re.DOTALL),
    re.compile(r"\\\[.{1,1000}?\\\]", re.DOTALL),
    FORMULA,
)
_ADDRESS = re.compile(r"://[^\s<>`*\[\]|]*[A-Za-z0-9/=&#%-]")
_SCHEME = re.compile(r"(?:\A|[^A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]*\Z")

_LONGEST_SCHEME = 32

_BOLD, _ITALIC, _STRUCK, _LINKED = "1", "3", "9", "4"
_CODE, _ADDRESS_STYLE = "36", "2"
_SIMPLE_STYLES = ("", _CODE, _BOLD, _ITALIC)
_OPENING = {"strong_open": _BOLD, "em_open": _ITALIC, "s_open": _STRUCK}
_CLOSING = {"strong_close": _BOLD, "em_close": _ITALIC, "s_close": _STRUCK}
_MARKS = {_BOLD: "**", _ITALIC: "*", _STRUCK: "~~"}


class Inline:
    """Reads inline markup, for one look."""

    def __init__(self, look: Look) -> None:
        from markdown_it import MarkdownIt

        self._colour = look.colour
        self._parser = MarkdownIt("commonmark").enable("strikethrough")
        self._parser.normalizeLink = _keep_url
        self._parser.normalizeLinkText = _keep_link_text
        ruler = self._parser.inline.ruler
        ruler.before("escape", "formula", _keep_formula)
        ruler.after("text", "address", _keep_address)

    def runs(self, source: str, style: str = "") -> list[Run]:
        """The runs of `source`, each in `style` and its own; a break that the source asks for is a `HARD_BREAK`.

        `source` has been sanitised; what its entities stand for is sanitised here.
        """
        if _MARKUP.search(source) is None:
            return [(source, style if self._colour else "")]
        simple = _simple_runs(source) if self._colour and not style else None
        return self._parse(source, style) if simple is None else simple

    def _parse(self, source: str, style: str) -> list[Run]:
        found: list[Run] = []
        for start in range(0, len(source), _LONGEST):
            tokens: list[Token] = []
            piece = source[start : start + _LONGEST]
            self._parser.inline.parse(piece, self._parser, {}, tokens)
            found += self._read(tokens, style)
        return found

    def _read(self, tokens: Iterable[Token], style: str) -> list[Run]:
        styles = [style] if style else []
        links: list[tuple[str, int]] = []
        found: list[Run] = []
        for token in tokens:
            kind = token.type
            if kind == "link_open":
                links.append((str(token.attrGet("href") or ""), len(found)))
                styles.append(_LINKED)
            elif kind == "link_close":
                styles.remove(_LINKED)
                found += self._target(found, *links.pop())
            elif mark := _OPENING.get(kind):
                styles.append(mark)
                found.append((self._mark(mark), ""))
            elif mark := _CLOSING.get(kind):
                styles.remove(mark)
                found.append((self._mark(mark), ""))
            else:
                found.append(self._leaf(token, styles))
        return [(text, drawn if self._colour else "") for text, drawn in found if text]

    def _leaf(self, token: Token, styles: list[str]) -> Run:
        match token.type:
            case "softbreak":
                return " ", ";".join(styles)
            case "hardbreak":
                return HARD_BREAK, ""
            case "code_inline":
                text = sanitize(token.content)
                return (text, ";".join([*styles, _CODE])) if self._colour else (f"`{text}`", "")
            case "image":
                label = sanitize(token.content)
                return f"[image: {label}] ({sanitize(str(token.attrGet('src') or ''))})", ";".join(styles)
            case _:
                return sanitize(token.content).replace("\n", " "), ";".join(styles)

    def _target(self, found: list[Run], address: str, start: int) -> list[Run]:
        """What is shown of a link besides its text: the address, where that is not the text."""
        address = sanitize(address)
        if "".join(text for text, _ in found[start:]) in {address, address.removeprefix("mailto:")}:
            return []
        return [(f" ({address})", _ADDRESS_STYLE)]

    def _mark(self, mark: str) -> str:
        return "" if self._colour else _MARKS[mark]


def _simple_runs(source: str) -> list[Run] | None:
    """The runs of a source that has nothing but code spans and plain emphasis; None for any other.

    Most running text is such, and this takes a fraction of what the parser takes.
    """
    found: list[Run] = []
    others: list[str] = []
    end = 0
    for match in _SIMPLE.finditer(source):
        kind = match.lastindex or 0
        before, text = source[end : match.start()], match[kind]
        others += (before, "" if kind == 1 else text)
        found += ((before, ""), (text, _SIMPLE_STYLES[kind]))
        end = match.end()
    others.append(source[end:])
    found.append((others[-1], ""))
    return None if _MARKUP.search(" ".join(others)) else [run for run in found if run[0]]


def _keep_url(url: str) -> str:
    """What is shown is what was written."""
    return url


def _keep_link_text(link: str) -> str:
    return link


def _keep_formula(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - markdown-it calls its rules so
    """Mathematics is text."""
    if state.src[state.pos] not in "\\$":
        return False
    for pattern in _FORMULAS:
        found = pattern.match(state.src, state.pos, state.posMax)
        if found is not None:
            return _keep(state, found[0], silent=silent)
    return False


def _keep_address(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - markdown-it calls its rules so
    """An address that stands in running text is text."""
    if state.src[state.pos] != ":" or _SCHEME.search(state.pending[-_LONGEST_SCHEME:]) is None:
        return False
    found = _ADDRESS.match(state.src, state.pos, state.posMax)
    return found is not None and _keep(state, found[0], silent=silent)


def _keep(state: StateInline, text: str, *, silent: bool) -> bool:
    if not silent:
        state.append_pending(text)
    state.pos += len(text)
    return True
