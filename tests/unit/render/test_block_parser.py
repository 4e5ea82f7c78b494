from __future__ import annotations

from collections.abc import Sequence

import pytest

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

LONG = "word " * 20


def joined(events: Sequence[BlockEvent]) -> list[BlockEvent]:
    """`events` with the segments of a paragraph as one."""
    found: list[BlockEvent] = []
    for event in events:
        last = found[-1] if found else None
        if isinstance(event, Text) and isinstance(last, Text):
            found[-1] = Text(last.text + event.text)
        else:
            found.append(event)
    return found


def parse(*lines: str) -> list[BlockEvent]:
    parser = BlockParser()
    events = [event for line in lines for event in parser.line(line)]
    return joined([*events, *parser.finish()])


def paragraph(text: str) -> list[BlockEvent]:
    return [Text(text), ParagraphEnd()]


def item(*inside: BlockEvent, kind: str = "-", number: int | None = None) -> list[BlockEvent]:
    return [EnterItem(kind, number), *inside, Leave()]


def quote(*inside: BlockEvent) -> list[BlockEvent]:
    return [EnterQuote(), *inside, Leave()]


@pytest.mark.parametrize(
    ("lines", "events"),
    [
        (["a", "b"], paragraph("a\nb")),
        (["a", "", "b"], [*paragraph("a"), Blank(), *paragraph("b")]),
        (["a", "    b"], paragraph("a\nb")),
        (["# a", "b"], [Heading(1, "a"), *paragraph("b")]),
        (["a", "# b"], [*paragraph("a"), Heading(1, "b")]),
        (["a", "==="], [Heading(1, "a")]),
        (["a", "b", "---"], [Heading(2, "a\nb")]),
        (["---"], [Rule()]),
        (["a", "***"], [*paragraph("a"), Rule()]),
        (["```py", "a", "", "```"], [CodeStart("```", "py"), CodeLine("a"), CodeLine(""), CodeEnd("```")]),
        (["  ```", "   a", "b", "  ```"], [CodeStart("```", ""), CodeLine(" a"), CodeLine("b"), CodeEnd("```")]),
        (["```", "a"], [CodeStart("```", ""), CodeLine("a"), CodeEnd("```")]),
        (
            ["    a", "", "      b", "", "c"],
            [CodeStart("", ""), CodeLine("a"), CodeLine(""), CodeLine("  b"), CodeEnd(""), Blank(), *paragraph("c")],
        ),
        (["<div>", "a", "", "b"], [Verbatim("<div>"), Verbatim("a"), Blank(), *paragraph("b")]),
        (["<!-- a", "", "b -->", "c"], [Verbatim("<!-- a"), Verbatim(""), Verbatim("b -->"), *paragraph("c")]),
        (["<!-- a -->", "b"], [Verbatim("<!-- a -->"), *paragraph("b")]),
        (["a", "$$", "x_1", "$$", "b"], [*paragraph("a"), *map(Verbatim, ["$$", "x_1", "$$"]), *paragraph("b")]),
        (["$$ x $$", "b"], [Verbatim("$$ x $$"), *paragraph("b")]),
        (["\\[", "x", "", "b"], [Verbatim("\\["), Verbatim("x"), Blank(), *paragraph("b")]),
        (["[1]: a", "[2]: b"], [Verbatim("[1]: a"), Verbatim("[2]: b")]),
        (["> a", "b", "", "c"], [*quote(*paragraph("a\nb")), Blank(), *paragraph("c")]),
        (["> a", ">", "> b"], quote(*paragraph("a"), Blank(), *paragraph("b"))),
        (["> > a", "> b"], quote(*quote(*paragraph("a\nb")))),
        (["> # a", "b"], [*quote(Heading(1, "a")), *paragraph("b")]),
        (["- a", "- b"], [*item(*paragraph("a")), *item(*paragraph("b"))]),
        (["- a", "", "  b"], item(*paragraph("a"), Blank(), *paragraph("b"))),
        (["- a", "  - b", "- c"], [*item(*paragraph("a"), *item(*paragraph("b"))), *item(*paragraph("c"))]),
        (["- a", "b"], item(*paragraph("a\nb"))),
        (["-", "  a"], item(*paragraph("a"))),
        (["-", "", "  a"], [*item(), Blank(), *paragraph("a")]),
        (["- ```", "  a", "  ```"], item(CodeStart("```", ""), CodeLine("a"), CodeEnd("```"))),
        (["-     a"], item(CodeStart("", ""), CodeLine("a"), CodeEnd(""))),
        (["3. a", "9. b"], [*item(*paragraph("a"), kind=".", number=3), *item(*paragraph("b"), kind=".", number=4)]),
        (["1. a", "1) b"], [*item(*paragraph("a"), kind=".", number=1), *item(*paragraph("b"), kind=")", number=1)]),
        (["a", "2. b"], paragraph("a\n2. b")),
        (["a", "1. b"], [*paragraph("a"), *item(*paragraph("b"), kind=".", number=1)]),
        (["a", "-", "b"], [Heading(2, "a"), *paragraph("b")]),
        (["- - -"], [Rule()]),
        (["| a | b |", "|---|--:|", "| c |", "", "d"], [
            TableStart(("a", "b"), (None, "right")), TableRow(("c",)), TableEnd(), Blank(), *paragraph("d"),
        ]),
        (["x", "a | b", "--|--"], [*paragraph("x"), TableStart(("a", "b"), (None, None)), TableEnd()]),
        (["a | b", "c | d"], paragraph("a | b\nc | d")),
        (["a | b", "---"], [Heading(2, "a | b")]),
        (["| a |", "|---|", "# b"], [TableStart(("a",), (None,)), TableEnd(), Heading(1, "b")]),
        (["x" * 100 + " | b", "--|--"], [*paragraph("x" * 100 + " | b\n--|--")]),
        ([], []),
    ],
)  # fmt: skip
def test_blocks(lines: Sequence[str], events: Sequence[BlockEvent]) -> None:
    assert parse(*lines) == events


