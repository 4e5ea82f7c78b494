"""What holds for the request of any thread to Gemini, for the requests of a thread that grows, and for signatures."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import google_wire as wire
from google_oracle import assert_accepted
from jp.conversation.entries import ChatResponse, JsonObject, ToolCallRequest
from jp.conversation.thread import (
    AssistantReasoning,
    AssistantText,
    Thread,
    ToolCall,
    ToolResult,
    UserText,
    ViewEvent,
)
from jp.provider.base import Part, WireRequest
from jp.provider.google.request import UNSIGNED, render
from jp.provider.google.response import GoogleDecoder
from jp.provider.models import is_made_by, known_names
from jp.provider.reader import Reader
from jp.turn.builder import EntryBuilder
from threads import Vendor, rendered_by, requests_by, threads

GOOGLE = Vendor(
    provider="google",
    models=(*known_names("google"), "gemini-next-1", "qwen3"),
    opaque=({}, {"signature": "c2lnbmVk"}, {"signature": "c2lnbmVk", "part": "text"}),
    marks_all=True,
)


def contents_of(request: WireRequest) -> list[JsonObject]:
    return request.body["contents"]


def named(content: JsonObject, kind: str) -> list[JsonObject]:
    return [part[kind] for part in content["parts"] if kind in part]


def check_calls(request: WireRequest) -> None:
    """Each call is answered in the next content, in order, by its name, with nothing beside it; no id is used twice."""
    seen: list[str] = []
    due: list[tuple[str, str]] = []
    for content in contents_of(request):
        answers = [(answer["id"], answer["name"]) for answer in named(content, "functionResponse")]
        assert answers == due
        assert not due or len(content["parts"]) == len(due)
        due = [(call["id"], call["name"]) for call in named(content, "functionCall")]
        assert not due or content["role"] == "model"
        seen += [call_id for call_id, _ in due]
    assert not due
    assert len(seen) == len(set(seen))


def check_parts(request: WireRequest) -> None:
    """The user begins, no content and no unsigned text is empty, and no answer ends with a thought."""
    assert contents_of(request)[0]["role"] == "user"
    for content in contents_of(request):
        assert content["parts"]
        for part in content["parts"]:
            assert part.get("text", "x").strip() or "thoughtSignature" in part
        assert not content["parts"][-1].get("thought")


@given(threads(GOOGLE))
def test_every_request_is_one_that_the_api_accepts(grown: list[Thread]) -> None:
    for request in requests_by(render, grown):
        check_calls(request)
        check_parts(request)


@given(threads(GOOGLE))
def test_every_request_is_one_that_the_sdk_has_types_for(grown: list[Thread]) -> None:
    for request in requests_by(render, grown[-1:]):
        assert_accepted(request.body)


@given(threads(GOOGLE))
def test_only_signatures_of_the_same_model_are_sent(grown: list[Thread]) -> None:
    whole = grown[-1]
    for request in requests_by(render, [whole]):
        sent = [part.get("thoughtSignature") for content in contents_of(request) for part in content["parts"]]
        made = [getattr(event, "metadata", None) for event in whole.events]

        own = sum(1 for metadata in made if is_made_by(metadata, "google", whole.model))
        assert sum(1 for signature in sent if signature not in {None, UNSIGNED}) <= own


@given(threads(GOOGLE))
def test_a_longer_thread_begins_with_the_parts_of_a_shorter_one(grown: list[Thread]) -> None:
    before: list[bytes] = []
    for request in requests_by(render, grown):
        found = request.sections
        parts = [content[0] + part for content in found.messages for part in content[1:]]
        whole = [*found.tools, *found.system, *parts]

        assert whole[: len(before)] == before
        before = whole


@given(threads(GOOGLE))
def test_the_same_thread_gives_the_same_bytes(grown: list[Thread]) -> None:
    assert msgspec.json.encode(rendered_by(render, grown[-1])) == msgspec.json.encode(rendered_by(render, grown[-1]))


SIGNATURES = st.none() | st.binary(min_size=1, max_size=9).map(lambda data: base64.b64encode(data).decode())
SAID = st.builds(wire.part, st.sampled_from(["", "a", "é\u2028 "]), thought=st.booleans(), signature=SIGNATURES)
CALLED = st.builds(wire.call, st.just("run"), st.just({"a": "é"}), signature=SIGNATURES)


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    marks = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return [data[start:end] for start, end in zip([0, *marks], [*marks, len(data)], strict=True)]


def as_event(entry: ChatResponse | ToolCallRequest, number: int) -> list[ViewEvent]:
    origin = f"e{number}"
    if isinstance(entry, ToolCallRequest):
        call = ToolCall(
            call_id=entry.call_id,
            name=entry.name,
            arguments=entry.arguments,
            turn=0,
            origin=origin,
            metadata=entry.metadata,
        )
        return [call]
    if entry.reasoning is not None:
        return [AssistantReasoning(text=entry.reasoning, turn=0, origin=origin, metadata=entry.metadata)]
    return [AssistantText(text=entry.message or "", turn=0, origin=origin, metadata=entry.metadata)]


def signed(parts: list[JsonObject]) -> Iterator[tuple[str, str]]:
    """Each signature with the kind of part that it stands on."""
    for part in parts:
        kind = "call" if "functionCall" in part else "thought" if part.get("thought") else "text"
        if "thoughtSignature" in part:
            yield kind, part["thoughtSignature"]


@given(st.data(), st.lists(SAID | CALLED, max_size=7), st.sampled_from(["\n", "\r\n"]))
def test_signatures_come_back_byte_for_byte_on_their_kind_of_part(
    data: st.DataObject, said: list[JsonObject], end: str
) -> None:
    said.append(wire.call("run", {}, signature="bGFzdA=="))
    chunks = [wire.chunk(part) for part in said]
    reader = Reader(GoogleDecoder(model="gemini-3.8-flash"), "sse", max_bytes=10_000)
    parts: list[Part] = []
    for piece in data.draw(cut(wire.body(*chunks, wire.chunk(finish="STOP"), end=end))):
        parts += reader.feed(piece)
    parts += reader.close()
    builder = EntryBuilder()
    entries = [entry for part in parts if (entry := builder.feed(part)) is not None]
    answer = [event for number, entry in enumerate(entries) for event in as_event(entry, number)]
    results = [
        ToolResult(call=event.origin, call_id=event.call_id, name=event.name, content=(), turn=0)
        for event in answer
        if isinstance(event, ToolCall)
    ]

    events = (UserText(text="Hi", turn=0), *answer, *results)
    request = render(Thread(model="gemini-3.8-flash", system=(), tools=(), events=events))

    assert reader.finished
    assert list(signed(contents_of(request)[1]["parts"])) == list(signed(said))
