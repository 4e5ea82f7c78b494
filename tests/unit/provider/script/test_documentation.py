"""The worked example of `docs/script-provider.md`, through the real turn and the real tools."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import get_args

import anyio
import pytest

from doubles import FakeClock, MemoryRecorder, Screen, kinds
from forked import run_jp
from jp.compaction.status_lines import PlainStatusFormatter
from jp.config.model import ToolConfig
from jp.conversation.entries import ChatRequest, CycleEnd
from jp.conversation.resource import Resource
from jp.provider.errors import RETRYABLE, ErrorKind
from jp.provider.script.provider import create, load_scenario
from jp.provider.script.scenario import Failure, Reply, When
from jp.tool.base import ConfiguredTool
from jp.tool.consent import Answers, Consent
from jp.tool.coordinator import ToolCoordinator, ToolPorts
from jp.tool.files.read_tools import ReadFile
from jp.turn.loop import TurnLoop, TurnOutcome
from jp.turn.machine import Limits, RetryPolicy
from jp.turn.ports import TurnPorts
from jp.turn.request import RequestSettings
from plain_names import PlainNames

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "script-provider.md"


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


class Workspace:
    """A workspace with the documented scenario, and one conversation in it."""

    def __init__(self, root: Path) -> None:
        scenario = root / ".jp" / "scenarios" / "review.toml"
        scenario.parent.mkdir(parents=True)
        scenario.write_text(page().partition("```toml\n")[2].partition("```")[0], encoding="utf-8")
        self.root = root
        self.recorder = MemoryRecorder()
        self.screen = Screen()

    def query(self, request: ChatRequest) -> TurnOutcome:
        """Play one turn as a new process would."""
        self.screen = Screen()
        settings = ToolConfig(enable=True, run="unattended")
        toolbox = {"fs_read_file": ConfiguredTool(tool=ReadFile(PlainNames()), settings=settings)}
        tools = ToolCoordinator(toolbox, ToolPorts(root=self.root, consent=Consent(Answers(), None)))
        provider = create("review", root=self.root, scenario=None)
        ports = TurnPorts(
            provider=provider,
            recorder=self.recorder,
            renderer=self.screen,
            tools=tools,
            clock=FakeClock(),
            status_formatter=PlainStatusFormatter(),
        )
        settings = RequestSettings(
            provider=provider.id, model="review", renderer=provider.renderer, tools=tools.definitions
        )
        turn = TurnLoop(ports, settings, limits=Limits(), retry=RetryPolicy(base_seconds=0))
        return anyio.run(turn.run, request)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_the_worked_example_plays_as_the_page_says(workspace: Workspace) -> None:
    (workspace.root / "app.py").write_text("print(eval(input()))\n", encoding="utf-8")

    assert workspace.query(ChatRequest(content="Please review app.py")).ending == "answered"
    assert workspace.screen.thought == "app.py is not attached, so I read it."
    assert workspace.screen.results == ["fs_read_file: ok"]
    assert workspace.screen.shown == "`app.py` calls `eval`: who controls its input controls the program."

    attached = Resource(uri="file:///w/app.py", name="app.py", text="print(input())\n")
    assert workspace.query(ChatRequest(content="Look again", resources=(attached,))).ending == "answered"
    assert workspace.screen.shown == "I looked at app.py again, and it is fine."
    assert len(workspace.screen.notices) == 1

    assert workspace.query(ChatRequest(content="Thanks for the review")).ending == "answered"
    assert workspace.screen.shown == "I only review files. You said: Thanks for the review"

    ends = [(entry.attempt, entry.finish) for entry in workspace.recorder.entries if isinstance(entry, CycleEnd)]
    assert ends == [(1, "tools"), (1, "stop"), (1, "error"), (2, "stop"), (1, "stop")]


def test_the_worked_example_says_what_it_cannot_read(workspace: Workspace) -> None:
    workspace.query(ChatRequest(content="Please review app.py"))

    assert workspace.screen.results == ["fs_read_file: error"]
    assert workspace.screen.shown == "I cannot read it: there is no file 'app.py'"
    assert kinds(workspace.recorder.entries).count("tool_call_response") == 1


def typed() -> list[tuple[str, str]]:
    """The commands of the worked example, and what the page says that they print."""
    (block,) = re.findall(r"```console\n(\$ echo.*?)```", page(), re.DOTALL)
    return [(command, said) for command, said in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", block, re.MULTILINE)]


def test_the_worked_example_works_as_it_is_typed(workspace: Workspace) -> None:
    assert run_jp("init", cwd=workspace.root).code == 0

    for command, said in typed():
        program, *arguments = shlex.split(command)
        if program == "jp":
            result = run_jp(*arguments, cwd=workspace.root)
            assert (result.code, result.stdout) == (0, said), result.stderr
        else:
            subprocess.run(["sh", "-c", command], cwd=workspace.root, check=True)


@pytest.mark.parametrize("keys", [Reply, When, Failure], ids=["reply", "when", "error"])
def test_the_page_names_every_key(keys: type[Reply | When | Failure]) -> None:
    for key in keys.__struct_fields__:
        assert re.search(rf"`{key}\b", page()), key


def test_the_page_names_every_kind_of_error_and_which_are_tried_again() -> None:
    (row,) = [line for line in page().splitlines() if line.startswith('| `kind = "…"`')]

    assert set(re.findall(r"`(\w+)`", row)) == set(get_args(ErrorKind))
    assert set(re.findall(r"`(\w+)`", row.partition("(")[0])) == RETRYABLE


def test_the_example_workspace_s_scenario_is_valid() -> None:
    scenario = load_scenario(ROOT / "workspace-example" / ".jp" / "scenarios" / "demo.toml")

    assert scenario.reply[-1].when == When()