def test_an_underline_comes_too_late_for_a_paragraph_that_was_given_out() -> None:
    long = LONG + "end"

    assert parse(long, "---")[-2:] == [ParagraphEnd(), Rule()]
    assert parse(long, "===") == paragraph(f"{long}\n===")
    assert [event for event in parse("a", long + " | b", "---") if isinstance(event, (Heading, Rule))] == [Rule()]


def test_what_nests_too_deep_is_text() -> None:
    events = parse("> " * 100 + "a")

    assert events.count(EnterQuote()) == 24
    assert Text("> " * 76 + "a") in events


@pytest.mark.parametrize("beginning", [LONG, f"> - 1. {LONG}", f"**{LONG}", f"  {LONG}"])
def test_running_text_is_read_before_its_line_ends(beginning: str) -> None:
    parser = BlockParser()

    begun = parser.begin(beginning)

    assert begun is not None
    assert joined([*begun, *parser.more("the end"), *parser.finish()]) == parse(f"{beginning}the end")


@pytest.mark.parametrize(
    "beginning", [f"# {LONG}", f"| {LONG}", f"```{LONG}", "-" * 100, f"    {LONG}", "short", f"<{LONG}", "> - "]
)
def test_what_may_be_something_else_waits_for_its_end(beginning: str) -> None:
    assert BlockParser().begin(beginning) is None


def test_a_line_of_code_waits_for_its_end() -> None:
    parser = BlockParser()
    parser.line("```")

    assert parser.begin(LONG) is None


def test_an_open_paragraph_can_be_given_out_and_goes_on() -> None:
    parser = BlockParser()

    assert parser.begin("Some text", is_certain=False) == []
    assert parser.settle() == [Text("Some text")]
    assert parser.settle() == []
    assert parser.more(", and more") == []
    assert parser.finish() == [Text(", and more"), ParagraphEnd()]
    assert parser.settle() == []
    assert parser.more("nothing is open") == []
