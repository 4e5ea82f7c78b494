"""Many turns on a small window: no request is too long, nothing that matters is lost, the log only grows."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncGenerator, Sequence
from itertools import count
from pathlib import Path

import anyio
import pytest

from doubles import FakeClock, Screen
from jp.app.options import Options
from jp.app.query import auto_compaction
from jp.app.query.arguments import QueryArguments
from jp.app.query.auto_compaction import AutomaticCompaction
from jp.app.query.conversation import QueryContext
from jp.app.query.screen import Dialogue, NoScreen
from jp.app.query.wiring import Wiring
from jp.app.settings import read_sources
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.log_contents import contents_in, handles_of
from jp.compaction.projection import project
from jp.config.assignment import read_partial
from jp.config.entries import ToolConfig
from jp.config.layers import config_of
from jp.conversation.entries import AnyEntry, ChatRequest, Compaction, Facts
from jp.conversation.resource import TextBlock
from jp.conversation.thread import AssistantText, ToolDefinition, UserText
from jp.provider.base import Part, Provider, Sections, WireRequest
from jp.provider.registry import ModelId
from jp.provider.script.provider import create
from jp.tool.base import ConfiguredTool, ToolInvocation, ToolOutput
from jp.tool.consent import Answers, Consent
from jp.tool.coordinator import ToolCoordinator, ToolPorts
from jp.turn.loop import TurnLoop
from jp.turn.machine import Limits, RetryPolicy
from jp.turn.measuring import PromptSize, RelayingProvider, prompt_size
from jp.turn.ports import TurnPorts
from jp.turn.request import RequestSettings
from jp.workspace.log import Log
from jp.workspace.session import SessionKey
from jp.workspace.workspace import Workspace
from workspaces import fixed_stamps, new_conversation, new_workspace, open_log_of

TURNS, WINDOW, RESERVED = (300, 10_000, 2_000) if int(os.environ.get("JP_TEST_EXAMPLES") or 0) else (28, 3_500, 800)
"""Most of what can go wrong does in few turns on a third of the window; who looks for more examples gets more turns."""

MOST_OVERLAYS = 4

SCENARIO = """
[[reply]]
when = { contains = "build" }
reasoning = "I run it."
calls = [{ name = "run", arguments = { command = "{{user}}" } }]

[[reply]]
when = { tool = "run" }
text = "It ran. These are some words about how it went, for the record."

