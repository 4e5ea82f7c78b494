from __future__ import annotations

import msgspec
import pytest

import google_wire as wire
from jp.conversation.entries import JsonObject, Usage
from jp.provider.base import BlockEnd, Finished, Part, ReasoningDelta, TextDelta, UsageReport
from jp.provider.errors import ProviderError
from jp.provider.google.response import GoogleDecoder
from stories import Told, told

MADE: JsonObject = {"provider": "google", "model": "m"}


def read(*events: wire.Event | bytes, is_structured: bool = False, provider: str = "google") -> list[Part]:
    decoder = GoogleDecoder(model="m", provider=provider, is_structured=is_structured)
    parts: list[Part] = []
    for event in events:
        parts += decoder.feed("", event if isinstance(event, bytes) else msgspec.json.encode(event))
    return [*parts, *decoder.close()]


def blocks(*events: wire.Event | bytes, is_structured: bool = False) -> list[Told]:
    return told(read(*events, is_structured=is_structured)).blocks


def ends(parts: list[Part]) -> list[JsonObject | None]:
    return [part.metadata for part in parts if isinstance(part, BlockEnd)]


def finished(*parts: wire.Event, finish: str | None = "STOP", message: str | None = None) -> Part | None:
    found = read(wire.chunk(*parts, finish=finish, message=message))
    return found[-1] if found else None


def test_pieces_of_a_text_are_one_message_and_thoughts_stand_apart() -> None:
    events = (
        wire.chunk(wire.part("hm", thought=True)),
        wire.chunk(wire.part(", hm", thought=True), wire.part("Hel")),
        wire.chunk(wire.part("lo")),
        wire.chunk(wire.part("wait", thought=True), wire.part("Bye"), finish="STOP"),
    )

    assert blocks(*events) == [
        Told("reasoning", "hm, hm"),
        Told("message", "Hello"),
        Told("reasoning", "wait"),
        Told("message", "Bye"),
    ]
    assert ends(read(*events)) == [MADE, None, MADE, None]


def test_structured_output_is_data() -> None:
    assert blocks(wire.chunk(wire.part("{}"), finish="STOP"), is_structured=True) == [Told("data", "{}")]


@pytest.mark.parametrize("thought", [False, True])
def test_a_signature_belongs_to_the_text_that_it_comes_with_or_after(*, thought: bool) -> None:
    kind = "reasoning" if thought else "message"
    with_text = wire.chunk(
        wire.part("Hel", thought=thought),
        wire.part("lo", thought=thought, signature="s1"),
        wire.part("!", thought=thought),
        finish="STOP",
    )
    alone = (
        wire.chunk(wire.part("Hello!", thought=thought)),
        wire.chunk(wire.part("", thought=thought, signature="s1"), finish="STOP"),
    )

    assert blocks(with_text) == blocks(*alone) == [Told(kind, "Hello!", "s1")]
    assert ends(read(with_text)) == [{**MADE, "signature": "s1"}]


def test_a_block_has_one_signature() -> None:
    found = blocks(wire.chunk(wire.part("a", signature="s1"), wire.part("b", signature="s2"), finish="STOP"))

    assert found == [Told("message", "a", "s1"), Told("message", "b", "s2")]


def test_a_signature_without_a_text_of_its_kind_is_kept_by_itself() -> None:
    thought_first = read(
        wire.chunk(wire.part("hm", thought=True), wire.part("", signature="s1"), wire.part("a"), finish="STOP")
    )
    alone: JsonObject = {"thoughtSignature": "s2", "thought": True}

    assert [part for part in thought_first if isinstance(part, ReasoningDelta)] == [
        ReasoningDelta(0, "hm"),
        ReasoningDelta(1, ""),
    ]
    assert ends(thought_first) == [MADE, {**MADE, "signature": "s1", "part": "text"}, None]
    assert ends(read(wire.chunk(alone, alone, finish="STOP"))) == [{**MADE, "signature": "s2"}] * 2
    assert blocks(wire.chunk(wire.part("a", signature="s1"), wire.part("", signature="s2"), finish="STOP")) == [
        Told("message", "a", "s1"),
        Told("reasoning", "", "s2"),
    ]


def test_calls_keep_their_ids_and_others_get_one() -> None:
    call = wire.call("run", {"a": 1})
    own = wire.call("run", {}, call_id="own", signature="s")
    found = blocks(wire.chunk(own, own), wire.chunk(call, call, finish="STOP"))

    assert [block.call_id for block in found] == ["own", "own_1", "call_r1_2", "call_r1_3"]
    assert found[0] == Told("tool_call", "{}", "s", "own", "run")
    assert found[2].arguments == {"a": 1}


def test_an_id_is_unique_where_the_response_has_none() -> None:
    bare: wire.Event = {"functionCall": {"name": "run"}}
    empty: wire.Event = {"functionCall": {"name": "run", "args": None}}
    event: wire.Event = {"candidates": [{"content": {"parts": [bare, empty]}, "finishReason": "STOP"}]}

    assert [(block.call_id, block.text) for block in blocks(event)] == [("call_0", "{}"), ("call_1", "{}")]


