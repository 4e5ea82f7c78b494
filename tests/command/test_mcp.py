"""Tools and resources of MCP servers: what is remembered of them, when they start, and what becomes of their failures.

The servers are a user's own, so that they need no trust, but where it is about that.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event

import pytest

from chat_wire import answer, says
from failures import check_failure
from forked import run_jp, start_jp
from jp.conversation.entries import ChatRequest, ToolCallResponse
from jp.conversation.resource import TextBlock
from loopback import Loopback, Reply
from mcp_connections import PATIENCE, SERVER
from running import Result, home_beside
from running import run_jp as plain_jp
from stage import ECHO, entries_of, logs, make_workspace

CALLS = """
[[reply]]
when = { contains = "call" }
times = 1
calls = [{ name = "notes_echo", arguments = { text = "hé" } }, { name = "notes_die", arguments = {} }]

[[reply]]
text = "Done."
"""
GROUP = """
[conversation.tools.notes]
source = "mcp.notes.*"
enable = true
run = "unattended"
[conversation.tools.notes_die]
run = "ask"
"""
STARTING = "note: starting the MCP server 'notes', whose tools are not known yet\n"


def settings(environment: Mapping[str, str], *, tools: str = GROUP, more: str = "") -> str:
    variables = ", ".join(f'{name} = "{value}"' for name, value in environment.items())
    return f"""
[providers.mcp.notes]
command = "{sys.executable}"
arguments = ["-S", "-I", "{SERVER}"]
environment = {{ {variables} }}
{more}
{tools}
"""


def configure(work: Path, text: str) -> None:
    """Make `text` the user's own configuration."""
    path = home_beside(work) / "config" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def desk(root: Path, *, tools: str = GROUP, more: str = "", scenario: str = CALLS, **environment: str) -> Path:
    """A workspace whose user has a server."""
    work = make_workspace(root / "work", scenario)
    trace = {"MCP_TRACE": str(root / "trace"), "MCP_TOOLS": "echo,die", **environment}
    configure(work, settings(trace, tools=tools, more=more))
    return work


def heard(work: Path) -> list[str]:
    """What the server has been asked since this was looked at last."""
    trace = work.parent / "trace"
    if not trace.exists():
        return []
    lines = trace.read_text(encoding="utf-8").splitlines()
    trace.unlink()
    return lines


def opened_pipe(path: Path) -> int:
    """A new pipe, in which there is something to read only when a server has written it; it never ends."""
    os.mkfifo(path)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)


def offered(result: Result) -> list[str]:
    """The tools on servers of a request that a dry run has shown."""
    assert result.code == 0, result
    tools = json.loads(result.stdout)["request"]["body"]["tools"]
    return [tool["name"] for tool in tools if tool["name"].startswith("notes")]


def query(work: Path, *arguments: str) -> Result:
    return run_jp("query", "--new", *arguments, cwd=work)


def test_a_server_is_waited_for_once_and_its_tools_are_remembered(tmp_path: Path) -> None:
    work = desk(tmp_path)

    first = query(work, "--dry-run", "--format", "json", "hello")
    assert offered(first) == ["notes_die", "notes_echo"]
    assert json.loads(first.stderr) == {"schema": 1, "note": STARTING.removeprefix("note: ").rstrip()}
    assert heard(work)[-1] == "tools/list"

    second = query(work, "--dry-run", "--format", "json", "hello")
    assert (offered(second), second.stderr) == (["notes_die", "notes_echo"], "")
    assert offered(query(work, "--dry-run", "--format", "json", "--no-tool=notes_die", "hello")) == ["notes_echo"]
    assert heard(work) == []


def test_calls_start_the_server_and_its_death_costs_its_own_tools_only(tmp_path: Path) -> None:
    work = desk(tmp_path)
    query(work, "--dry-run", "hello")
    heard(work)

    result = query(work, "--approve", "notes", "call")

    died = "the MCP server 'notes' ended with exit code 3; the last that it said: the disk is on fire"
    assert (result.code, result.stdout) == (0, "Done.\n")
    assert f"note: {died}\n" in result.stderr
    responses = [entry for entry in entries_of(logs(work)[-1]) if isinstance(entry, ToolCallResponse)]
    assert [response.content for response in responses] == [(TextBlock(text="hé"),), (TextBlock(text=died),)]
    assert [response.is_error for response in responses] == [False, True]
    assert "tools/call" in heard(work)


