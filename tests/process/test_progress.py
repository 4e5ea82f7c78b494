"""What takes a while says on the terminal what it does, as long as it does it, and nowhere else.

Nothing here is a matter of time: what is awaited goes on when the test has seen the line.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Event

import pytest

import anthropic_wire as wire
from forked import prepare
from github_server import github
from halting import MODEL
from jp.cli.options import GlobalOptions
from loopback import HTML, Loopback, Received, Reply, sse
from mcp_connections import SERVER
from running import home_beside
from stage import make_workspace
from terminal import CTRL_C, Terminal, jp_at_terminal

PAGE = b"<p>A page"
HELD = """
import importlib, os
module, name = os.environ["HELD"].split(":")
owner = importlib.import_module(module)
real = getattr(owner, name)
begun = []

def held(*arguments, **options):
    if not begun:
        begun.append(1)
        open(os.environ["GATE"], "rb").read()
    return real(*arguments, **options)

setattr(owner, name, held)
from jp.__main__ import main
main()
"""
"""A function waits for the pipe GATE once before it does what it does."""


def pipe(root: Path) -> Path:
    path = root / "gate"
    os.mkfifo(path)
    return path


def open_gate(path: Path) -> None:
    path.write_bytes(b"")


def ends_well(terminal: Terminal, *, without: str) -> None:
    """The command ends, and the line has gone."""
    assert terminal.finish() == 0, terminal.shown
    assert without not in terminal.screen.text
    assert without in terminal.shown


def test_a_page_that_is_fetched_is_named_without_its_password(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    gate = Event()
    with Loopback(Reply(body=PAGE, headers=HTML, gates={0: gate})) as server:
        address = server.url.replace("//", "//ann:sesame@")
        with jp_at_terminal("query", "-a", f"{address}/page", "hi", cwd=tmp_path) as terminal:
            terminal.expect(rf"fetching {server.url}/page [1-9]\d* s")
            gate.set()
            ends_well(terminal, without="fetching")

    assert "sesame" not in terminal.shown
    assert "You said: hi" in terminal.screen.text


def test_a_command_that_runs_is_named(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    gate = pipe(tmp_path)

    with jp_at_terminal("query", "-a", "cmd:cat gate", "hi", cwd=tmp_path) as terminal:
        terminal.expect(r"running cat gate \d+ s")
        open_gate(gate)
        ends_well(terminal, without="running cat gate")


def test_a_pull_request_that_is_fetched_is_named(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    gate, answer = Event(), github()

    def wait(request: Received) -> Reply:
        assert gate.wait(20)
        assert callable(answer)
        return answer(request)

    with Loopback(otherwise=wait) as server:
        environment = {"GITHUB_API_URL": server.url, "GITHUB_TOKEN": "t"}
        with jp_at_terminal("query", "-a", "gh:own/repo/issue/2", "hi", cwd=tmp_path, env=environment) as terminal:
            terminal.expect(r"fetching gh:own/repo/issue/2 \d+ s")
            gate.set()
            ends_well(terminal, without="fetching gh")


def with_server(root: Path, gate: Path, *, tools: str = "") -> Path:
    """A workspace whose user has a server that starts when the pipe is opened."""
    work = make_workspace(root / "work")
    config = home_beside(work) / "config" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text(
        f"""
[providers.mcp.notes]
command = "{sys.executable}"
arguments = ["-S", "-I", "{SERVER}"]
environment = {{ MCP_START = "{gate}", MCP_TOOLS = "echo" }}
{tools}
""",
        encoding="utf-8",
    )
    return work


def test_a_server_that_starts_is_named(tmp_path: Path) -> None:
    gate = pipe(tmp_path)
    work = with_server(tmp_path, gate, tools='[conversation.tools.notes]\nsource = "mcp.notes.*"\nenable = true')

    with jp_at_terminal("query", "hi", cwd=work) as terminal:
        terminal.expect(r"\r\x1b\[K\S*starting the MCP server 'notes' \d+ s")
        open_gate(gate)
        assert terminal.finish() == 0

    assert "'notes' 1 s" not in terminal.screen.text


def test_a_resource_of_a_server_is_named(tmp_path: Path) -> None:
    gate = pipe(tmp_path)
    work = with_server(tmp_path, gate)

    with jp_at_terminal("query", "-a", "mcp+notes+memo://note", "hi", cwd=work) as terminal:
        terminal.expect(r"reading mcp\+notes\+memo://note \d+ s")
        open_gate(gate)
        ends_well(terminal, without="reading mcp")


LONG = "a line of much that is to be looked at\n" * 400
COMPACT = ("conversation", "compact", "--summarize", "--keep", "0", "--model", MODEL, "last")


@pytest.mark.parametrize("words", [COMPACT, ("query", "--compact=heavy", "--model", MODEL, "--id", "last", "and now?")])
def test_a_summary_that_is_written_is_named_with_its_model_and_its_turns(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    root = make_workspace(tmp_path / "work")
    prepare(["query", LONG], *[["query", "--id", "last", "and another"]] * 3, cwd=root)

    with Loopback(Reply(body=sse(wire.start()), ends="hang")) as server:
        environment = {
            "JP_CFG_PROVIDERS_LLM_ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
        }
        with jp_at_terminal(*words, cwd=root, env=environment) as terminal:
            terminal.expect(rf"{MODEL} summarizes turns? 0.* \d+ s")
            terminal.type(CTRL_C)
            assert terminal.finish() == 130

    assert "summarizes" not in terminal.screen.text


FULL = """
[[reply]]
when = { contains = "record of an earlier part of a conversation" }
wait_ms = 600000
text = "never"

