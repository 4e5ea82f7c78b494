from __future__ import annotations

import hashlib

from jp.compaction.projection import Projection, SummaryOrigin, TurnOrigin
from jp.compaction.transcript import transcript_of, whole_transcript
from jp.context.types import Call, Digested, Facts, Message, Meta, ReasoningBlock, StoredBlock, TextBlock
from jp.conversation import entries as log
from jp.conversation import resource
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    ToolCall,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
)

SNAPSHOT = resource.Resource(uri="file:///a", sha256="ab" * 32, size=9, chars=8, lines=1)
SYNTHETIC = Meta(kind="synthetic", hidden=True)


def view(*events: ViewEvent) -> Projection:
    return Projection(events=events, origins=((TurnOrigin(0), 0),))


def messages(*events: ViewEvent) -> list[Message]:
    return list(transcript_of(view(*events)).messages)


def called(origin: str, call_id: str = "c", arguments: log.JsonObject | str = "{") -> ToolCall:
    return ToolCall(call_id=call_id, name="run", arguments=arguments, turn=0, origin=origin)


def result(call: str, *content: resource.Block, origin: str = "r", call_id: str = "c") -> ToolResult:
    return ToolResult(call=call, call_id=call_id, name="run", content=content, turn=0, origin=origin)


def test_a_request_with_its_attachments_is_one_message() -> None:
    found = messages(
        UserText(text="[the same as before]", turn=0, origin="q", synthetic=True),
        UserResource(resource=SNAPSHOT, turn=0, origin="q"),
        UserText(text="Why?", turn=0, origin="q"),
        UserText(text="And then?", turn=0, origin="q2"),
        UserText(text="Continue.", turn=0, origin="e", synthetic=True),
    )

    assert [(row.role, row.meta, row.origin) for row in found] == [
        ("user", Meta(), "q.0"),
        ("user", Meta(), "q2.0"),
        ("user", SYNTHETIC, "e.0"),
    ]
    assert found[0].content == (
        TextBlock(text="[the same as before]", origin="q.0"),
        StoredBlock(sha256="ab" * 32, size=9, chars=8, lines=1, uri="file:///a", origin="q.1"),
        TextBlock(text="Why?", origin="q.2"),
    )


def test_what_a_model_answers_until_its_calls_run_is_one_message_and_each_result_another() -> None:
    found = messages(
        UserText(text="Go", turn=0, origin="q"),
        AssistantReasoning(text="hm", turn=0, origin="a", metadata={"signature": "s"}),
        AssistantText(text="I look.", turn=0, origin="b"),
        called("c1", arguments={"path": "ä"}),
        called("c2"),
        result("c2", resource.TextBlock(text="two"), origin="r2"),
        result("c1", origin="r1"),
        AssistantData(text='{"a":1}', turn=0, origin="d"),
    )

    assert found[1:] == [
        Message(
            role="assistant",
            content=(ReasoningBlock(text="hm", origin="a.0"), TextBlock(text="I look.", origin="b.0")),
            calls=(
                Call(id="c", name="run", arguments='{"path":"ä"}', origin="c1.0"),
                Call(id="c_2", name="run", arguments="{", origin="c2.0"),
            ),
            origin="a.0",
        ),
        Message(role="tool", content=(TextBlock(text="two", origin="r2.0:0"),), call_id="c_2", origin="r2.0"),
        Message(role="tool", content=(), call_id="c", origin="r1.0"),
        Message(role="assistant", content=(TextBlock(text='{"a":1}', origin="d.0"),), origin="d.0"),
    ]


def test_ids_are_as_the_provider_gave_them_and_numbered_where_they_repeat() -> None:
    found = messages(
        called("1", "call_0"),
        result("1"),
        called("2", "call_0"),
        result("2"),
        called("3", ""),
        result("9", call_id="x"),
    )

    ids = [row.call_id or row.calls[0].id for row in found]
    assert ids == [
        "call_0",
        "call_0",
        "call_0_2",
        "call_0_2",
        "call",
        "x",
    ]


def test_a_summary_is_marked_and_never_a_persons_request() -> None:
    summary = SummaryOrigin(from_turn=0, to_turn=1, compaction="s")
    events = (
        UserText(text="[summary]", turn=0, origin="s", synthetic=True),
        AssistantText(text="Much happened.", turn=0, origin="s", synthetic=True),
        AssistantText(text="Yes", turn=2, origin="a"),
    )

    found = transcript_of(Projection(events=events, origins=((summary, 0), (TurnOrigin(2), 2)))).messages

    assert [(row.role, row.meta) for row in found] == [
        ("user", SYNTHETIC),
        ("assistant", Meta(kind="summary", hidden=True)),
        ("assistant", Meta()),
    ]
    assert [row.origin for row in found] == ["s.0", "s.1", "a.0"]


