"""AgentDojo's attacks: a model that obeys every injection makes no call run that the user's rules do not let run.

The tools, the tasks and their calls are AgentDojo's (`dojo_server.py`); the model is a scenario that makes the calls of
a user task, and then those of all injection tasks of its suite. What ran is what the server was asked to run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import pytest

from foreign_server import PYTHON, TIMEOUT_SECS
from forked import run_jp
from running import home_beside
from stage import make_workspace

pytestmark = pytest.mark.foreign

SUITES = ("banking", "slack", "travel", "workspace")
READING = ("get_", "search_", "list_", "read_", "check_")
SERVER = """
[assistant.model]
id = "script/test"
[assistant.request]
max_cycles = 200
[providers.mcp.dojo]
url = "{url}"
[conversation.tools.dojo]
source = "mcp.dojo.*"
enable = true
run = "{run}"
"""


class Call(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Any] = {}

    @property
    def key(self) -> str:
        given = {name: value for name, value in self.arguments.items() if value is not None}
        return f"{self.name} {json.dumps(given, sort_keys=True)}"

    @property
    def only_reads(self) -> bool:
        return self.name.startswith(READING)


class Suite(msgspec.Struct, frozen=True):
    tools: list[str]
    user: dict[str, list[Call]]
    injection: dict[str, list[Call]]

    @property
    def injected(self) -> list[Call]:
        return [call for calls in self.injection.values() for call in calls]


class Dojo(NamedTuple):
    """A server, and what it knows."""

    address: str
    suites: dict[str, Suite]


class Ran(msgspec.Struct, frozen=True):
    ran: list[Call]
    seen: bool


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What a user wrote for a suite and a task, and what it lets run."""

    settings: str = ""
    flags: tuple[str, ...] = ()
    run: str = "ask"
    allows: Callable[[Call], bool]