[[reply]]
text = "Noted, and I say so in a sentence that has some length, as models do."
"""

ACCOUNT = '{"goal": "build all", "next_step": "build on", "requirements": []}'
GOOD = (f"text = '''{ACCOUNT}'''",)
BAD = (
    'text = "I would rather not."',
    'text = ""\nstop = "stop"',
    'text = "{"\nstop = "length"',
    *(f'error = {{ kind = "{kind}" }}\ntext = "x"' for kind in ("timeout", "connect", "quota", "authentication")),
    *(f'error = {{ kind = "{kind}" }}\ntext = "x"' for kind in ("transient", "rate_limit", "context_too_long")),
)


class Run:
    """A tool whose results are long."""

    definition = ToolDefinition(
        name="run", description="Run it.", parameters={"type": "object", "properties": {"command": {"type": "string"}}}
    )

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        command = invocation.arguments["command"]
        text = f"output of {command}\n" * 40
        return ToolOutput(content=(TextBlock(text=text),), facts=Facts(kind="terminal", exit_code=0))


class Scale(RelayingProvider):
    """Weighs every request that is sent."""

    def __init__(self, inner: Provider) -> None:
        super().__init__(inner)
        self.sizes: list[int] = []

    async def stream(self, request: WireRequest) -> AsyncGenerator[Part, None]:
        self.sizes.append(prompt_size(request.sections).total)
        async for part in self.inner.stream(request):
            yield part


class Spoken(Options, frozen=True, kw_only=True):
    """Options that keep what is said."""

    said: list[str]

    def notice(self, text: str) -> None:
        self.said.append(text)

    def log(self, text: str, *, level: int = 1) -> None:
        self.said.append(text)


def context_of(workspace: Workspace, said: list[str]) -> QueryContext:
    assert workspace.root is not None
    return QueryContext(
        options=Spoken(said=said),
        arguments=QueryArguments(),
        screen=NoScreen(),
        workspace=workspace,
        session=workspace.session(SessionKey(source="JP_SESSION", value="here")),
        root=workspace.root,
        sources=read_sources(Options(), workspace),
    )


def wired(root: Path, provider: Provider, context: QueryContext) -> Wiring:
    config = config_of(
        read_partial({
            "assistant": {"request": {"max_retries": 0}},
            "conversation": {
                "compaction": {
                    "keep_last": 2,
                    "auto": {"enabled": True, "profile": "told", "trigger_ratio": 0.8},
                    "profiles": {"told": {"summary": {"policy": "summarize", "model": "script/summaries"}}},
                }
            },
            "providers": {"llm": {"script": {"models": {"main": {"context_window": WINDOW, "max_output": RESERVED}}}}},
        })
    )
    tools = ToolCoordinator(
        {"run": ConfiguredTool(tool=Run(), settings=ToolConfig(run="unattended"))},
        ToolPorts(root=root, consent=Consent(Answers(), None)),
    )
    settings = RequestSettings(
        provider="script", model="main", renderer=provider.renderer, system=("You build.",), tools=tools.definitions
    )
    return Wiring(
        context=context,
        config=config,
        model=ModelId("script", "main"),
        provider=provider,
        tools=tools,
        settings=settings,
        dialogue=Dialogue(),
    )


def words_of(entries: Sequence[AnyEntry]) -> str:
    """All words of the view, with those that it can recall by a handle which stands in it."""
    events = project(entries, StatusLineFormatter()).events
    text = "\n".join(event.text for event in events if isinstance(event, UserText | AssistantText))
    handles = handles_of(entries)
    contents = {handles[sha256]: content for entry in entries for sha256, content in contents_in(entry)}
    waiting = [text]
    while waiting:
        named = waiting.pop()
        for handle in [handle for handle in contents if handle in named]:
            found = getattr(contents.pop(handle), "text", None) or ""
            text += found
            waiting.append(found)
    return text


class Soak:
    """A conversation that goes on and on. Each process opens its log anew; its summarizer fails as it likes."""

    def __init__(self, directory: Path, summaries: Sequence[str]) -> None:
        self.chance = random.Random(5)
        self.summaries = summaries
        self.workspace = new_workspace(directory, stamps=fixed_stamps())
        self.root = directory / "work"
        self.scenarios = self.root / ".jp" / "scenarios"
        self.scenarios.mkdir(exist_ok=True)
        (self.scenarios / "main.toml").write_text(SCENARIO, encoding="utf-8")
        self.info = new_conversation(self.workspace)
        self.scale = Scale(create("main", root=self.root, scenario=None))
        self.said: list[str] = []
        self.asked: list[str] = []
        self.wiring = wired(self.root, self.scale, context_of(self.workspace, self.said))

    async def process(self, turns: Sequence[int]) -> None:
        with open_log_of(self.workspace, self.info) as log:
            for number in turns:
                summary = self.chance.choice(self.summaries)
                (self.scenarios / "summaries.toml").write_text(f"[[reply]]\n{summary}\n", encoding="utf-8")
                before = tuple(log.entries)
                await self.turn(log, f"build part {number}" if number % 3 else f"Requirement {number}: keep it small.")
                assert tuple(log.entries[: len(before)]) == before
                assert sum(isinstance(entry, Compaction) for entry in log.entries[len(before) :]) <= MOST_OVERLAYS

    async def turn(self, log: Log, text: str) -> None:
        automatic = AutomaticCompaction(self.wiring, log, str(self.info.id))
        ports = TurnPorts(
            provider=self.scale,
            recorder=log,
            renderer=Screen(),
            tools=self.wiring.tools,
            clock=FakeClock(),
            status_formatter=StatusLineFormatter(),
            room=automatic,
        )
        self.asked.append(text)
        turn = TurnLoop(ports, self.wiring.settings, limits=Limits(max_cycles=5), retry=RetryPolicy(max_retries=0))
        outcome = await turn.run(ChatRequest(content=text))
        assert outcome.ending == "answered", (text, outcome.error)


@pytest.mark.parametrize(
    ("summaries", "writers"),
    [(GOOD, {"script/summaries"}), (BAD, {None}), ((*GOOD * 3, *BAD), {"script/summaries", None})],
    ids=["reliable", "failing", "mixed"],
)
def test_a_long_conversation_on_a_small_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, summaries: Sequence[str], writers: set[str | None]
) -> None:
    clock = count(1_000_000.0, 40.0)
    monkeypatch.setattr(auto_compaction, "time", lambda: next(clock))
    soak = Soak(tmp_path, summaries)
    waiting = list(range(TURNS))

    while waiting:
        until = soak.chance.randint(1, 40)
        anyio.run(soak.process, waiting[:until])
        waiting = waiting[until:]

    entries = soak.workspace.read(soak.info).entries
    made = [entry for entry in entries if isinstance(entry, Compaction)]
    written = {entry.summary.model for entry in made if entry.summary is not None}
    assert max(soak.scale.sizes) <= WINDOW - RESERVED
    assert {entry.summary is None for entry in made} == {True, False}
    assert written
    assert written <= writers
    assert any("no summary" in sentence for sentence in soak.said) is (summaries != GOOD)
    words = words_of(entries)
    assert [text for text in soak.asked if text not in words] == []


def test_a_request_that_is_clearly_small_enough_is_not_estimated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimated: list[int] = []

    def counted(sections: Sections) -> PromptSize:
        size = prompt_size(sections)
        estimated.append(size.total)
        return size

    monkeypatch.setattr(auto_compaction, "prompt_size", counted)
    monkeypatch.setitem(globals(), "WINDOW", 20_000)
    soak = Soak(tmp_path, GOOD)

    anyio.run(soak.process, range(1, 5))

    assert len(soak.scale.sizes) == 7
    assert len(estimated) == 4