def test_what_is_formatted_stands_for_the_content_whatever_that_is() -> None:
    text = resource.TextBlock(sha256="ab" * 32, size=90_000, chars=90_000, lines=9, formatted="head and tail")
    picture = resource.ImageBlock(mime_type="image/png", sha256="cd" * 32, size=9, formatted="too large")

    assert messages(called("c"), result("c", text, picture))[1].content == (
        TextBlock(text="head and tail", origin="r.0:0"),
        TextBlock(text="too large", origin="r.0:1"),
    )


def test_what_a_tool_returns_keeps_its_kind() -> None:
    picture = resource.ImageBlock(mime_type="image/png", blob=b"\x89PNG")
    sound = resource.AudioBlock(mime_type="audio/wav", sha256="cd" * 32, size=7)
    diff = resource.ResourceBlock(resource=resource.Resource(uri="u:1", text="all", formatted="@@"))
    link = resource.ResourceLink(uri="https://example.org/", name="n", description="What it is")
    binary = resource.ResourceBlock(resource=resource.Resource(uri="u:2", mime_type="application/pdf", blob=b"%PDF"))

    found = messages(called("c"), result("c", picture, sound, diff, link, binary))[1].content

    assert found == (
        StoredBlock(sha256=hashlib.sha256(b"\x89PNG").hexdigest(), size=4, mime_type="image/png", origin="r.0:0"),
        StoredBlock(sha256="cd" * 32, size=7, mime_type="audio/wav", origin="r.0:1"),
        TextBlock(text="@@", uri="u:1", origin="r.0:2"),
        TextBlock(text="https://example.org/\nn\nWhat it is", uri="https://example.org/", origin="r.0:3"),
        StoredBlock(
            sha256=hashlib.sha256(b"%PDF").hexdigest(), size=4, mime_type="application/pdf", uri="u:2", origin="r.0:4"
        ),
    )


def meta_of(response: log.ToolCallResponse, *shown: resource.Block) -> Meta:
    found = transcript_of(view(called("c"), result("c", *shown)), [response])
    return found.messages[1].meta


def test_what_a_tool_recorded_goes_along() -> None:
    text = resource.TextBlock(text="ok")
    plain = log.ToolCallResponse(id="r", request="c", content=(text,))
    timed = log.ToolCallResponse(id="r", request="c", content=(text,), duration_ms=3)
    told = log.ToolCallResponse(
        id="r", request="c", content=(text,), facts=log.Facts(kind="terminal", exit_code=2), duration_ms=3
    )

    assert meta_of(plain, text) == Meta()
    assert meta_of(timed, text) == Meta(facts=Facts(duration_ms=3))
    assert meta_of(told, text) == Meta(facts=Facts(kind="terminal", exit_code=2, duration_ms=3))


def test_what_stands_for_a_result_already_is_told_with_the_original() -> None:
    stored = resource.TextBlock(sha256="ab" * 32, size=900, chars=900)
    snapshot = resource.ResourceBlock(resource=SNAPSHOT)
    both = log.ToolCallResponse(id="r", request="c", content=(snapshot, stored), facts=log.Facts(path="a"))
    one = log.ToolCallResponse(id="r", request="c", content=(snapshot,))
    none = log.ToolCallResponse(id="r", request="c", content=())
    line = resource.TextBlock(text="[compacted] run: success")

    digested = Digested(sha256="ab" * 32)
    assert meta_of(both, line) == Meta(facts=Facts(path="a"), digested=digested)
    assert meta_of(one, line).digested == Digested(sha256="ab" * 32)
    assert meta_of(none, line).digested == Digested(sha256="")


def test_content_that_was_only_loaded_or_whose_diff_became_whole_is_none_of_it() -> None:
    text, loaded = "x" * 99, resource.TextBlock(text="x" * 99)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    response = log.ToolCallResponse(
        id="r",
        request="c",
        content=(
            resource.TextBlock(sha256=sha256, size=99, chars=99),
            resource.ResourceBlock(resource=resource.Resource(uri="u", text="all", formatted="@@")),
        ),
    )
    whole = resource.ResourceBlock(resource=resource.Resource(uri="u", text="all"))

    assert meta_of(response, loaded, whole) == Meta()
    assert meta_of(response, resource.TextBlock(text="other"), whole).digested is not None


def test_a_whole_transcript_knows_no_compaction() -> None:
    stream = (
        log.TurnStart(id="t"),
        log.ChatRequest(id="q", content="Hi"),
        log.ChatResponse(id="a", message="Hello"),
        log.CycleEnd(id="e", attempt=1, finish="stop"),
        log.Compaction(id="k", from_turn=0, to_turn=0, summary=log.SummaryPolicy(text="They greeted.")),
    )

    assert [row.content for row in whole_transcript(stream).messages] == [
        (TextBlock(text="Hi", origin="q.0"),),
        (TextBlock(text="Hello", origin="a.0"),),
    ]
