"""Every recorded conversation, played through the real turn: each of its requests, with tools of the test's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import msgspec
import pytest

from doubles import FakeClock, MemoryRecorder, Screen
from jp.compaction.stand_ins import StatusLines
from jp.conversation.entries import AnyEntry, ChatRequest, ChatResponse, CycleEnd, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.provider.registry import PROVIDERS
from jp.tool.base import ConfiguredTool, ToolInvocation, ToolOutput
from jp.tool.permission import Answers
from jp.tool.runner import ToolRunner
from jp.turn.loop import TurnLoop, TurnOutcome
from jp.turn.machine import Limits
from jp.turn.ports import TurnPorts
from jp.turn.request import RequestSettings
from jp.turn.retry import RetryPolicy
from loopback import Loopback
from provider_at import provider_at
from recordings import Recording, recording_of, reply_to, streamed

CASES = {
    "anthropic": (
        *("chat_completion_stream", "image_attachment", "opus_4_6_adaptive_thinking", "request_chaining"),
        *("tool_call_auto", "tool_call_function", "tool_call_reasoning", "tool_call_stream"),
    ),
    "cerebras": (
        *("chat_completion_stream", "structured_output", "tool_call_auto", "tool_call_function"),
        *("tool_call_required_reasoning", "tool_call_stream", "unknown_model_auto_omits_effort"),
    ),
    "google": (
        *("gemini_3_reasoning", "multi_turn_conversation", "structured_output", "tool_call_reasoning"),
        *("tool_call_required_no_reasoning", "tool_call_required_reasoning"),
    ),
    "llamacpp": (
        *("image_attachment", "multi_turn_conversation", "tool_call_function", "tool_call_reasoning"),
        "tool_call_required_no_reasoning",
    ),
    "ollama": (
        *("chat_completion_stream", "image_attachment", "tool_call_auto", "tool_call_function"),
        *("tool_call_reasoning", "tool_call_stream"),
    ),
    "openai": (
        *("gpt_5_6_cache_off_sends_explicit_optout", "gpt_5_6_pro_reasoning_and_explicit_caching"),
        *("image_attachment", "multi_turn_conversation", "tool_call_function", "tool_call_reasoning"),
        "tool_call_required_no_reasoning",
    ),
    "openrouter": (
        *("anthropic_test_sub_provider_event_metadata", "minimax_test_sub_provider_event_metadata"),
        *("anthropic_opus_5_parallel_tool_round_trip", "chat_completion_stream", "multi_turn_conversation"),
        *("structured_output", "tool_call_auto", "tool_call_required_no_reasoning", "tool_call_required_reasoning"),
        "tool_call_stream",
    ),
}
OWN_IDS = frozenset({"google", "ollama"})
"""Where the recordings have ids that the recorder made up: ours are others."""


class Played:
    """A tool that says what it said when the conversation was recorded."""

    def __init__(self, name: str, results: Iterator[str]) -> None:
        self.definition = ToolDefinition(
            name=name, description="Run me.", parameters={"type": "object", "properties": {"foo": {"type": "string"}}}
        )
        self._results = results

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        return ToolOutput(content=(TextBlock(text=next(self._results)),))


def model_of(recording: Recording) -> str:
    """The model that was asked: it stands in the body, or in the path."""
    request = streamed(recording)[0]["request"]
    body: dict[str, Any] = request["body"]
    named: str = body.get("model") or request["path"].rpartition("/")[2].partition(":")[0]
    return named


def tools_of(events: Sequence[dict[str, Any]], root: Path) -> ToolRunner:
    results = iter([event["text"] for event in events if event["type"] == "tool_result"])
    names = sorted({event["name"] for event in events if event["type"] == "tool_call"})
    tools = {name: ConfiguredTool(tool=Played(name, results), run="unattended") for name in names}
    return ToolRunner(tools, root=root, answers=Answers(), approver=None, notice=print)


class Told(msgspec.Struct, frozen=True):
    """One piece of an answer: `value` is a text, arguments or data."""

    kind: str
    value: Any
    call_id: str = ""
    name: str = ""


ASKED = Told("asked", None)


def recorded(entries: Sequence[AnyEntry], *, own_ids: bool) -> Iterator[tuple[Told, str]]:
    """What the log holds of the answers, each with its metadata as JSON; what was asked stands between them."""
    for entry in entries:
        match entry:
            case ChatRequest():
                yield ASKED, ""
            case ChatResponse(message=str(text), metadata=metadata):
                yield Told("message", text), msgspec.json.encode(metadata).decode()
            case ChatResponse(reasoning=str(text), metadata=metadata):
                yield Told("reasoning", text), msgspec.json.encode(metadata).decode()
            case ChatResponse(metadata=metadata):
                yield Told("structured", entry.data), msgspec.json.encode(metadata).decode()
            case ToolCallRequest(call_id=call_id, name=name, arguments=arguments, metadata=metadata):
                yield Told("tool_call", arguments, "" if own_ids else call_id, name), str(metadata)
            case _:
                pass


def joined(told: Sequence[tuple[Told, str]]) -> list[tuple[Told, str]]:
    """The pieces of an answer that was continued as one."""
    whole: list[tuple[Told, str]] = []
    for each, metadata in told:
        if each.kind == "message" and whole and whole[-1][0].kind == "message":
            before, opaque = whole.pop()
            whole.append((Told("message", before.value + each.value), opaque + metadata))
        else:
            whole.append((each, metadata))
    return [each for each in whole if each[0] != ASKED]


def by_kind(told: Sequence[Told]) -> dict[str, list[Any]]:
    """All that was thought, said and called: for a model that thought again in the middle of a sentence."""
    kinds = ("reasoning", "message", "tool_call")
    texts = {kind: [each.value for each in told if each.kind == kind] for kind in kinds}
    return {
        "reasoning": ["".join(texts["reasoning"])],
        "message": ["".join(texts["message"])],
        "tool_call": texts["tool_call"],
    }


def as_expected(outcome: dict[str, Any], *, own_ids: bool) -> Told:
    match outcome["kind"]:
        case "tool_call":
            return Told("tool_call", outcome["arguments"], "" if own_ids else outcome["id"], outcome["name"])
        case "structured":
            return Told("structured", outcome["data"])
        case kind:
            return Told(kind, outcome["text"])


def is_within(value: Any, metadata: str) -> bool:
    """Whether the opaque texts of a recording stand in our metadata, byte for byte; `field` is the recorder's own."""
    match value:
        case str():
            return msgspec.json.encode(value).decode().strip('"') in metadata
        case dict():
            opaque = cast("dict[str, Any]", value)
            return all(is_within(below, metadata) for name, below in opaque.items() if name != "field")
        case list():
            return all(is_within(below, metadata) for below in cast("list[Any]", value))
        case _:
            return True


