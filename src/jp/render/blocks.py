"""Block structure of Markdown for incremental reading: markdown-it's block tokens as a flat list of leaves.

A reader keeps only the source that is not shown yet. Synthetic lines in front of it open the containers and the leaf
that are still open, so that markdown-it continues them: `> - # x` for an item in a quote, `>   ~~~` for code in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, cast

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, blockquote, list_block
from markdown_it.token import Token

Alignment = Literal["left", "center", "right"]
Kind = Literal["paragraph", "heading", "fence", "code_block", "html_block", "math_block", "table", "hr", "empty"]

_MOST_LEVELS = 24
"""Containers nested deeper (an item counts twice) are text: nobody can read them, and each costs every line."""

_KINDS: dict[str, Kind] = {
    "paragraph_open": "paragraph",
    "heading_open": "heading",
    "table_open": "table",
    "fence": "fence",
    "code_block": "code_block",
    "html_block": "html_block",
    "math_block": "math_block",
    "hr": "hr",
}
_MATH = (
    (re.compile(r"\$\$"), re.compile(r"\$\$[ \t]*\Z")),
    (re.compile(r"\\\["), re.compile(r"\\\][ \t]*\Z")),
    (re.compile(r"\\begin\{"), re.compile(r"\\end\{[^}]*\}[ \t]*\Z")),
)
_INTERRUPTED = ["paragraph", "reference", "blockquote", "list"]
_CODE_INDENT = 4
_QUOTE = re.compile(" {0,3}> ?")
_ITEM = re.compile(r" {0,3}(?:[-+*]|\d{1,9}[.)])(?: {1,4}(?=[^ ])| |\Z)", re.ASCII)
_LEADING_TABS = re.compile(r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*", re.ASCII)
_PIPE = re.compile(r"(?<!\\)\|")


class Container:
    """A block quote, or a list item with the `marker` it is shown with.

    `source` opens it in Markdown, exactly as wide as it was written.
    """

    def __init__(self, source: str, *, marker: str = "", number: int | None = None) -> None:
        self.source = source
        self.marker = marker
        self.number = number
        self.is_item = source != "> "

    @property
    def indent(self) -> str:
        """The source that continues it."""
        return " " * len(self.source) if self.is_item else self.source


class Leaf:
    """A block without blocks in it, at the lines from `start` to before `end`. `empty` is a container without any."""

    def __init__(self, kind: Kind, path: Sequence[Container], token: Token, lines: Sequence[int]) -> None:
        self.kind: Kind = kind
        self.path = tuple(path)
        self.start, self.end = lines
        self.info = token.info
        self.markup = token.markup
        self.content = token.content
        self.level = int(token.tag[1:]) if kind == "heading" else 0
        self.opening = ""
        self.is_closed = bool(token.meta.get("closed"))
        self.rows: list[list[str]] = []
        self.alignments: list[Alignment] = []

    def context(self) -> list[str]:
        """Return the lines that open it again, without its containers."""
        if self.kind == "table":
            return ["|x" * len(self.alignments) + "|", "|-" * len(self.alignments) + "|"]
        return [self.opening or ("    x" if self.kind == "code_block" else "x")]

    @property
    def lines(self) -> list[str]:
        """The lines of code or verbatim text."""
        return self.content.removesuffix("\n").split("\n") if self.content else []


class BlockParser:
    """Splits lines into leaves."""

    def __init__(self) -> None:
        self._parser = _new_parser("reference")
        self._without_underlines = _new_parser("reference", "lheading")

    def parse(self, lines: Sequence[str], context: Sequence[Container] = (), *, underlines: bool = True) -> list[Leaf]:
        """Return the leaves of `lines`, which begin with those that open the containers in `context`.

        Without `underlines`, a line below a paragraph does not make it a heading.
        """
        tokens: list[Token] = []
        parser = self._parser if underlines else self._without_underlines
        parser.block.parse("\n".join([*lines, ""]), parser, {}, tokens)
        opening = len(opening_lines(context))
        return _Flattener(lines, context, opening).flatten(tokens)[opening:]


class _Flattener:
    def __init__(self, lines: Sequence[str], context: Sequence[Container], opening: int) -> None:
        self._source = lines
        self._opening = opening
        self._context = context
        self._path: list[Container] = []
        self._opened: list[tuple[int, Token]] = []  # how many leaves there were when each container opened
        self._lists: list[int | None] = []  # the number of the last item of each open list
        self._leaves: list[Leaf] = []

    def flatten(self, tokens: Sequence[Token]) -> list[Leaf]:
        """Return the leaves of a whole source."""
        for token in tokens:
            kind = token.type
            if kind in {"blockquote_open", "list_item_open"}:
                self._enter(token)
            elif kind in {"blockquote_close", "list_item_close"}:
                self._leave()
            elif kind in {"bullet_list_open", "ordered_list_open"}:
                self._lists.append(None)
            elif kind in {"bullet_list_close", "ordered_list_close"}:
                self._lists.pop()
            elif kind in _KINDS:
                self._add_leaf(_KINDS[kind], token)
            else:
                self._fill_leaf(token)
        return self._leaves

    def _fill_leaf(self, token: Token) -> None:
        if token.type == "tr_open":
            self._leaves[-1].rows.append([])
        elif token.type == "th_open":
            style = str(token.attrGet("style") or "")
            self._leaves[-1].alignments.append(cast("Alignment", style.rpartition(":")[2] or "left"))
        elif token.type == "inline":
            self._add_text(token)

    def _enter(self, token: Token) -> None:
        depth = len(self._path)
        self._opened.append((len(self._leaves), token))
        if len(self._leaves) < self._opening and depth < len(self._context):
            container = self._context[depth]
        elif token.type == "blockquote_open":
            container = Container("> ")
        else:
            last = self._lists[-1]
            number = None if not token.info else int(token.info) if last is None else last + 1
            marker = "" if number is None else f"{number}{token.markup}"
            container = Container(self._item_source((token.map or [0])[0]), marker=marker, number=number)
        if container.is_item:
            self._lists[-1] = container.number
        self._path.append(container)

    def _leave(self) -> None:
        count, token = self._opened.pop()
        if count == len(self._leaves):
            start = (token.map or [0])[0]
            self._leaves.append(Leaf("empty", self._path, token, (start, start + 1)))
        self._path.pop()

    def _item_source(self, number: int) -> str:
        """Return the marker of the item that begins in this line, with the blanks around it."""
        found = _ITEM.match(self._inside(number))
        source = found[0] if found else "- "
        return source if source.endswith(" ") else f"{source} "

    def _inside(self, number: int) -> str:
        """Return the rest of a line, without what belongs to the containers."""
        line, position = self._source[number], 0
        for container in self._path:
            quote = None if container.is_item else _QUOTE.match(line, position)
            position = quote.end() if quote else position + len(container.source)
        return line[position:]

    def _add_leaf(self, kind: Kind, token: Token) -> None:
        leaf = Leaf(kind, self._path, token, token.map or (0, 0))
        if kind in {"fence", "html_block", "math_block"}:
            leaf.opening = self._inside(leaf.start)
        if kind == "fence":
            leaf.is_closed = leaf.end - leaf.start - 1 > leaf.content.count("\n")
        self._leaves.append(leaf)

    def _add_text(self, token: Token) -> None:
        leaf = self._leaves[-1]
        if leaf.kind != "table":
            leaf.content = token.content
            return
        row, columns = leaf.rows[-1], len(leaf.alignments)
        row.append(token.content)
        if len(leaf.rows) > 1 and len(row) == columns:
            line = self._source[leaf.start + len(leaf.rows)]
            cells = [cell.strip() for cell in _PIPE.split(line.strip().removesuffix("|"))]
            surplus = len(cells) - columns - (1 if "|" in line[: len(line) - len(line.lstrip(" >|"))] else 0)
            if surplus > 0:  # markdown-it drops the cells that the head has no column for
                row[-1] = " | ".join(cells[-surplus - 1 :])


def _new_parser(*disabled: str) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": 2 * _MOST_LEVELS}).enable("table").disable(disabled)
    ruler = parser.block.ruler
    ruler.at("blockquote", _bounded(blockquote), {"alt": _INTERRUPTED})
    ruler.at("list", _bounded(list_block), {"alt": _INTERRUPTED[:-1]})
    ruler.before("fence", "math", _parse_math, {"alt": _INTERRUPTED})
    return parser


def opening_lines(path: Sequence[Container]) -> list[str]:
    """Return Markdown that opens containers: headings, which need no blank line after them.

    An indented marker has a line of its own, or its indent would be taken for that of the marker before it.
    """
    lines: list[str] = []
    indent = ""
    for container in path:
        if lines and not container.source.startswith(" "):
            lines[-1] += container.source
        else:
            lines.append(indent + container.source)
        indent += container.indent
    return [f"{line}# x" for line in lines]


def expand_marker_tabs(line: str) -> str:
    """Return a line whose tabs up to its text are spaces."""
    if "\t" not in line:
        return line
    leading = (_LEADING_TABS.match(line) or [""])[0]
    return leading.expandtabs(_CODE_INDENT) + line[len(leading) :]


Rule = Callable[[StateBlock, int, int, bool], bool]


def _bounded(rule: Rule) -> Rule:
    def apply(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - markdown-it's order
        return state.level < _MOST_LEVELS and rule(state, start, end, silent)

    return apply


def _parse_math(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - markdown-it's order
    """Parse displayed mathematics, which ends at its mark or at a blank line."""

    def line_at(number: int) -> str:
        return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]

    first = line_at(start)
    ending = next((close for opening, close in _MATH if opening.match(first)), None)
    if ending is None or state.is_code_block(start):
        return False
    if silent:
        return True
    stop = start + 1
    is_closed = ending.search(first, 2) is not None
    while not is_closed and stop < end and not state.isEmpty(stop) and state.sCount[stop] >= state.blkIndent:
        is_closed = ending.search(line_at(stop)) is not None
        stop += 1
    token = state.push("math_block", "", 0)
    token.content = state.getLines(start, stop, state.sCount[start], keepLastLF=False)
    token.map = [start, stop]
    token.meta = {"closed": is_closed}
    state.line = stop
    return True
