"""Blocks of Markdown and the text within them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, cast

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, blockquote, list_block
from markdown_it.token import Token
from rich.console import Console
from rich.style import Style
from rich.text import Text

from jp.render.sanitize import addresses, sanitize
from jp.render.theme import Look

if TYPE_CHECKING:
    from markdown_it.rules_inline import StateInline


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
        self._has_links = look.links
        self._parser = MarkdownIt("commonmark").enable("strikethrough")
        self._parser.normalizeLink = _keep_link
        self._parser.normalizeLinkText = _keep_link_text
        ruler = self._parser.inline.ruler
        ruler.before("escape", "formula", _parse_formula)
        ruler.after("text", "address", _parse_address)

    def parse(self, source: str, style: str = "") -> Text:
        """Return the text of `source`, in `style`; a hard break is a line feed.

        `source` has been sanitized; the characters of its entities are sanitized here.
        """
        text = Text()
        for segment in split(source, self):
            self._append(text, self._tokens(segment), style)
        for start, end in addresses(text.plain) if self._has_links else ():
            text.stylize(Style(link=text.plain[start:end]), start, end)
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