async def play(
    recording: Recording, recorder: MemoryRecorder, screen: Screen, *, url: str, root: Path
) -> list[TurnOutcome]:
    """Ask everything that the user asked, one turn after the other."""
    events: list[dict[str, Any]] = recording["expected"]["conversation"]["events"]
    name = recording["provider"]
    runner = tools_of(events, root)
    provider = provider_at(url, provider=name, model=model_of(recording))
    ports = TurnPorts(
        provider=provider,
        recorder=recorder,
        renderer=screen,
        tools=runner,
        clock=FakeClock(),
        stand_ins=StatusLines(),
    )
    settings = RequestSettings(
        provider=name, model=model_of(recording), renderer=provider.renderer, tools=runner.definitions
    )
    outcomes: list[TurnOutcome] = []
    for event in events:
        if event["type"] == "user":
            turn = TurnLoop(ports, settings, limits=Limits(), retry=RetryPolicy())
            outcomes.append(await turn.run(ChatRequest(content=event["text"], schema=event.get("schema"))))
    return outcomes


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(
    ("provider", "case"), [(provider, case) for provider, cases in CASES.items() for case in cases]
)
def test_a_recorded_conversation_comes_out_as_it_was_expected(
    provider: str, case: str, end: str, tmp_path: Path
) -> None:
    prefix = "" if "test_" in case else "test_"
    recording = recording_of(provider, f"{prefix}{case}")
    recorder, screen = MemoryRecorder(), Screen()
    exchanges = streamed(recording)

    replies = [reply_to(exchange, f"{case} {end} {i}", end=end) for i, exchange in enumerate(exchanges)]
    with Loopback(*replies) as server:
        outcomes = anyio.run(lambda: play(recording, recorder, screen, url=server.url, root=tmp_path))
        assert len(server.requests) == len(exchanges)

    own_ids = provider in OWN_IDS
    expected = [outcome for turn in recording["expected"]["turns"] for outcome in turn["outcomes"]]
    told = joined(list(recorded(recorder.entries, own_ids=own_ids)))
    says_nothing = not recording["expected"]["turns"][-1]["outcomes"]
    assert [outcome.ending for outcome in outcomes[:-1]] == ["answered"] * (len(outcomes) - 1)
    assert outcomes[-1].ending == ("empty" if says_nothing else "answered")
    wanted = [as_expected(outcome, own_ids=own_ids) for outcome in expected]
    if any(quirk.startswith("interleaving") for quirk in recording["expected"]["quirks"]):
        assert by_kind([each for each, _ in told]) == by_kind(wanted)
        return
    assert [each for each, _ in told] == wanted
    for (_, metadata), outcome in zip(told, expected, strict=True):
        opaque: dict[str, Any] = outcome.get("metadata") or {}
        assert [value for value in opaque.values() if not is_within(value, metadata)] == []
    calls = [entry for entry in recorder.entries if isinstance(entry, ToolCallRequest)]
    answered = [entry.request for entry in recorder.entries if isinstance(entry, ToolCallResponse)]
    assert [call.id for call in calls] == answered
    assert all(entry.finish in {"stop", "tools", "length"} for entry in recorder.entries if isinstance(entry, CycleEnd))


def test_recordings_of_every_provider_are_played() -> None:
    assert {*CASES, "script"} == set(PROVIDERS)
