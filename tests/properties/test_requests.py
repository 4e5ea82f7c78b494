"""From a log to the bytes of a request: the whole way that a turn goes, over random streams."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.json import encode
from msgspec.structs import replace

import streams
from anthropic_oracle import assert_accepted
from jp.compaction.fact_lines import StatusLineFormatter
from jp.config.model import LlmConfig
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    ConfigDelta,
    CycleEnd,
    Digests,
    JsonObject,
    RequestContext,
    Revert,
    ToolCallRequest,
    ToolCallResponse,
    TurnStart,
)
from jp.conversation.resource import AudioBlock, Carrier, ImageBlock, Resource, StoredContent, TextBlock, content_of
from jp.conversation.thread import AssistantReasoning, Parameters, ToolDefinition
from jp.provider.anthropic.vendor import AnthropicAdapter
from jp.provider.base import BodyEncoder
from jp.provider.errors import ProviderError
from jp.provider.http import Adapter
from jp.provider.registry import create_adapter
from jp.turn.measuring import prompt_size
from jp.turn.request import RequestSettings, ThreadBuilder, build_thread, digests_of

C = TypeVar("C", bound=Carrier)

ADAPTER = AnthropicAdapter(())
TEXTS = {hashlib.sha256(text.encode()).hexdigest(): text for text in streams.VERSIONS}
NEXT = (TurnStart(id="next-turn"), ChatRequest(id="next-request", content="And now?"))
OVERLAYS = (Compaction, Revert, ConfigDelta, RequestContext)


class Blobs:
    """Holds the texts that streams name; any other content is some text."""

    def __init__(self) -> None:
        self.read: set[str] = set()

    def load(self, carrier: C, /) -> C:
        content = content_of(carrier)
        if not isinstance(content, StoredContent):
            return carrier
        self.read.add(content.sha256)
        if isinstance(carrier, (ImageBlock, AudioBlock)):
            return replace(carrier, sha256=None, size=None, blob=b"picture")
        text = TEXTS.get(content.sha256, "some text")
        return replace(carrier, sha256=None, size=None, chars=None, lines=None, text=text)


def settings_with(cache: str) -> RequestSettings:
    parameters = Parameters(cache="off" if cache == "off" else "short")
    return RequestSettings(
        provider="anthropic", model="claude-haiku-4-5", renderer=1, system=("Be brief.",), parameters=parameters
    )


def blocks_of(entries: tuple[AnyEntry, ...], *, continuing: bool, cache: str = "short") -> list[bytes]:
    thread = build_thread(
        entries, settings_with(cache), loader=Blobs(), status_formatter=StatusLineFormatter(), continuing=continuing
    )
    sections = ADAPTER.render(thread).sections
    return [*sections.tools, *sections.system, *(block for message in sections.messages for block in message)]


@given(streams.stories())
def test_a_request_begins_with_the_one_before_unless_an_overlay_stands_between(story: streams.Story) -> None:
    for before, after in pairwise(story.requests):
        if any(isinstance(entry, OVERLAYS) for entry in story.entries[before.position : after.position]):
            continue
        earlier = blocks_of(story.entries[: before.position], continuing=before.continuing)
        later = blocks_of(story.entries[: after.position], continuing=after.continuing)
        assert later[: len(earlier)] == earlier


@given(streams.stories(), st.sampled_from(["off", "short"]))
def test_cache_markers_are_no_part_of_what_is_compared(story: streams.Story, cache: str) -> None:
    for request in story.requests[-1:]:
        entries = story.entries[: request.position]
        assert blocks_of(entries, continuing=request.continuing, cache=cache) == blocks_of(
            entries, continuing=request.continuing
        )


@given(streams.any_streams())
def test_whatever_a_log_holds_the_next_request_is_one_that_the_provider_has_types_for(
    entries: tuple[AnyEntry, ...],
) -> None:
    thread = build_thread(
        (*entries, *NEXT), settings_with("short"), loader=Blobs(), status_formatter=StatusLineFormatter()
    )

    assert_accepted(ADAPTER.render(thread).body)


@given(streams.stories())
def test_the_digests_of_a_log_say_what_was_kept_of_the_request_before(story: streams.Story) -> None:
    known: tuple[str, ...] = ()
    for request in story.requests:
        entries = story.entries[: request.position]
        thread = build_thread(
            entries,
            settings_with("short"),
            loader=Blobs(),
            status_formatter=StatusLineFormatter(),
            continuing=request.continuing,
        )
        sections = ADAPTER.render(thread).sections
        digests: Digests = digests_of(sections, known)
        whole = known[: digests.kept] + digests.messages
        assert whole == digests_of(sections, ()).messages
        known = whole


@given(streams.streams())
def test_only_what_the_view_shows_is_read_from_the_blob_store(entries: tuple[AnyEntry, ...]) -> None:
    blobs = Blobs()

    thread = build_thread(
        (*entries, *NEXT), settings_with("short"), loader=blobs, status_formatter=StatusLineFormatter()
    )

    shown = str(ADAPTER.render(thread).body)
    assert all(TEXTS[sha256] in shown or repr(TEXTS[sha256])[1:-1] in shown for sha256 in blobs.read & TEXTS.keys())


@given(streams.any_streams(), st.data())
def test_what_was_rejected_is_sent_as_text_and_the_request_is_one_that_the_provider_has_types_for(
    entries: tuple[AnyEntry, ...], data: st.DataObject
) -> None:
    thoughts = [entry.id for entry in entries if isinstance(entry, ChatResponse) and entry.reasoning is not None]
    chosen = data.draw(st.sets(st.sampled_from(thoughts))) if thoughts else set[str]()
    end = CycleEnd(id="rejection", attempt=1, finish="error", rejected=tuple(sorted(chosen)))

    thread = build_thread(
        (*entries, *NEXT, end), settings_with("short"), loader=Blobs(), status_formatter=StatusLineFormatter()
    )

    reasoning = [event for event in thread.events if isinstance(event, AssistantReasoning)]
    assert [event.origin for event in reasoning if event.origin in chosen and event.metadata is not None] == []
    assert_accepted(ADAPTER.render(thread).body)


MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "cerebras": "gpt-oss-120b",
    "google": "gemini-3.8-flash",
    "ollama": "qwen3:8b",
    "openai": "gpt-5.6",
    "openrouter": "anthropic/claude-sonnet-4.5",
}
TOOL = ToolDefinition(name="run", description="Run.", parameters={"type": "object"})


def sent(
    adapter: Adapter,
    threads: ThreadBuilder,
    entries: Sequence[AnyEntry],
    number: int,
    encode: Callable[[JsonObject], bytes] = encode,
) -> object:
    """Return everything that goes out for a log, and what is recorded and estimated of it."""
    parameters = Parameters(tool_choice="required" if number % 5 == 0 else "auto")
    settings = RequestSettings(
        provider=adapter.id, model=MODELS[adapter.id], renderer=1, tools=(TOOL,), parameters=parameters
    )
    try:
        request = adapter.render(threads.build(entries, settings, continuing=number % 2 == 1))
    except ProviderError as error:
        return error.message
    return encode(request.body), request, digests_of(request.sections, ()), prompt_size(request.sections)


@pytest.mark.parametrize("kind", MODELS)
@settings(max_examples=max(40, settings().max_examples))
@given(entries=streams.any_streams(), additions=st.lists(st.integers(0, 12), max_size=30))
def test_requests_of_a_log_that_grows_are_those_of_a_new_process(
    kind: str, entries: tuple[AnyEntry, ...], additions: list[int]
) -> None:
    encoder = BodyEncoder()
    adapter, threads, known = (
        create_adapter(LlmConfig(), kind, kind=kind),
        ThreadBuilder(Blobs(), StatusLineFormatter()),
        0,
    )

    for added in (*additions, len(entries)):
        known = min(known + added, len(entries))
        part = entries[:known]
        new = create_adapter(LlmConfig(), kind, kind=kind)
        assert sent(adapter, threads, part, added, encoder.encode) == sent(
            new, ThreadBuilder(Blobs(), StatusLineFormatter()), part, added
        )


@pytest.mark.parametrize("kind", MODELS)
def test_a_cycle_renders_what_it_adds(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter, threads = create_adapter(LlmConfig(), kind, kind=kind), ThreadBuilder(Blobs(), StatusLineFormatter())
    entries: list[AnyEntry] = [TurnStart(id="t"), ChatRequest(id="q", content="Go.")]
    counts: list[int] = []
    encoder = BodyEncoder()

    for cycle in range(60):
        calls: list[object] = []
        sys.setprofile(lambda frame, event, _, calls=calls: calls.append(frame) if event == "call" else None)
        try:
            sent(adapter, threads, entries, 2, encoder.encode)
        finally:
            sys.setprofile(None)
        counts.append(len(calls))
        call = ToolCallRequest(id=f"c{cycle}", call_id=f"c{cycle}", name="run", arguments={"n": cycle})
        end = CycleEnd(id=f"e{cycle}", attempt=1, finish="tools")
        entries += [call, end, ToolCallResponse(id=f"r{cycle}", request=call.id, content=(TextBlock(text="ok"),))]

    assert max(counts[50:]) <= 1.1 * max(counts[8:18])


def test_marks_near_the_end_and_on_an_early_attachment_are_those_of_the_whole_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def count_all(_: object) -> int:
        return sys.maxsize

    attached = Resource(uri="file:///w/a", text="a" * 50)
    for attaching, lengths in (({0, 1}, (0, 1)), ({0}, (3, 40)), ({1}, (3, 40)), ({0}, (25, 2)), ({1}, (40, 40))):
        entries: list[AnyEntry] = []
        for turn, length in enumerate(lengths):
            resources = (attached,) if turn in attaching else ()
            entries += [TurnStart(id=f"t{turn}"), ChatRequest(id=f"q{turn}", content="Go.", resources=resources)]
            for number in range(length):
                call = ToolCallRequest(id=f"c{turn}-{number}", call_id=f"c{number}", name="run", arguments={})
                end = CycleEnd(id=f"e{turn}-{number}", attempt=1, finish="tools")
                entries += [call, end, ToolCallResponse(request=call.id, content=(TextBlock(text="ok"),))]
        for kind, module in (("anthropic", "anthropic"), ("openrouter", "chat")):
            adapter = create_adapter(LlmConfig(), kind, kind=kind)
            near = sent(adapter, ThreadBuilder(Blobs(), StatusLineFormatter()), entries, 2)
            with monkeypatch.context() as patch:
                patch.setattr(f"jp.provider.{module}.request.count_markable", count_all)
                adapter = create_adapter(LlmConfig(), kind, kind=kind)
                assert near == sent(adapter, ThreadBuilder(Blobs(), StatusLineFormatter()), entries, 2)


VALUES = st.none() | st.booleans() | st.text(max_size=3) | st.lists(st.integers(0, 3), max_size=2)


@given(st.lists(st.dictionaries(st.sampled_from(["a", "\u00e9", "messages"]), VALUES), max_size=4), st.data())
def test_a_body_is_encoded_as_at_once(bodies: list[JsonObject], data: st.DataObject) -> None:
    encoder = BodyEncoder()
    items: list[object] = []
    for body in bodies:
        assert encoder.encode(body) == encode(body)
        items = [*items[: data.draw(st.integers(0, len(items)))], *data.draw(st.lists(VALUES, max_size=3))]
        body["messages"] = items
        assert encoder.encode(body) == encode(body)