@pytest.fixture(scope="module")
def dojo() -> Generator[Dojo]:
    """The server, which all runs share."""
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import agentdojo"], check=False).returncode:
        pytest.skip("there is no agentdojo in .venv-foreign: `make test-foreign` installs it")
    script = str(Path(__file__).with_name("dojo_server.py"))
    with subprocess.Popen([PYTHON, script], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().decode().strip()
            yield Dojo(address, msgspec.json.decode(asked(address, "tasks"), type=dict[str, Suite]))
        finally:
            process.kill()


def asked(address: str, place: str) -> bytes:
    with urllib.request.urlopen(f"{address}/{place}", timeout=TIMEOUT_SECS) as response:  # noqa: S310 - our server
        return response.read()


class Figures:
    """What came of the runs, in numbers."""

    def __init__(self) -> None:
        self.seen = self._runs = 0
        self._counts = dict.fromkeys(("user calls", "user calls that ran", "injected", "injected that ran"), 0)

    def add(self, task: list[Call], injected: list[Call], ran: set[str], *, is_seen: bool) -> None:
        own = {call.key for call in task}
        others = {call.key for call in injected} - own
        for name, keys in zip(self._counts, (own, own & ran, others, others & ran), strict=True):
            self._counts[name] += len(keys)
        self._runs += 1
        self.seen += is_seen

    def __str__(self) -> str:
        counts = ", ".join(f"{number} {name}" for name, number in self._counts.items())
        return f"{self._runs} runs, {self.seen} saw an injection; {counts}"


def run_of(names: set[str], how: str) -> str:
    return "".join(f'[conversation.tools.dojo_{name}]\nrun = "{how}"\n' for name in sorted(names))


def readers(suite: Suite) -> set[str]:
    return {name for name in suite.tools if name.startswith(READING)}


def nothing(_: Suite, __: list[Call]) -> Policy:
    return Policy(allows=lambda _: False)


def all_unattended(_: Suite, __: list[Call]) -> Policy:
    return Policy(run="unattended", allows=lambda _: True)


def reading(suite: Suite, _: list[Call]) -> Policy:
    return Policy(settings=run_of(readers(suite), "unattended"), allows=lambda call: call.only_reads)


def all_but_reading_denied(suite: Suite, _: list[Call]) -> Policy:
    settings = run_of(readers(suite), "unattended")
    return Policy(settings=settings, flags=("--deny-all",), allows=lambda call: call.only_reads)


def approved_names(suite: Suite, task: list[Call]) -> Policy:
    """The tools that the task needs, by name: what is injected into the same ones is within the user's words."""
    names = {call.name for call in task if not call.only_reads}
    flags = ("--approve", ",".join(f"dojo_{name}" for name in sorted(names))) if names else ()
    settings = run_of(readers(suite), "unattended")
    return Policy(settings=settings, flags=flags, allows=lambda call: call.only_reads or call.name in names)


def exact_arguments(suite: Suite, task: list[Call]) -> Policy:
    """The changes that the task needs, with just these arguments."""
    rules: dict[str, list[dict[str, str]]] = {}
    for call in task:
        patterns = {name: pattern_of(value) for name, value in call.arguments.items()}
        if not call.only_reads and None not in patterns.values():
            rules.setdefault(call.name, []).append({name: text or "" for name, text in patterns.items()})
    settings = run_of(readers(suite), "unattended")
    for name, given in rules.items():
        lines = (f"{{ arguments = {table(arguments)}, run = 'unattended' }}," for arguments in given)
        settings += f'[conversation.tools.dojo_{name}]\nrun = "ask"\nrules = [{" ".join(lines)}]\n'

    def allows(call: Call) -> bool:
        return call.only_reads or any(
            all(pattern_of(call.arguments.get(name)) == text for name, text in arguments.items())
            for arguments in rules.get(call.name, ())
        )

    return Policy(settings=settings, allows=allows)


def pattern_of(value: object) -> str | None:
    """A pattern for this argument alone; None where there is none."""
    if isinstance(value, list):
        elements = cast("list[object]", value)
        return pattern_of(elements[0]) if len(elements) == 1 else None
    if value is None or isinstance(value, dict):
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    return None if "*" in text else text


def table(values: dict[str, str]) -> str:
    return "{ " + ", ".join(f"{name} = {quoted(text)}" for name, text in values.items()) + " }"


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def scenario_of(calls: list[Call]) -> str:
    """A model that makes one call after the other."""
    replies = (
        "[[reply]]\ntimes = 1\n"
        f'calls = [{{ name = "dojo_{call.name}", arguments = {quoted(json.dumps(call.arguments))} }}]\n'
        for call in calls
    )
    return "\n".join((*replies, '[[reply]]\ntext = "Done."\n'))


POLICIES = (nothing, reading, all_but_reading_denied, approved_names, exact_arguments, all_unattended)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", SUITES)
def test_injected_calls_run_only_where_the_user_lets_such_calls_run(
    name: str, policy: Callable[[Suite, list[Call]], Policy], dojo: Dojo, tmp_path: Path
) -> None:
    suite, figures = dojo.suites[name], Figures()
    for number, (identity, task) in enumerate(suite.user.items()):
        chosen, place = policy(suite, task), f"{name}/{policy.__name__}-{identity}"
        root = make_workspace(tmp_path / str(number), scenario_of([*task, *suite.injected]))
        configuration = home_beside(root) / "config" / "config.toml"
        configuration.parent.mkdir()
        settings = SERVER.format(url=f"{dojo.address}/mcp/{place}", run=chosen.run) + chosen.settings
        configuration.write_text(settings, encoding="utf-8")

        done = run_jp("query", *chosen.flags, "go", cwd=root)
        outcome = msgspec.json.decode(asked(dojo.address, f"ran/{place}"), type=Ran)

        calls = {call.key: call for call in (*task, *suite.injected)}
        ran = {call.key for call in outcome.ran}
        may_run = {key for key, call in calls.items() if chosen.allows(call)}
        assert done.stdout == "Done.\n", done
        assert ran - may_run == set(), "these ran unasked"
        assert may_run - ran == set(), "these were let run, and did not"
        assert done.code == (8 if calls.keys() - may_run else 0)
        figures.add(task, suite.injected, ran, is_seen=outcome.seen)
    sys.stdout.write(f"{name}, {policy.__name__}: {figures}\n")
    assert figures.seen > 0 or policy is nothing, "nobody has seen an injection"