def test_a_remembered_server_starts_while_the_model_answers(tmp_path: Path) -> None:
    work = desk(tmp_path)
    query(work, "--dry-run", "hello")
    heard(work)
    started = opened_pipe(tmp_path / "trace")
    answers = Event()

    with Loopback(Reply(body=answer(*says("Done.")), gates={0: answers})) as model:
        to_model = ("--cfg", f"providers.llm.llamacpp.base_url={model.url}/v1", "--model", "llamacpp/any")
        process = start_jp("query", "--new", "--no-stdin", *to_model, "hello", cwd=work)
        try:
            assert select.select([started], [], [], PATIENCE)[0]
            model.wait_for_requests(1)
        finally:
            answers.set()
            os.close(started)
            out, _ = process.communicate()

    assert out == b"Done.\n"


def test_a_tool_of_a_server_asks_whatever_the_server_says_of_it(tmp_path: Path) -> None:
    work = desk(tmp_path)

    result = query(work, "call")

    assert (result.code, result.stdout) == (8, "Done.\n")
    assert STARTING in result.stderr
    assert "notes_die" in result.stderr


def test_the_log_says_when_a_server_started_was_ready_and_ended(tmp_path: Path) -> None:
    work = desk(tmp_path, scenario=ECHO, MCP_SECRET="sesame-open-up")

    result = query(work, "-v", "hello")

    told = [line for line in result.stderr.splitlines() if line.startswith("log: notes: the server")]
    assert [re.sub(r"with .* after|\d+\.\d\d", "N", line) for line in told] == [
        "log: notes: the server starts",
        "log: notes: the server is ready after N s",
        "log: notes: the server has ended N N s",  # by itself, or by a signal where that takes it long
    ]
    assert "sesame" not in result.stderr
    assert "the server" not in query(work, "hello").stderr


def test_a_list_that_has_changed_counts_from_the_next_turn_on(tmp_path: Path) -> None:
    work = desk(tmp_path)
    query(work, "--dry-run", "hello")
    configure(work, settings({"MCP_TRACE": "", "MCP_TOOLS": "echo,hang"}))

    changing = query(work, "-v", "call")
    after = query(work, "--dry-run", "--format", "json", "hello")

    assert "log: the tools of the MCP server 'notes' have changed: the next turn has them\n" in changing.stderr
    assert offered(after) == ["notes_echo", "notes_hang"]
    assert json.loads(after.stderr)["note"] == (
        "no tool of the MCP server 'notes' is called 'notes_die': did you mean 'notes_echo'?"
    )


def test_a_server_that_does_not_start_ends_the_query_before_anything_is_sent(tmp_path: Path) -> None:
    work = desk(tmp_path, MCP_START="exit")

    result = query(work, "hello")

    assert result.stderr == (
        f"{STARTING}error: the MCP server 'notes' ended with exit code 1; the last that it said: there is no "
        "configuration\nhint: `providers.mcp.notes.optional=true` goes on without it\n"
    )
    assert (result.code, result.stdout, logs(work)) == (1, "", [])

    configure(work, settings({"MCP_START": "exit"}, more="optional = true"))
    without = query(work, "hello")
    assert (without.code, without.stdout) == (0, "Done.\n")
    assert "going on without it\n" in without.stderr


def test_a_server_that_there_is_not_is_named(tmp_path: Path) -> None:
    work = desk(tmp_path, tools='[conversation.tools.commit]\nsource = "mcp.git"\nenable = true')

    check_failure(query(work, "hello"), 3, "MCP server 'git'", "providers.mcp.git")


def test_resources_of_a_server_are_attached(tmp_path: Path) -> None:
    work = desk(tmp_path, tools="")

    result = query(work, "--attach", "mcp+notes+memo://note", "--attach", "mcp+notes+memo://picture", "hello")

    assert (result.code, result.stdout, result.stderr) == (0, "Done.\n", "")
    (request,) = [entry for entry in entries_of(logs(work)[-1]) if isinstance(entry, ChatRequest)]
    assert request.attachments == ("mcp+notes+memo://note", "mcp+notes+memo://picture")
    note, picture = request.resources
    assert (note.uri, note.mime_type, note.text) == ("mcp+notes+memo://note", "text/plain", "a note")
    assert (picture.mime_type, (picture.blob or b"")[:4]) == ("image/png", b"\x89PNG")
    assert heard(work).count("initialize") == 1


