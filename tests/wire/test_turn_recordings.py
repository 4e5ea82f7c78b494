"""Recorded exchanges with tools, played through the real turn with a tool of the test's own."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import anyio
import pytest

from doubles import FakeClock, MemoryRecorder, Screen, messages
from jp.compaction.stand_ins import StatusLines
from jp.conversation.entries import ChatRequest, ChatResponse, CycleEnd, ToolCallRequest, ToolCallResponse
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ConfiguredTool, ToolInvocation, ToolOutput
from jp.tool.permission import Answers
from jp.tool.runner import ToolRunner
from jp.turn.loop import TurnLoop
from jp.turn.machine import Limits
from jp.turn.ports import TurnPorts
from jp.turn.request import RequestSettings
from jp.turn.retry import RetryPolicy
from loopback import Loopback, Reply
from provider_at import provider_at

DATA = os.environ.get("JP_TEST_DATA", "")
CASES = ("test_tool_call_auto", "test_tool_call_function", "test_tool_call_reasoning", "test_tool_call_stream")


class RunMe:
    """The tool that the recorded models were offered."""

    definition = ToolDefinition(
        name="run_me",
        description="Run me.",
        parameters={
            "type": "object",
            "properties": {
                "foo": {"type": "string"},
                "bar": {"type": ["string", "array"], "items": {"type": "string"}},
            },
            "required": ["bar"],
        },
    )

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        return ToolOutput(content=(TextBlock(text="working!"),))


def replies(recording: dict[str, Any], seed: str) -> list[Reply]:
    chance = random.Random(seed)
    bodies = [exchange["response"]["body"].encode() for exchange in recording["exchanges"]]
    return [Reply(body=body, cuts=tuple(sorted({chance.randrange(len(body)) for _ in range(30)}))) for body in bodies]


@pytest.mark.skipif(not DATA, reason="JP_TEST_DATA names no recordings")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_a_recorded_turn_with_a_tool_comes_out_as_it_was_expected(case: str, seed: int, tmp_path: Path) -> None:
    recording: dict[str, Any] = json.loads((Path(DATA) / "recordings" / "anthropic" / f"{case}.json").read_bytes())
    tool = ConfiguredTool(tool=RunMe(), run="unattended")
    runner = ToolRunner({"run_me": tool}, root=tmp_path, answers=Answers(), approver=None, notice=print)
    recorder, screen = MemoryRecorder(), Screen()

    with Loopback(*replies(recording, f"{case} {seed}")) as server:
        provider = provider_at(server.url)
        ports = TurnPorts(
            provider=provider,
            recorder=recorder,
            renderer=screen,
            tools=runner,
            clock=FakeClock(),
            stand_ins=StatusLines(),
        )
        settings = RequestSettings(
            provider="anthropic", model="claude-haiku-4-5", renderer=provider.renderer, tools=runner.definitions
        )
        turn = TurnLoop(ports, settings, limits=Limits(), retry=RetryPolicy())
        outcome = anyio.run(turn.run, ChatRequest(content="Please run the tool."))

    expected = recording["expected"]["turns"]
    calls = [entry for entry in recorder.entries if isinstance(entry, ToolCallRequest)]
    thoughts = [entry for entry in recorder.entries if isinstance(entry, ChatResponse) and entry.reasoning]
    assert outcome.ending == "answered"
    assert "".join(messages(recorder.entries)) == "".join(each["message_text"] for each in expected) == screen.shown
    assert [(call.call_id, call.name, call.arguments) for call in calls] == [
        (call["id"], call["name"], call["arguments"]) for each in expected for call in each["tool_calls"]
    ]
    assert [thought.reasoning for thought in thoughts] == [
        each["reasoning"]["text"] for each in expected if each["reasoning"]["present"]
    ]
    signatures = [
        part["metadata"]["anthropic_thinking_signature"]
        for each in expected
        for part in each["outcomes"]
        if part["kind"] == "reasoning"
    ]
    assert [(thought.metadata or {}).get("signature") for thought in thoughts] == signatures
    assert sum(isinstance(entry, ToolCallResponse) for entry in recorder.entries) == len(calls)
    assert [entry.finish for entry in recorder.entries if isinstance(entry, CycleEnd)] == ["tools", "stop"]
    assert len(server.requests) == len(recording["exchanges"])
    sent: Any = server.requests[1].json()
    assert sent["messages"][-1]["content"][0]["tool_use_id"] == calls[0].call_id
