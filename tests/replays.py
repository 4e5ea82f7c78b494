"""Recorded conversations, asked again: every request of their user through the real turn, with tools of our own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from doubles import FakeClock, MemoryRecorder, Screen
from jp.compaction.status_lines import PlainStatusFormatter
from jp.config.entries import ToolConfig
from jp.conversation.entries import ChatRequest
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ConfiguredTool, ToolInvocation, ToolOutput
from jp.tool.consent import Answers, Consent
from jp.tool.coordinator import ToolCoordinator, ToolPorts
from jp.turn.loop import TurnLoop, TurnOutcome
from jp.turn.machine import Limits, RetryPolicy
from jp.turn.ports import TurnPorts
from jp.turn.request import RequestSettings
from provider_at import provider_at
from recordings import Recording, streamed

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


def file_of(case: str) -> str:
    """The name of a case's file."""
    return case if "test_" in case else f"test_{case}"


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


def tools_of(events: Sequence[dict[str, Any]], root: Path) -> ToolCoordinator:
    results = iter([event["text"] for event in events if event["type"] == "tool_result"])
    names = sorted({event["name"] for event in events if event["type"] == "tool_call"})
    tools = {name: ConfiguredTool(tool=Played(name, results), settings=ToolConfig(run="unattended")) for name in names}
    return ToolCoordinator(tools, ToolPorts(root=root, consent=Consent(Answers(), None)))


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
        status_formatter=PlainStatusFormatter(),
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