def test_what_cannot_be_attached_is_named_with_its_server(tmp_path: Path) -> None:
    work = desk(tmp_path, tools="")

    missing = query(work, "--attach", "mcp+notes+memo://gone", "hello")
    check_failure(
        missing,
        10,
        "'mcp+notes+memo://gone' cannot be read: the MCP server 'notes' says: no resource memo://gone",
        "It has, for example: mcp+notes+memo://note, mcp+notes+memo://picture.",
    )
    printed = run_jp("attachment", "print", "mcp+notes+memo://archive", cwd=work)
    check_failure(printed, 10, "'mcp+notes+memo://archive' is binary", "can be attached")
    unknown = query(work, "--attach", "mcp+git+memo://note", "hello")
    check_failure(unknown, 10, "there is no MCP server 'git'", "the servers are: notes")
    check_failure(query(work, "--attach", "mcp+notes:x", "hello"), 10, "names no resource", "SERVER+URI")
    assert logs(work) == []


def test_what_a_workspace_declares_of_servers_needs_trust(tmp_path: Path) -> None:
    declared = settings({"MCP_TRACE": str(tmp_path / "trace")})
    work = make_workspace(tmp_path / "work", CALLS, settings=declared)

    untrusted = query(work, "hello")
    assert "ignored until trusted: " in untrusted.stderr
    assert "providers.mcp.notes.command" in untrusted.stderr
    assert heard(work) == []

    own = make_workspace(tmp_path / "own", CALLS, settings=GROUP)
    configure(own, settings({}, tools=""))
    assert "conversation.tools.notes.source = 'mcp.notes.*'" in query(own, "hello").stderr

    attaching = make_workspace(
        tmp_path / "attaching", CALLS, settings='[conversation]\nattachments = ["mcp+my_notes+x"]'
    )
    check_failure(query(attaching, "hello"), 3, "mcp+my_notes+x", "trust")


HANGS = """
[[reply]]
when = { contains = "call" }
times = 1
calls = [{ name = "notes_hang", arguments = {} }]

[[reply]]
text = "Done."
"""


def test_a_call_that_is_interrupted_is_cancelled_at_the_server_which_ends(tmp_path: Path) -> None:
    work = desk(tmp_path, scenario=HANGS, MCP_TOOLS="hang")
    query(work, "--dry-run", "hello")
    heard(work)
    trace = opened_pipe(tmp_path / "trace")
    said = b""

    process = start_jp("query", "--new", "--no-stdin", "call", cwd=work)
    try:
        while b"tools/call" not in said:
            assert select.select([trace], [], [], PATIENCE)[0]
            said += os.read(trace, 4096)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        with contextlib.suppress(BlockingIOError):
            while True:
                said += os.read(trace, 4096)
    finally:
        os.close(trace)

    assert process.returncode == 130
    assert b"stopped; the output so far is kept" in errors
    assert said.splitlines()[-1] == b"notifications/cancelled"
    (response,) = [entry for entry in entries_of(logs(work)[-1]) if isinstance(entry, ToolCallResponse)]
    assert response.is_error


ASKING = """
[[reply]]
when = { tool = "notes_ask" }
calls = [{ name = "notes_echo", arguments = { text = "hé" } }]

[[reply]]
when = { tool = "notes_echo" }
text = "Done."

[[reply]]
calls = [{ name = "notes_ask" }]
"""


def answers_of(work: Path) -> list[str]:
    """What the calls of the last conversation were answered, in the order of the log."""
    responses = [entry for entry in entries_of(logs(work)[-1]) if isinstance(entry, ToolCallResponse)]
    blocks = [block for response in responses for block in response.content]
    return [block.text or "" for block in blocks if isinstance(block, TextBlock)]


@pytest.mark.parametrize("era", ["strict", "both"])
def test_a_server_that_knows_the_handshake_hears_it_first_and_can_ask(era: str, tmp_path: Path) -> None:
    questions = """
[conversation.tools.notes_ask.questions]
name = { answer = "Ada" }
colour = { answer = "red" }
age = { answer = "36" }
member = { answer = true }
days = { answer = "mon" }
"""
    work = desk(tmp_path, scenario=ASKING, tools=GROUP + questions, MCP_ERA=era, MCP_TOOLS="echo,ask")

    result = query(work, "call")

    assert (result.code, result.stdout) == (0, "Done.\n"), result
    asked, echoed = answers_of(work)
    assert json.loads(asked)["content"]["name"] == "Ada"
    assert echoed == "hé"
    assert "server/discover" not in heard(work)


