"""What each provider is sent of a stream that was compacted, and that it takes it: pairs, ids, and what goes with them.

The entries carry what providers sign or encrypt. What is told of a request are the words and marks in it, in order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace

import anthropic_oracle
import chat_oracle
import google_oracle
import ollama_oracle
import openai_oracle
from jp.compaction.fact_lines import StatusLineFormatter, tool_policy
from jp.config.entries import OpenrouterConfig
from jp.config.model import ToolCallMode
from jp.conversation.entries import (
    AnyEntry,
    ChatResponse,
    Compaction,
    Header,
    JsonObject,
    SummaryPolicy,
    ToolCallRequest,
)
from jp.conversation.thread import Thread
from jp.provider.anthropic.request import render as render_anthropic
from jp.provider.base import WireRequest
from jp.provider.cerebras.request import CerebrasAdapter
from jp.provider.google.request import render as render_google
from jp.provider.llamacpp.request import LlamacppAdapter
from jp.provider.ollama.request import Server
from jp.provider.ollama.request import render as render_ollama
from jp.provider.openai.request import render as render_openai
from jp.provider.openrouter.vendor import create as create_openrouter
from jp.turn.request import InlineLoader, RequestSettings, build_thread
from logs import ask, end, log, respond, say, start, think


class Vendor(NamedTuple):
    """Whose requests are looked at, and what it keeps with reasoning, messages and calls. `#`: the turn."""

    model: str
    render: Callable[[Thread], WireRequest]
    accept: Callable[[dict[str, Any]], None]
    reasoning: JsonObject | None = None
    message: JsonObject | None = None
    call: JsonObject | None = None


VENDORS: Mapping[str, Vendor] = {
    "anthropic": Vendor(
        "claude-sonnet-4-5", render_anthropic, anthropic_oracle.assert_accepted, {"signature": "sealed-#"}
    ),
    "openai": Vendor(
        "gpt-5-mini",
        render_openai,
        openai_oracle.assert_accepted,
        {"item_id": "rs_#", "encrypted_content": "sealed-#"},
        {"item_id": "msg_#"},
        {"item_id": "fc_#"},
    ),
    "google": Vendor(
        "gemini-3-pro-preview",
        render_google,
        google_oracle.assert_accepted,
        {"signature": "sealedr#"},
        {"signature": "sealedm#"},
        {"signature": "sealedc#"},
    ),
    "openrouter": Vendor(
        "anthropic/claude-haiku-4.5",
        create_openrouter(OpenrouterConfig()).render,
        chat_oracle.assert_accepted,
        {"reasoning_details": [{"type": "reasoning.text", "text": "think-#", "signature": "sealed-#"}]},
    ),
    "cerebras": Vendor("gpt-oss-120b", CerebrasAdapter().render, chat_oracle.assert_accepted),
    "llamacpp": Vendor("qwen3.5:9b", LlamacppAdapter().render, chat_oracle.assert_accepted),
    "ollama": Vendor(
        "qwen3.5:9b", partial(render_ollama, server=Server(context_window=4096)), ollama_oracle.assert_accepted
    ),
}


def tools(mode: ToolCallMode) -> Compaction:
    return Compaction(from_turn=0, to_turn=1, tool_calls=tool_policy(mode))


def summary(first: int, last: int, text: str) -> Compaction:
    return Compaction(from_turn=first, to_turn=last, summary=SummaryPolicy(text=text))


SCENARIOS: Mapping[str, tuple[Compaction, ...]] = {
    "baseline": (),
    "reasoning": (Compaction(from_turn=0, to_turn=1, reasoning="strip"),),
    "requests": (tools("strip-requests"),),
    "responses": (tools("strip-responses"),),
    "both": (tools("strip"),),
    "omit": (tools("omit"),),
    "summary": (summary(0, 1, "summary-0"),),
    "overlap": (summary(0, 1, "summary-0"), summary(1, 1, "summary-1")),
}


def turn(number: int) -> Iterator[AnyEntry]:
    """A question, a thought with words and two calls at once, of which the first is long; their results, an answer."""
    yield from (start(number), ask(f"ask-{number}"), think(f"think-{number}", signature=None), say(f"say-{number}"))
    for name, content in (("a", "x" * 900), ("b", "x")):
        yield ToolCallRequest(
            id=f"{name}{number}", call_id=f"use-{name}{number}", name="write", arguments={"content": content}
        )
    yield end("tools")
    yield from (respond(f"{name}{number}", f"out-{name}{number}\n{'. ' * 200}") for name in "ab")


def stream(vendor: str) -> list[AnyEntry]:
    """Two turns that are over, and one whose tools have just run."""
    made = {"provider": vendor, "model": VENDORS[vendor].model}
    kept = VENDORS[vendor]
    entries: list[AnyEntry] = [Header(id="h", format=1, created_at="", nonce="n0nce")]
    for number in range(3):
        for entry in (*turn(number), *((say(f"done-{number}"), end()) if number < 2 else ())):
            match entry:
                case ChatResponse(reasoning=str()):
                    entries.append(replace(entry, metadata={**made, **numbered(kept.reasoning, number)}))
                case ChatResponse() if entry.message == f"say-{number}":
                    entries.append(replace(entry, metadata={**made, **numbered(kept.message, number)}))
                case ToolCallRequest() if entry.id.startswith("a"):
                    entries.append(replace(entry, metadata={**made, **numbered(kept.call, number)}))
                case ToolCallRequest():
                    entries.append(replace(entry, metadata=dict(made)))
                case _:
                    entries.append(entry)
    return entries


def numbered(metadata: JsonObject | None, number: int) -> JsonObject:
    return msgspec.json.decode(msgspec.json.encode(metadata or {}).replace(b"#", str(number).encode()))


def request(vendor: str, scenario: str) -> WireRequest:
    settings = RequestSettings(provider=vendor, model=VENDORS[vendor].model, renderer=1)
    entries = log(*stream(vendor), *SCENARIOS[scenario])
    return VENDORS[vendor].render(
        build_thread(entries, settings, loader=InlineLoader(), status_formatter=StatusLineFormatter())
    )


MARKS = re.compile(
    r"ask-\d|think-\d|say-\d|done-\d|sealed[-rmc]\d|use-\w\d|out-\w\d|(?:rs|msg|fc)_\d"
    r"|skip_|\[compac|\[\[cut|\[summary of|summary-\d"
)


def told(body: object) -> Sequence[str]:
    """The turns of a request, each as the marks in it; summaries in place of some are one."""
    marks = " ".join(MARKS.findall(msgspec.json.encode(body).decode()))
    return marks.replace(" ask-", "\nask-").splitlines()


ANTHROPIC = snapshot({
    "baseline": "ask-0 think-0 sealed-0 say-0 use-a0 use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "reasoning": "ask-0 say-0 use-a0 use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "requests": "ask-0 think-0 sealed-0 say-0 use-a0 [[cut use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "responses": "ask-0 think-0 sealed-0 say-0 use-a0 use-b0 use-a0 [compac use-b0 [compac done-0",
    "both": "ask-0 think-0 sealed-0 say-0 use-a0 [[cut use-b0 use-a0 [compac use-b0 [compac done-0",
    "omit": "ask-0 think-0 sealed-0 say-0 done-0",
    "summary": "[summary of summary-0",
    "overlap": "[summary of summary-0 [summary of summary-1",
})
OPENAI = snapshot({
    "baseline": "ask-0 rs_0 think-0 sealed-0 say-0 msg_0 use-a0 use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "reasoning": "ask-0 say-0 use-a0 use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "requests": "ask-0 rs_0 think-0 sealed-0 say-0 msg_0 use-a0 [[cut use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "responses": "ask-0 rs_0 think-0 sealed-0 say-0 msg_0 use-a0 use-b0 use-a0 [compac use-b0 [compac done-0",
    "both": "ask-0 rs_0 think-0 sealed-0 say-0 msg_0 use-a0 [[cut use-b0 use-a0 [compac use-b0 [compac done-0",
    "omit": "ask-0 rs_0 think-0 sealed-0 say-0 msg_0 done-0",
    "summary": "[summary of summary-0",
    "overlap": "[summary of summary-0 [summary of summary-1",
})
GOOGLE = snapshot({
    "baseline": "ask-0 think-0 sealedr0 say-0 sealedm0 use-a0 sealedc0 use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "reasoning": "ask-0 say-0 use-a0 skip_ use-b0 skip_ use-a0 out-a0 use-b0 out-b0 done-0",
    "requests": "ask-0 think-0 sealedr0 say-0 sealedm0 use-a0 [[cut skip_ use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "responses": "ask-0 think-0 sealedr0 say-0 sealedm0 use-a0 sealedc0 use-b0 use-a0 [compac use-b0 [compac done-0",
    "both": "ask-0 think-0 sealedr0 say-0 sealedm0 use-a0 [[cut skip_ use-b0 use-a0 [compac use-b0 [compac done-0",
    "omit": "ask-0 think-0 sealedr0 say-0 sealedm0 done-0",
    "summary": "[summary of summary-0",
    "overlap": "[summary of summary-0 [summary of summary-1",
})
OPENROUTER = snapshot({
    "baseline": "ask-0 say-0 think-0 sealed-0 use-a0 use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "reasoning": "ask-0 say-0 use-a0 use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "requests": "ask-0 say-0 think-0 sealed-0 use-a0 [[cut use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "responses": "ask-0 say-0 think-0 sealed-0 use-a0 use-b0 use-a0 [compac use-b0 [compac done-0",
    "both": "ask-0 say-0 think-0 sealed-0 use-a0 [[cut use-b0 use-a0 [compac use-b0 [compac done-0",
    "omit": "ask-0 say-0 done-0 think-0 sealed-0",
    "summary": "[summary of summary-0",
    "overlap": "[summary of summary-0 [summary of summary-1",
})
CEREBRAS = snapshot({
    "baseline": "ask-0 say-0 think-0 use-a0 use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "reasoning": "ask-0 say-0 use-a0 use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "requests": "ask-0 say-0 think-0 use-a0 [[cut use-b0 use-a0 out-a0 use-b0 out-b0 done-0",
    "responses": "ask-0 say-0 think-0 use-a0 use-b0 use-a0 [compac use-b0 [compac done-0",
    "both": "ask-0 say-0 think-0 use-a0 [[cut use-b0 use-a0 [compac use-b0 [compac done-0",
    "omit": "ask-0 say-0 done-0 think-0",
    "summary": "[summary of summary-0",
    "overlap": "[summary of summary-0 [summary of summary-1",
})
OLLAMA = snapshot({
    "baseline": "ask-0 say-0 think-0 out-a0 out-b0 done-0",
    "reasoning": "ask-0 say-0 out-a0 out-b0 done-0",
    "requests": "ask-0 say-0 think-0 [[cut out-a0 out-b0 done-0",
    "responses": "ask-0 say-0 think-0 [compac [compac done-0",
    "both": "ask-0 say-0 think-0 [[cut [compac [compac done-0",
    "omit": "ask-0 say-0 done-0 think-0",
    "summary": "[summary of summary-0",
    "overlap": "[summary of summary-0 [summary of summary-1",
})
EXPECTED = {
    "anthropic": ANTHROPIC,
    "openai": OPENAI,
    "google": GOOGLE,
    "openrouter": OPENROUTER,
    "cerebras": CEREBRAS,
    "llamacpp": CEREBRAS,
    "ollama": OLLAMA,
}
"""The first turn, or the summaries in place of both; the second one looks like it."""


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_a_provider_is_sent_of_a_stream_that_was_compacted(vendor: str) -> None:
    found = {scenario: request(vendor, scenario).body for scenario in SCENARIOS}

    for body in found.values():
        VENDORS[vendor].accept(body)
    turns = {scenario: told(body) for scenario, body in found.items()}
    assert {scenario: first for scenario, (first, *_) in turns.items()} == EXPECTED[vendor]
    assert {last for *_, last in turns.values()} == {turns["baseline"][-1]}
    for first, *between, _ in turns.values():
        assert [again.replace("1", "0") for again in between] == ([first] if first.startswith("ask-0") else [])