[[reply]]
when = { contains = "read" }
calls = [{ name = "fs_read_file", arguments = { path = "a.txt" } }]

[[reply]]
text = "Noted."
"""
AUTOMATIC = """
[providers.llm.script.models.test]
context_window = 12000
max_output = 2000
[conversation.compaction]
keep_last = 1
[conversation.compaction.auto]
enabled = true
min_turns = 1
profile = "heavy"
[conversation.deduplication]
enabled = false
[conversation.tools.fs_read_file]
enable = true
"""


def test_a_summary_that_is_written_within_a_turn_takes_the_turns_own_line(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", FULL, settings=AUTOMATIC)
    (root / "a.txt").write_text("a bolt, a nut and a washer\n" * 370, encoding="utf-8")
    asking = ("query", "--approve-all")
    prepare((*asking, "--new", "read it"), *[(*asking, "--id", "last", "read it again")] * 1, cwd=root)

    with jp_at_terminal(*asking, "--id", "last", "read it again", cwd=root) as terminal:
        terminal.expect(r"script/test summarizes turns? 0.* \d+ s")
        terminal.type(CTRL_C)
        terminal.question("stop and keep")
        terminal.type("s\n")
        assert terminal.finish() == 130

    assert "summarizes" not in terminal.screen.text


def conversations(root: Path) -> None:
    prepare(["query", "one word"], ["query", "--new", "another"], cwd=root)


def files(root: Path) -> None:
    for number in range(12):
        (root / f"{number}.txt").write_text("a", encoding="utf-8")


def elsewhere(root: Path) -> None:
    other = make_workspace(root / "elsewhere")
    prepare(["query", "one"], ["query", "--new", "two"], cwd=other)


SLOW = {
    "walk": (files, "jp.attachment.files:read", ("query", "-a", "*.txt", "hi"), r"reading \*\.txt: 0 of 12 files"),
    "directory": (
        files,
        "jp.attachment.file_walk:open_below",
        ("attachment", "print", "*.txt"),
        r"looking into \*\.txt: 0 files",
    ),
    "import": (
        elsewhere,
        "jp.workspace.importing:read_source",
        ("conversation", "import", "elsewhere"),
        "reading conversation 1 of 2",
    ),
    "gc": (conversations, "jp.workspace.garbage:named_in", ("workspace", "gc"), r"reading jp-c\d+"),
    "doctor": (conversations, "jp.app.maintenance:_conversation", ("workspace", "doctor"), r"checking jp-c\d+"),
    "grep": (
        conversations,
        "jp.workspace.store:read_stream",
        ("conversation", "grep", "word"),
        "indexed 1 of 2 conversations",
    ),
}


@pytest.mark.parametrize("case", SLOW)
def test_what_takes_a_while_says_how_far_it_is(case: str, tmp_path: Path) -> None:
    prepared, held, words, said = SLOW[case]
    script = tmp_path / "held.py"
    script.write_text(HELD, encoding="utf-8")
    gate = pipe(tmp_path)
    root = make_workspace(tmp_path / "work")
    prepared(root)

    environment = {"HELD": held, "GATE": str(gate)}
    with jp_at_terminal(*words, cwd=root, env=environment, script=script) as terminal:
        line = terminal.expect(rf"{said} \d+ s")
        open_gate(gate)
        assert terminal.finish() == 0, terminal.shown

    assert line not in terminal.screen.text


def test_a_note_takes_the_place_of_the_line_and_is_a_line_of_its_own(tmp_path: Path) -> None:
    gate = pipe(tmp_path)
    script = tmp_path / "note.py"
    script.write_text(
        """
import os
from jp.cli.options import GlobalOptions

options = GlobalOptions(format="pretty")
with options.progress("first") as tell, options.progress("second"):
    open(os.environ["GATE"], "rb").read()
    options.notice("heard")
    tell("third")
    open(os.environ["GATE"], "rb").read()
os._exit(0)
""",
        encoding="utf-8",
    )

    with jp_at_terminal(cwd=tmp_path, env={"GATE": str(gate)}, script=script) as terminal:
        terminal.expect(r"second \d+ s")
        open_gate(gate)
        terminal.expect(r"note: heard\n")
        terminal.expect(r"second \d+ s")
        open_gate(gate)
        assert terminal.finish() == 0, terminal.shown

    assert terminal.screen.text == "note: heard\n"


@pytest.mark.parametrize(
    ("options", "term", "is_terminal"),
    [
        (GlobalOptions(format="pretty", quiet=True), "xterm", True),
        (GlobalOptions(format="json"), "xterm", True),
        (GlobalOptions(format="pretty"), "dumb", True),
        (GlobalOptions(format="pretty"), "xterm", False),
    ],
)
def test_there_is_no_line_elsewhere(
    options: GlobalOptions, term: str, *, is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = os.openpty() if is_terminal else os.pipe()
    monkeypatch.setenv("TERM", term)
    with open(ours, "rb"), open(theirs, "w", encoding="utf-8") as stream:  # noqa: PTH123 - descriptors
        monkeypatch.setattr(sys, "stderr", stream)

        assert options.progress_line() is None
        with options.progress("work") as tell:
            tell("more work")


def test_there_is_a_line_where_one_can_be_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with open(ours, "rb"), open(theirs, "w", encoding="utf-8") as stream:  # noqa: PTH123 - descriptors
        monkeypatch.setattr(sys, "stderr", stream)

        assert GlobalOptions(format="pretty").progress_line() is not None
