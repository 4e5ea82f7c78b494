from __future__ import annotations

import re
import sys
from pathlib import Path

import anyio
import pytest

from doubles import C, InlineStream
from jp.app.recalled import IndexedHistory, RecalledContents
from jp.config.entries import ToolConfig
from jp.conversation.entries import (
    ChatRequest,
    ChatResponse,
    Facts,
    Header,
    JsonObject,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import ImageBlock, Resource, TextBlock
from jp.errors import StorageError
from jp.tool.base import ToolInvocation, ToolOutput, text_of
from jp.tool.context_tools import Recall, SearchHistory
from jp.tool.delivery import BOUND
from jp.workspace import search_index

LOG = "".join(f"step {number} passed\n" for number in range(2_000)) + "zebra crossing\n" + "all is well\n" * 2_000
KEY = "sk-" + "a1B2c3D4" * 5
TOOL = SearchHistory(IndexedHistory())


STREAM = InlineStream(
    Header(id="h", format=1, created_at="2026-01-01T00:00:00Z", nonce="n0nce"),
    TurnStart(id="t0"),
    ChatRequest(
        id="q0", content="The deadline is Friday.", resources=(Resource(uri="file:///w/rules.md", text="no giraffes"),)
    ),
    ToolCallRequest(id="c0", call_id="x", name="run_command", arguments={"command": "pytest -q", "stdin": "w " * 200}),
    ToolCallResponse(
        id="r0",
        request="c0",
        content=(TextBlock(text=LOG), ImageBlock(mime_type="image/png", blob=b"x")),
        is_error=True,
        facts=Facts(exit_code=3),
    ),
    ToolCallRequest(id="c1", call_id="y", name="search_history", arguments={"query": "zebra crossing " * 20}),
    ToolCallResponse(id="r1", request="c1", content=(TextBlock(text="zebra crossing from a search"),)),
    ChatResponse(id="a0", message=f"Use {KEY} with the lemur."),
    TurnStart(id="t1"),
    ChatRequest(id="q1", content="Which zebra crossing was it?"),
)


def search(arguments: JsonObject, *, stream: InlineStream = STREAM, max_bytes: int | None = None) -> ToolOutput:
    invocation = ToolInvocation(
        arguments=arguments, root=Path(), settings=ToolConfig(max_bytes=max_bytes), stream=stream
    )
    return anyio.run(TOOL.run, invocation)


def found(query: str, **more: int) -> str:
    output = search({"query": query, **more})
    assert not output.is_error
    return text_of(output)


@pytest.mark.parametrize(
    ("query", "heading", "words"),
    [
        ("zebra crossing", "[turn 0; run_command pytest -q error exit code 3; recall ", "\nzebra crossing\n"),
        ("giraffes", "[turn 0; file:///w/rules.md; recall ", "no giraffes"),
        ("deadline", "[turn 0; user; recall ", "The deadline is Friday."),
        ("LEMUR", "[turn 0; assistant; recall ", "with the lemur."),
        ("what did the lemur say about unicorns", "[turn 0; assistant; recall ", "lemur"),
        ("giraff", "[turn 0; file:///w/rules.md; recall ", "no giraffes"),
    ],
)
def test_an_excerpt_says_where_it_stands(query: str, heading: str, words: str) -> None:
    text = found(query, limit=1)

    assert text.startswith(heading)
    assert words in text


def test_from_handle_and_offset_recall_reads_on() -> None:
    text = found("zebra", limit=1)
    place = re.search(r"recall ([0-9a-f]+) offset ([0-9]+) of ([0-9]+) bytes\]\n([^\n]+)", text)
    assert place is not None
    arguments: JsonObject = {"handle": place[1], "offset": int(place[2])}

    page = anyio.run(Recall(RecalledContents()).run, ToolInvocation(arguments=arguments, root=Path(), stream=STREAM))

    assert int(place[2]) > 0
    assert place[3] == str(len(LOG.encode()))
    assert text_of(page).startswith(f"{place[4]}\n")
    assert "zebra crossing\n" in text_of(page)


def test_a_message_is_recalled_by_the_handle_of_its_excerpt() -> None:
    handle = re.search(r"recall ([0-9a-f]+)", found("deadline"))
    assert handle is not None

    page = anyio.run(
        Recall(RecalledContents()).run,
        ToolInvocation(arguments={"handle": handle[1]}, root=Path(), stream=STREAM),
    )

    assert text_of(page).startswith("The deadline is Friday.\n")


def test_what_the_model_has_before_it_and_earlier_searches_are_not_found() -> None:
    text = found("zebra crossing", limit=20)

    assert "Which zebra" not in text
    assert "from a search" not in text


def test_secrets_are_redacted() -> None:
    text = found("lemur")

    assert KEY not in text
    assert "[redacted:" in text


@pytest.mark.parametrize("max_bytes", [None, 2_000, 700])
def test_excerpts_fit_into_the_bound_and_have_the_word_in_them(max_bytes: int | None) -> None:
    text = text_of(search({"query": "zebra passed well", "limit": 20}, max_bytes=max_bytes))

    assert len(text.encode()) <= (max_bytes or BOUND)
    assert len(re.findall(r"; recall [0-9a-f]{8} offset", text)) >= 1
    assert "zebra" in text


def test_what_cannot_be_searched_for_is_said() -> None:
    nothing = search({"query": "unicorn"})

    assert text_of(nothing).startswith("Nothing in this conversation has any of these words.")
    assert not nothing.is_error
    assert text_of(search({"query": '"-- (*) ^'})).startswith("The query has no word")
    assert text_of(search({"query": "zebra", "limit": 0})) == "limit is 0, but can be 1 to 20."
    assert search({"query": "zebra", "limit": 21}).is_error


def test_without_fts5_the_words_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(path: object, *rest: object, **more: object) -> None:
        raise search_index.NoFullTextSearchError("none")

    monkeypatch.setattr(search_index, "search_index", none)

    assert "zebra crossing\n" in found("the zebra crossing", limit=1)


def test_without_sqlite_the_words_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jp.workspace.search_index", None)

    assert "zebra crossing\n" in found("the zebra crossing", limit=1)


class Damaged(InlineStream):
    """A log whose blobs are missing."""

    def load(self, carrier: C, /) -> C:
        del carrier
        raise StorageError("a blob is missing")


def test_content_that_cannot_be_read_is_not_searched_and_messages_are() -> None:
    output = search({"query": "zebra lemur giraffes"}, stream=Damaged(*STREAM.entries))

    assert "with the lemur" in text_of(output)
    assert "no giraffes" not in text_of(output)


def test_long_arguments_structured_answers_and_results_without_a_call_are_searched() -> None:
    stream = InlineStream(
        TurnStart(id="t"),
        ChatResponse(id="a", data={"animal": "ibex"}, text='{"animal": "ibex"}'),
        ChatResponse(id="b", reasoning="thought"),
        ToolCallRequest(id="c", call_id="x", name="write", arguments={"path": "a.md", "content": "an ibex " * 100}),
        ToolCallResponse(id="r", request="lost", content=(TextBlock(text="ibex alone"),)),
    )

    text = text_of(search({"query": "ibex"}, stream=stream))

    assert "[turn 0; assistant; recall" in text
    assert "[turn 0; write a.md; recall" in text
    assert "ibex alone" in text


def test_what_a_call_gave_twice_is_found_once() -> None:
    calls = [ToolCallRequest(id=f"c{n}", call_id="x", name="run", arguments={"command": "ls"}) for n in range(2)]
    results = [ToolCallResponse(id=f"r{n}", request=f"c{n}", content=(TextBlock(text="an ibex"),)) for n in range(2)]
    stream = InlineStream(TurnStart(id="t"), calls[0], results[0], calls[1], results[1])

    assert text_of(search({"query": "ibex"}, stream=stream)).count("an ibex") == 1
