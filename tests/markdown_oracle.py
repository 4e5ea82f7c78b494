"""What markdown-it makes of a text's block structure, and what our parser makes of it, in one form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from markdown_it import MarkdownIt
from markdown_it.token import Token

from jp.render.block_parser import BlockParser
from jp.render.blocks import (
    Blank,
    BlockEvent,
    CodeEnd,
    CodeLine,
    CodeStart,
    EnterItem,
    EnterQuote,
    Heading,
    Leave,
    ParagraphEnd,
    Rule,
    TableEnd,
    TableRow,
    TableStart,
    Text,
    Verbatim,
)

_PARSER = MarkdownIt("commonmark").enable("table")
_MARKS = {
    "blockquote_open": "quote",
    "blockquote_close": "leave",
    "list_item_close": "leave",
    "hr": "rule",
    "table_open": "table",
}
_WITH_TEXT = {"paragraph_open": "paragraph", "th_open": "cell", "td_open": "cell"}


def structure_by_oracle(text: str) -> list[tuple[str, str]]:
    """The blocks of `text`: kind and content. Items have their number; verbatim blocks that touch are one."""
    found: list[tuple[str, str]] = []
    numbers: list[int | None] = []
    tokens = _PARSER.parse(text)
    for token, following in zip(tokens, [*tokens[1:], tokens[-1]] if tokens else [], strict=True):
        if token.type == "ordered_list_open":
            numbers.append(int(token.attrs.get("start", 1)))
        elif token.type == "bullet_list_open":
            numbers.append(None)
        elif token.type in {"ordered_list_close", "bullet_list_close"}:
            numbers.pop()
        elif token.type == "list_item_open":
            number = numbers[-1]
            found.append(("item", "" if number is None else str(number)))
            numbers[-1] = None if number is None else number + 1
        else:
            found += _blocks(token, following)
    return _joined(found)


def _joined(blocks: list[tuple[str, str]]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for number, (kind, content) in enumerate(blocks):
        if kind == "touching":
            continue
        if number and blocks[number - 1][0] == "touching":
            found[-1] = (kind, found[-1][1] + content)
        else:
            found.append((kind, content))
    return [(kind, content.rstrip("\n") if kind == "verbatim" else content) for kind, content in found]


def _blocks(token: Token, following: Token) -> Iterator[tuple[str, str]]:
    if token.type in _MARKS:
        yield _MARKS[token.type], ""
    elif token.type in _WITH_TEXT:
        yield _WITH_TEXT[token.type], _trimmed(following.content)
    elif token.type == "heading_open":
        yield f"heading {token.tag[1:]}", _trimmed(following.content)
    elif token.type in {"fence", "code_block"}:
        yield "code", token.content
    elif token.type == "html_block":
        yield "verbatim", token.content
        if following.type == "html_block" and token.map and following.map and token.map[1] == following.map[0]:
            yield "touching", ""


def structure(text: str) -> list[tuple[str, str]]:
    """The same by our parser."""
    parser = BlockParser()
    events = [event for line in text.splitlines() for event in parser.line(line)]
    reader = _Reader()
    for event in [*events, *parser.finish()]:
        reader.read(event)
    return [(kind, content.rstrip("\n") if kind == "verbatim" else content) for kind, content in reader.found]


class _Reader:
    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._text = ""
        self._columns = 0
        self._last: BlockEvent | None = None

    def read(self, event: BlockEvent) -> None:
        match event:
            case EnterQuote() | EnterItem() | Leave() | Rule() | Blank():
                self._read_mark(event)
            case Heading(level=level, text=text):
                self.found.append((f"heading {level}", _trimmed(text)))
            case Text(text=text):
                self._text += text
            case ParagraphEnd():
                self.found.append(("paragraph", _trimmed(self._text)))
                self._text = ""
            case CodeStart() | CodeLine() | CodeEnd() | Verbatim():
                self._read_lines(event)
            case TableStart() | TableRow() | TableEnd():
                self._read_table(event)
            case _:
                assert_never(event)
        self._last = event

    def _read_mark(self, event: EnterQuote | EnterItem | Leave | Rule | Blank) -> None:
        match event:
            case EnterQuote():
                self.found.append(("quote", ""))
            case EnterItem(number=number):
                self.found.append(("item", "" if number is None else str(number)))
            case Leave():
                self.found.append(("leave", ""))
            case Rule():
                self.found.append(("rule", ""))
            case Blank():
                pass
            case _:
                assert_never(event)

    def _read_lines(self, event: CodeStart | CodeLine | CodeEnd | Verbatim) -> None:
        match event:
            case CodeStart():
                self.found.append(("code", ""))
            case CodeLine(text=text):
                self.found[-1] = ("code", f"{self.found[-1][1]}{text}\n")
            case CodeEnd():
                pass
            case Verbatim(text=text) if isinstance(self._last, Verbatim):
                self.found[-1] = ("verbatim", f"{self.found[-1][1]}\n{text}")
            case Verbatim(text=text):
                self.found.append(("verbatim", text))
            case _:
                assert_never(event)

    def _read_table(self, event: TableStart | TableRow | TableEnd) -> None:
        if isinstance(event, TableStart):
            self._columns = len(event.head)
            self.found.append(("table", ""))
            self.found += [("cell", cell) for cell in event.head]
        elif isinstance(event, TableRow):
            cells = (*event.cells, *[""] * self._columns)[: self._columns]
            self.found += [("cell", cell) for cell in cells]


def _trimmed(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().split("\n"))