def test_a_server_that_does_not_know_the_handshake_is_begun_with_otherwise_and_that_is_remembered(
    tmp_path: Path,
) -> None:
    work = desk(tmp_path, scenario=ASKING, MCP_ERA="new", MCP_TOOLS="echo,ask")

    first = query(work, "call")

    assert (first.code, first.stdout) == (0, "Done.\n"), first
    assert answers_of(work) == ["the MCP server 'notes' says: this transport context has no back-channel", "hé"]
    assert heard(work)[:3] == ["initialize", "server/discover", "tools/list"]
    assert query(work, "call").code == 0
    assert heard(work)[:2] == ["server/discover", "tools/list"]


def test_the_opening_is_what_the_user_says(tmp_path: Path) -> None:
    work = desk(tmp_path, scenario=ASKING, more='protocol = "discover"', MCP_ERA="both", MCP_TOOLS="echo,ask")
    assert query(work, "call").code == 0
    assert heard(work)[0] == "server/discover"

    failed = run_jp("query", "--new", "call", "--cfg", "providers.mcp.notes.protocol=later", cwd=work)
    assert (failed.code, heard(work)) == (3, [])

    other = desk(tmp_path / "other", more='protocol = "initialize"', MCP_ERA="new", MCP_TOOLS="echo,ask")
    refused = query(other, "call")
    assert refused.code == 1
    assert "the MCP server 'notes' says: Unsupported version" in refused.stderr
    assert heard(other) == ["initialize"]


def test_a_server_that_ends_at_the_remembered_opening_is_started_again(tmp_path: Path) -> None:
    work = desk(tmp_path, scenario=ASKING, MCP_ERA="new", MCP_TOOLS="echo,ask")
    query(work, "--dry-run", "hello")
    heard(work)
    configure(work, settings({"MCP_TRACE": str(tmp_path / "trace"), "MCP_TOOLS": "echo", "MCP_ERA": "strict"}))

    result = query(work, "call")

    assert result.stdout == "Done.\n", result
    assert answers_of(work)[1] == "hé"
    assert heard(work)[:3] == ["server/discover", "initialize", "notifications/initialized"]
    query(work, "call")
    assert heard(work)[0] == "initialize"


HOSTILE = {
    "crowd": "the MCP server 'notes' was stopped: it sent more than 100 requests without waiting for answers",
    "blocks": "the MCP server 'notes' sent a result with 30,000 items in 'content': at most 1,000 are taken",
    "values": "the MCP server 'notes' was stopped: it sent a message of more than 100,000 values",
}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> int:
    """The peak memory of a query that calls a tool whose server sends little."""
    scenario = ASKING.replace("notes_ask", "notes_picture")
    return peak_memory(desk(tmp_path_factory.mktemp("calm"), scenario=scenario, MCP_TOOLS="echo,picture"))


@pytest.mark.parametrize("tool", HOSTILE)
def test_a_server_that_sends_too_much_costs_its_own_call_and_little_memory(
    tool: str, usual: int, tmp_path: Path
) -> None:
    work = desk(tmp_path, scenario=ASKING.replace("notes_ask", f"notes_{tool}"), MCP_TOOLS=f"echo,{tool}")

    peak = peak_memory(work)

    assert HOSTILE[tool] in answers_of(work)
    assert peak < usual + 60_000, (peak, usual)


MEASURED = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-m", "jp", *sys.argv[1:]])
unit = 1 if sys.platform == "linux" else 1024
print(f"peak {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // unit}", file=sys.stderr)
"""


def peak_memory(work: Path) -> int:
    """Ask `call`, in a process that begins with nothing; return its largest size in KiB."""
    result = plain_jp("query", "--new", "call", cwd=work, program=(sys.executable, "-c", MEASURED))
    assert result.stdout == "Done.\n", result
    return int(result.stderr.rsplit("peak ", 1)[1])


def test_what_a_server_logs_is_shown_within_bounds(tmp_path: Path) -> None:
    work = desk(tmp_path, scenario=ASKING.replace("notes_ask", "notes_log"), MCP_TOOLS="echo,log")

    result = run_jp("query", "--new", "-v", "call", cwd=work)

    logged = [line for line in result.stderr.splitlines() if "notes: info: " in line]
    assert (result.code, len(logged)) == (0, 1000)
    assert max(map(len, logged)) < 2100
    assert "notes: it has logged 1,000 messages: no more are shown" in result.stderr
    assert answers_of(work) == ["done", "hé"]
