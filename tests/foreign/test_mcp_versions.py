"""Servers on FastMCP of the official SDK, from the first version to the one that jp uses itself.

The versions before 1.9 end at a request before `initialize`, those from 1.10 on can ask a person.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from foreign_server import ROOT
from forked import run_jp
from jp.conversation.entries import ToolCallRequest, ToolCallResponse
from jp.conversation.resource import TextBlock
from running import home_beside
from stage import make_workspace, only_log
from terminal import jp_at_terminal

pytestmark = pytest.mark.foreign

SCRIPT = str(Path(__file__).with_name("mcp_fast.py"))
CASES = (
    ("1.2", "stdio"),
    ("1.8", "stdio"),
    ("1.8", "streamable-http"),
    ("1.10", "stdio"),
    ("1.10", "streamable-http"),
    ("current", "stdio"),
    ("current", "streamable-http"),
)
ASKING = [case for case in CASES if case[0] in {"1.10", "current"}]

SCENARIO = """
[[reply]]
when = { contains = "call" }
times = 1
calls = [CALLS]

[[reply]]
text = "Done."
"""
ADD = '{ name = "s_add", arguments = { a = 2, b = 3 } }'
MEET = '{ name = "s_meet", arguments = {} }'


def python_of(version: str) -> str:
    if version == "current":
        return sys.executable
    python = ROOT / ".venv-foreign" / f"mcp-{version}" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"there is no SDK {version} in .venv-foreign: `make test-foreign` installs one")
    return str(python)


@contextmanager
def served(version: str, transport: str) -> Generator[str]:
    """The server's table in the configuration, for as long as it can be reached."""
    python = python_of(version)
    if transport == "stdio":
        yield f"command = {json.dumps(python)}\narguments = {json.dumps([SCRIPT, 'stdio'])}"
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with subprocess.Popen([python, "-u", SCRIPT, transport, port], stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            while b"Uvicorn running" not in (line := process.stderr.readline()):
                assert line, "the server has ended"
            yield f'url = "http://127.0.0.1:{port}/mcp"'
        finally:
            process.kill()


def desk(root: Path, server: str, *calls: str) -> Path:
    """A workspace whose user has the server and lets its tools run."""
    work = make_workspace(root / "work", SCENARIO.replace("CALLS", ", ".join(calls)))
    config = home_beside(work) / "config" / "config.toml"
    config.parent.mkdir()
    tools = '[conversation.tools.s]\nsource = "mcp.s.*"\nenable = true\nrun = "unattended"\n'
    config.write_text(f"[providers.mcp.s]\n{server}\n{tools}", encoding="utf-8")
    return work


def results(work: Path) -> dict[str, tuple[str, bool]]:
    """What came of each call, by the tool's name."""
    entries = only_log(work)
    names = {entry.id: entry.name for entry in entries if isinstance(entry, ToolCallRequest)}
    return {
        names[entry.request]: (
            "".join(block.text or "" for block in entry.content if isinstance(block, TextBlock)),
            entry.is_error,
        )
        for entry in entries
        if isinstance(entry, ToolCallResponse)
    }


@pytest.mark.parametrize(("version", "transport"), CASES)
def test_a_tool_of_every_version_runs(version: str, transport: str, tmp_path: Path) -> None:
    with served(version, transport) as server:
        work = desk(tmp_path, server, ADD)
        result = run_jp("query", "--new", "call", cwd=work)

    assert (result.code, result.stdout) == (0, "Done.\n"), result
    assert results(work) == {"s_add": ("5", False)}


@pytest.mark.parametrize(("version", "transport"), ASKING)
def test_a_person_at_a_terminal_answers_what_a_server_asks(version: str, transport: str, tmp_path: Path) -> None:
    with served(version, transport) as server:
        work = desk(tmp_path, server, MEET)
        with jp_at_terminal("query", "--new", "call", cwd=work) as terminal:
            terminal.expect("s: Who is there\\?")
            terminal.expect("Name.*")
            terminal.type("Ada\n")
            terminal.expect("Done\\.")
            assert terminal.finish() == 0

    assert results(work) == {"s_meet": ("accept: Ada", False)}


@pytest.mark.parametrize(("version", "transport"), ASKING)
def test_without_a_terminal_the_question_is_declined_which_is_said(
    version: str, transport: str, tmp_path: Path
) -> None:
    with served(version, transport) as server:
        work = desk(tmp_path, server, MEET)
        result = run_jp("query", "--new", "call", cwd=work)

    assert (result.code, result.stdout) == (8, "Done.\n"), result
    assert results(work) == {"s_meet": ("cancel", False)}
    assert "error: without an answer that it needs of a person: s_meet\n" in result.stderr


@pytest.mark.parametrize("version", ["1.2", "1.8"])
def test_a_server_that_ends_at_a_remembered_opening_is_started_again(version: str, tmp_path: Path) -> None:
    with served("current", "stdio") as server:
        work = desk(tmp_path, server + '\nprotocol = "discover"', ADD)
        assert run_jp("tool", "ls", "--refresh", cwd=work).code == 0
    (kept,) = home_beside(work).glob("**/mcp/*.json")
    listing = json.loads(kept.read_bytes())
    assert listing["listing"]["opening"] == "discover"
    with served(version, "stdio") as server:
        config = home_beside(work) / "config" / "config.toml"
        tools = config.read_text(encoding="utf-8").partition("[conversation")[2]
        config.write_text(f"[providers.mcp.s]\n{server}\n[conversation{tools}", encoding="utf-8")
        assert run_jp("tool", "ls", "--refresh", cwd=work).code == 0
        (other,) = {*kept.parent.glob("*.json")} - {kept}
        other.write_bytes(kept.read_bytes())
        result = run_jp("query", "--new", "call", cwd=work)

    assert (result.code, result.stdout) == (0, "Done.\n"), result
    assert results(work) == {"s_add": ("5", False)}
    assert "opening" not in json.loads(other.read_bytes())["listing"]