def test_who_made_it_is_whom_the_user_named() -> None:
    parts = read(wire.chunk(wire.call("run", {}), finish="STOP"), provider="mine")

    assert ends(parts) == [{"provider": "mine", "model": "m"}]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", Finished("stop")),
        ("MAX_TOKENS", Finished("length")),
        ("CONTINUATION", Finished("length")),
        ("TOO_MANY_TOOL_CALLS", Finished("stop", "TOO_MANY_TOOL_CALLS: because")),
        *((word, Finished("refused", f"{word}: because")) for word in ("SAFETY", "RECITATION", "BLOCKLIST", "SPII")),
        *((word, Finished("refused", f"{word}: because")) for word in ("PROHIBITED_CONTENT", "OTHER", "LANGUAGE")),
    ],
)
def test_the_reason_of_the_end_is_told(reason: str, finish: Finished) -> None:
    assert finished(wire.part("a"), finish=reason, message="because") == finish


def test_a_refusal_without_words_is_its_reason() -> None:
    assert finished(finish="SAFETY") == Finished("refused", "SAFETY")


def test_an_answer_that_calls_is_not_over() -> None:
    assert finished(wire.call("run", {})) == Finished("tools")


def test_a_blocked_question_is_refused_with_the_reason() -> None:
    explained: wire.Event = {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "because"}}

    assert read(wire.blocked("PROHIBITED_CONTENT"))[-1] == Finished("refused", "PROHIBITED_CONTENT")
    assert read(explained)[-1] == Finished("refused", "OTHER: because")
    assert read(wire.blocked("MALFORMED_RESPONSE"))[-1] == Finished("refused", "MALFORMED_RESPONSE")


@pytest.mark.parametrize("feedback", [{}, {"blockReason": "BLOCKED_REASON_UNSPECIFIED"}, {"safetyRatings": []}])
def test_feedback_that_blocks_nothing_says_nothing(feedback: wire.Event) -> None:
    assert read({"promptFeedback": feedback}) == []


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("UNEXPECTED_TOOL_CALL", "transient"),
        ("MALFORMED_FUNCTION_CALL", "transient"),
        ("MALFORMED_RESPONSE", "transient"),
        ("MISSING_THOUGHT_SIGNATURE", "rejected_reasoning"),
    ],
)
def test_an_answer_that_the_model_spoiled_is_worth_another(reason: str, kind: str) -> None:
    with pytest.raises(ProviderError) as caught:
        finished(finish=reason, message="Malformed function call: run(")

    words = reason.lower().replace("_", " ")
    assert caught.value.kind == kind
    assert caught.value.message == f"google ended the answer with a {words}: Malformed function call: run("
    with pytest.raises(ProviderError, match=f"with a {words}$"):
        finished(finish=reason)


@pytest.mark.parametrize("reason", [None, "FINISH_REASON_UNSPECIFIED"])
def test_without_a_reason_an_answer_is_not_complete(reason: str | None) -> None:
    assert read(wire.chunk(wire.part("a"), finish=reason)) == [TextDelta(0, "a")]


def test_tokens_are_counted_in_their_classes_and_the_last_report_replaces_those_before_it() -> None:
    first = wire.chunk(wire.part("a"), usage={"promptTokenCount": 100, "cachedContentTokenCount": 60})
    output = {"candidatesTokenCount": 5, "thoughtsTokenCount": 20}
    last = wire.chunk(finish="STOP", usage={"promptTokenCount": 100, "toolUsePromptTokenCount": 7, **output})

    assert [part.usage for part in read(first, last) if isinstance(part, UsageReport)] == [
        Usage(input=40, cache_read=60),
        Usage(input=107, output=25, reasoning=20),
    ]
    assert read({"usageMetadata": {"cachedContentTokenCount": 3}}) == [UsageReport(Usage(cache_read=3))]


def test_other_candidates_and_unknown_parts_are_skipped() -> None:
    other: wire.Event = {"index": 1, "content": {"parts": [wire.part("b")]}, "finishReason": "SAFETY"}
    hosted: list[wire.Event] = [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
        {"inlineData": {"mimeType": "image/png", "data": "x"}},
        {"toolCall": {"id": "1"}},
        {},
    ]
    event: wire.Event = {"candidates": [{"content": {"parts": [*hosted, wire.part("a")]}}, other]}

    assert blocks({"candidates": []}, {"candidates": [{}]}, {"new": 1}, event, wire.chunk(finish="STOP")) == [
        Told("message", "a")
    ]
    assert blocks(wire.chunk(wire.part("a"), finish="STOP"), b"[DONE]") == [Told("message", "a")]
    assert finished(wire.part("a"), finish="STOP") == Finished("stop")
    assert read({"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}) == [Finished("stop")]


@pytest.mark.parametrize(
    "data",
    [b"nonsense", b"\xff", b"3", b"[]", b'{"candidates":3}', b'{"candidates":[{"content":{"parts":[{"text":1}]}}]}'],
)
def test_a_chunk_that_cannot_be_read_is_worth_a_retry(data: bytes) -> None:
    with pytest.raises(ProviderError, match="google sent an event that cannot be read") as caught:
        read(data)

    assert caught.value.kind == "transient"


@pytest.mark.parametrize("wrap", [False, True])
def test_an_error_inside_the_stream_is_one(*, wrap: bool) -> None:
    error = wire.error(503, "UNAVAILABLE", "The model is overloaded.")
    with pytest.raises(ProviderError) as caught:
        read(wire.chunk(wire.part("a")), msgspec.json.encode([error] if wrap else error))

    assert caught.value.kind == "transient"
    assert caught.value.message == "google reported an error: The model is overloaded."
    assert caught.value.least_wait == 3.0


def test_an_error_is_one_whatever_stands_beside_it() -> None:
    with pytest.raises(ProviderError, match="Odd") as caught:
        read(b'{"candidates":3,"error":{"status":"INTERNAL","message":"Odd."}}')

    assert caught.value.kind == "transient"
