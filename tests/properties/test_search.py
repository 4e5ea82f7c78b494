"""Search: any text is a query, passages are the content, and adding to an index gives the same as making it again."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jp.compaction.log_contents import search_plainly, searchable_passages
from jp.context.redaction import redact
from jp.context.search import match_expressions, passages_of, window, words_of
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Facts,
    Header,
    Revert,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import TextBlock
from jp.turn.request import InlineLoader
from jp.workspace.search_index import opened_index

PLACE = "/"
"""A directory that is there: what the index has of another one is deleted."""

WORDS = st.sampled_from([
    "alpha",
    "beta gamma",
    "AND",
    "NEAR(alpha beta)",
    '"',
    "about:x",
    "*",
    "^a",
    "-",
    "\0",
    "é",
    "a_b",
])
QUERIES = st.one_of(st.text(st.characters(codec=None)), st.lists(WORDS).map(" ".join))
SECRETS = st.sampled_from(["sk-" + "a1B2c3D4" * 5, "password=hunter2hunter2", "plain"])
TEXTS = st.lists(st.one_of(st.text(st.characters(codec=None), max_size=30), SECRETS, WORDS), max_size=12).map("\n".join)


@st.composite
def logs(draw: st.DrawFn) -> list[AnyEntry]:
    entries: list[AnyEntry] = [Header(id="h", format=1, created_at="2026-01-01T00:00:00Z", nonce="n")]
    turns: list[str] = []
    for number in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(["turn", "call", "answer", "undo", "search"]))
        name = f"e{number}"
        text = draw(TEXTS).encode("utf-8", "replace").decode()
        match kind:
            case "turn":
                turns.append(name)
                entries += [TurnStart(id=name), ChatRequest(id=f"{name}q", content=text)]
            case "call" | "search":
                tool = "search_history" if kind == "search" else "run"
                entries += [
                    ToolCallRequest(id=name, call_id=name, name=tool, arguments={"command": text, "more": text * 20}),
                    ToolCallResponse(
                        id=f"{name}r", request=name, content=(TextBlock(text=text * 50),), facts=Facts(exit_code=number)
                    ),
                ]
            case "answer":
                entries.append(ChatResponse(id=name, message=text))
            case _:
                entries.append(Revert(id=name, entries=tuple(draw(st.sets(st.sampled_from([*turns, "x"]))))))
    return entries


@given(QUERIES, logs())
def test_any_text_is_a_query_in_the_index_and_without_it(query: str, entries: list[AnyEntry]) -> None:
    passages = list(searchable_passages(entries, InlineLoader()))
    with opened_index(None) as index:
        index.add(PLACE, passages)
        found = index.search(query, [PLACE], 5)
        everywhere = index.search(query, None, 5)
        again = index.search(query, None, 5)

    assert len(found) <= 5
    assert found == everywhere == again
    assert bool(match_expressions(query)) == bool(words_of(query))
    assert len(search_plainly(entries, InlineLoader(), query, 5)) <= 5


@given(logs(), st.data())
def test_what_is_added_to_an_index_gives_the_same_as_making_it_again(
    entries: list[AnyEntry], data: st.DataObject
) -> None:
    steps = sorted(data.draw(st.lists(st.integers(0, len(entries)), max_size=3)))
    with opened_index(None) as added, opened_index(None) as made:
        for step in (*steps, len(entries)):
            part = entries[:step]
            added.update(PLACE, part, lambda since, part=part: searchable_passages(part, InlineLoader(), since=since))
        made.update(PLACE, entries, lambda since: searchable_passages(entries, InlineLoader(), since=since))

        assert added.rows(PLACE) == made.rows(PLACE)
        for query in ("alpha", "beta gamma", "run exit code"):
            assert added.search(query, [PLACE], 9) == made.search(query, [PLACE], 9)


@given(TEXTS, st.integers(1, 60))
def test_passages_in_their_order_are_the_redacted_text_and_say_where_they_begin(text: str, most: int) -> None:
    passages = list(passages_of(text, most))
    raw = text.encode("utf-8", "surrogatepass")

    storable = redact(text).text.encode("utf-8", "replace").decode()
    assert "".join(passage.text for passage in passages) == storable
    for before, after in pairwise(passages):
        assert before.offset < after.offset < len(raw)
        raw[after.offset :].decode("utf-8", "surrogatepass")


@given(TEXTS, st.lists(WORDS), st.integers(1, 80))
def test_a_window_is_a_part_of_the_text_in_its_bound(text: str, words: list[str], most: int) -> None:
    storable = text.encode("utf-8", "replace").decode()
    shown = window(storable, words_of(" ".join(words)), most)

    assert len(shown.encode()) <= most or shown == storable
    assert shown in storable
