"""`jp tool`: what is said of tools, and running one by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import sandboxes
from failures import check_failure
from forked import prepare, run_jp
from mcp_connections import SERVER
from mcp_http import HttpServer, serving
from stage import make_workspace
from terminal import CTRL_C, jp_at_terminal

TRUST = ("workspace", "trust", "--yes")
SETTINGS = """
[conversation.tools."*"]
run = "ask"

[conversation.tools.greet]
enable = true
run = "unattended"
command = "echo hello {{ tool.arguments.name }}"
summary = "Greet somebody. And mean it."
examples = "greet(name='Ada')"

[conversation.tools.greet.parameters.name]
required = true
summary = "Whom."
examples = "Ada"

[conversation.tools.fs_read_file]
enable = "explicit"

[conversation.tools.fs_delete_file]
enable = "always"
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = make_workspace(tmp_path / "work", settings=SETTINGS)
    prepare(TRUST, cwd=root)
    return root


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Such a workspace, which is trusted, for tests that change nothing in it."""
    root = make_workspace(tmp_path_factory.mktemp("trusted") / "work", settings=SETTINGS)
    prepare(TRUST, cwd=root)
    return root


def test_tools_are_listed_with_where_they_come_from_and_whether_they_are_offered(work: Path) -> None:
    listed = run_jp("tool", "ls", cwd=work)
    with_one_more = run_jp("tool", "ls", "--cfg", "conversation.tools.gret.enable=true", "-F", "json", cwd=work)

    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in listed.stdout.splitlines()}
    assert (listed.code, listed.stderr) == (0, "")
    assert rows["greet"] == "local yes unattended off Greet somebody."
    assert rows["fs_read_file"].startswith("builtin by name ask - Read a text file")
    assert rows["fs_delete_file"].startswith("builtin always ask - Delete a file.")
    assert rows["run_command"].startswith(f"builtin no ask {sandboxes.limits().word} Run a command")
    assert rows["describe_tools"].startswith("builtin as needed unattended - Read more about tools")
    tools = {tool["name"]: tool for tool in json.loads(with_one_more.stdout)["tools"]}
    assert tools["greet"] == {
        "name": "greet",
        "source": "local",
        "offered": "yes",
        "enable": True,
        "run": "unattended",
        "sandbox": "off",
        "summary": "Greet somebody.",
        "problem": None,
    }
    assert json.loads(with_one_more.stderr)["note"] == "'conversation.tools' names an unknown tool 'gret'"


def test_everything_about_a_tool_is_shown(work: Path) -> None:
    result = run_jp("tool", "show", "greet", "--cfg", "conversation.tools.greet.timeout_secs=5", cwd=work)

    where = f"(the workspace's file {work / '.jp' / 'config.toml'})"
    assert (result.code, result.stderr) == (0, "")
    assert (
        result.stdout
        == f"""\
# greet

source        local
offered       yes  {where}
run           unattended  {where}
sandbox       off  (the default)
command       "echo hello {{{{ tool.arguments.name }}}}"  {where}
timeout_secs  5.0  (--cfg conversation.tools.greet.timeout_secs=5)

Greet somebody. And mean it.

Examples:
greet(name='Ada')

Parameters:
- `name` (string, required): Whom. Examples: Ada

As JSON Schema:
{{
  "type": "object",
  "properties": {{
    "name": {{
      "type": "string",
      "description": "Whom."
    }}
  }},
  "additionalProperties": false,
  "required": [
    "name"
  ]
}}
"""
    )


def test_what_is_shown_of_a_tool_is_data_too(work: Path) -> None:
    shown = run_jp("tool", "show", "fs_delete_file", "--format", "json", cwd=work)

    tool = json.loads(shown.stdout)["tool"]
    assert (tool["name"], tool["offered"], tool["run"]) == ("fs_delete_file", "always", "ask")
    assert tool["parameters"]["required"] == ["path"]
    where = f"the workspace's file {work / '.jp' / 'config.toml'}"
    assert tool["origins"] == {"enable": where, "run": f"{where}, for all tools"}
    standing = run_jp("tool", "show", "refresh_resource", cwd=work).stdout
    rules = '[{"arguments":{"uri":"cmd:**"},"run":"ask"}]  (built-in default)'
    assert f"rules         {rules}\n" in standing


def test_a_tool_that_there_is_not_is_an_error_that_names_the_nearest(work: Path) -> None:
    check_failure(run_jp("tool", "show", "gret", cwd=work), 2, "there is no tool 'gret'", "did you mean 'greet'?")


def test_a_tool_is_run_by_hand_and_its_result_printed(tmp_path: Path) -> None:
    work = make_workspace(tmp_path / "work", settings=SETTINGS)
    untrusted = run_jp("tool", "run", "greet", cwd=work)
    prepare(TRUST, cwd=work)
    greeted = run_jp("tool", "run", "greet", "--arguments", '{"name": "Ada"}', cwd=work)
    silent = run_jp("tool", "run", "greet", "--hide-tools", "-a", "-", cwd=work, stdin='{"name": "Bea"}')
    (work / "given.json").write_text('{"path": "given.json"}', encoding="utf-8")
    read = run_jp("tool", "run", "fs_read_file", "--yes", "-a", "@given.json", "--format", "json", cwd=work)

    check_failure(untrusted, 3, "conversation.tools.greet.command")
    assert (greeted.code, greeted.stdout) == (0, "hello Ada\n")
    assert greeted.stderr.startswith('→ greet(name="Ada")\n← greet: ')
    assert silent == (0, "hello Bea\n", "")
    value = json.loads(read.stdout)
    assert (read.code, value["tool"], value["is_error"], value["facts"]["path"]) == (
        0,
        "fs_read_file",
        False,
        "given.json",
    )
    assert value["content"][0]["resource"]["text"] == '{"path": "given.json"}'


def test_what_a_tool_says_of_its_failure_is_its_result(trusted: Path) -> None:
    result = run_jp("tool", "run", "fs_read_file", "--yes", "--hide-tools", "-a", '{"path": "no"}', cwd=trusted)

    assert result == (1, "there is no file 'no'\n", "")


def test_without_a_terminal_nothing_runs_that_asks(trusted: Path) -> None:
    denied = run_jp("tool", "run", "fs_delete_file", "--hide-tools", "-a", '{"path": ".jp/config.toml"}', cwd=trusted)

    check_failure(denied, 8, "'fs_delete_file' did not run: it needs your consent", "--yes")
    assert (trusted / ".jp/config.toml").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("gret",), 2, "there is no tool 'gret'"),
        (("greet",), 2, "the arguments of 'greet' do not fit: 'name' is missing"),
        (("greet", "-a", '{"nam": 1}'), 2, "'nam' is not known; did you mean 'name'?"),
        (("greet", "-a", "[]"), 2, "the arguments are no JSON object"),
        (("greet", "-a", '{"name"'), 2, "the arguments are no JSON object"),
        (("greet", "-a", "@no.json"), 2, "the arguments 'no.json' cannot be read: No such file"),
    ],
)
def test_what_cannot_be_run_is_an_error(words: tuple[str, ...], code: int, said: str, trusted: Path) -> None:
    check_failure(run_jp("tool", "run", *words, cwd=trusted), code, said)


ON_SERVER = f"""
[providers.mcp.demo]
command = {json.dumps(sys.executable)}
arguments = ["-S", "-I", {json.dumps(SERVER)}]

[conversation.tools.said]
source = "mcp.demo.echo"

[conversation.tools.demo]
source = "mcp.demo.*"
"""


def test_tools_of_a_server_are_listed_once_it_was_asked_and_are_offered_and_run_by_hand(tmp_path: Path) -> None:
    work = make_workspace(tmp_path / "work", settings=ON_SERVER)
    prepare(TRUST, cwd=work)

    before = run_jp("tool", "show", "said", cwd=work)
    asked = run_jp("tool", "ls", "--refresh", cwd=work)
    shown = run_jp("tool", "show", "said", cwd=work)
    said = run_jp("tool", "run", "said", "--yes", "--hide-tools", "-a", '{"text": "hello"}', cwd=work)

    check_failure(before, 2, "there is no tool 'said'", "`jp tool ls --refresh` asks the MCP servers")
    assert asked.stderr == "note: the MCP server 'demo' has 24 tools\n"
    rows = [line.split() for line in asked.stdout.splitlines()]
    assert ["said", "mcp.demo.echo", "no", "ask", "off", "echo", "it"] in rows
    assert ["demo_fail", "mcp.demo.fail", "no", "ask", "off", "fail", "it"] in rows
    assert "its server    says that it changes nothing, stays within what it knows\n" in shown.stdout
    assert said == (0, "hello\n", "")
    timed = ("--cfg", "conversation.tools.demo_fail.timeout_secs=5", "--cfg", "conversation.tools.demo.run=unattended")
    member = run_jp("tool", "show", "demo_fail", *timed, "--format", "json", cwd=work)
    origins = json.loads(member.stdout)["tool"]["origins"]
    assert origins["run"] == "--cfg conversation.tools.demo.run=unattended, for all of 'demo'"
    assert origins["source"] == f"the workspace's file {work}/.jp/config.toml, for all of 'demo'"
    assert origins["timeout_secs"] == "--cfg conversation.tools.demo_fail.timeout_secs=5"
    page = run_jp("tool", "run", "demo_ask_page", "--yes", "--hide-tools", cwd=work)
    assert page.stderr == (
        "note: the MCP server 'demo' asks you to open https://example.com/login (Sign in); jp declines: open it and "
        "ask again\n"
    )
    gone = run_jp("tool", "ls", "--refresh", "--cfg", "providers.mcp.demo.command=no-such-program", cwd=work)
    assert gone.stderr.count("no-such-program") == 1
    flags = ("--tool=demo", "--no-tool=demo_[a-r]*", "--no-tool=demo_slow_to_end", "--tool=demo_fail")
    request = json.loads(run_jp("query", "--new", "--dry-run", "-F", "json", *flags, "hi", cwd=work).stdout)["request"]
    offered = [tool["name"] for tool in request["body"]["tools"] if tool["name"].startswith("demo")]
    assert offered == ["demo_fail", "demo_sample", "demo_steps", "demo_structured", "demo_values"]
    misspelt = run_jp("query", "--tool=demo_fial", "hi", cwd=work)
    check_failure(misspelt, 2, "--tool names an unknown tool 'demo_fial'", "did you mean 'demo_fail'?")


@pytest.mark.parametrize(
    ("value", "note"),
    [
        (
            "conversation.tools.gret.enable=true",
            "'conversation.tools' names an unknown tool 'gret': did you mean 'greet'?",
        ),
        (
            "conversation.tools.x.source=far",
            "'conversation.tools.x.source' cannot be 'far': it is `builtin`, `local`, ",
        ),
        ("conversation.tools.greet.enable=false", ""),
    ],
)
def test_who_configures_a_tool_that_there_is_not_is_told(value: str, note: str, work: Path) -> None:
    result = run_jp("config", "set", value, cwd=work)

    assert (result.code, result.stdout) == (0, f"{work / '.jp' / 'config.toml'}\n")
    assert result.stderr.startswith(f"note: {note}" if note else "")
    assert bool(result.stderr) == bool(note)


def test_at_a_terminal_a_person_is_asked_and_ctrl_c_stops_what_runs(work: Path) -> None:
    (work / "old.txt").write_text("x", encoding="utf-8")
    settings = work / ".jp" / "config.toml"
    with settings.open("a", encoding="utf-8") as file:
        file.write('[conversation.tools.nap]\nrun = "unattended"\ncommand = "sleep 60"\n')
    prepare(TRUST, cwd=work)

    with jp_at_terminal("tool", "run", "fs_delete_file", "-a", '{"path": "old.txt"}', cwd=work) as terminal:
        terminal.question(r"old.txt.*\? .*\[n\]$")
        terminal.type("y\n")
        deleted = terminal.finish()
    with jp_at_terminal("tool", "run", "nap", cwd=work) as terminal:
        terminal.expect("running nap")
        terminal.type(CTRL_C)
        stopped = terminal.finish()

    assert (deleted, stopped) == (0, 130)
    assert not (work / "old.txt").exists()


def test_a_server_that_does_not_answer_is_an_error_beside_the_tools_of_the_others(tmp_path: Path) -> None:
    tools = '[conversation.tools.closed]\nsource = "mcp.closed.*"\n'
    with serving(HttpServer(status=401)) as server, serving(HttpServer(status=500)) as broken:
        closed = f'[providers.mcp.closed]\nurl = "{server.url}"\n{tools}'
        work = make_workspace(tmp_path / "work", settings=ON_SERVER + closed)
        prepare(TRUST, cwd=work)
        alone = make_workspace(tmp_path / "alone", settings=closed)
        prepare(TRUST, cwd=alone)

        beside = run_jp("tool", "ls", "--refresh", cwd=work)
        only = run_jp("tool", "ls", "--refresh", cwd=alone)
        data = run_jp("tool", "ls", "--refresh", "--format", "json", cwd=alone)
        both = run_jp("tool", "ls", "--refresh", "--cfg", f"providers.mcp.demo.url={broken.url}", cwd=work)

    said = (
        "error: the MCP server 'closed' answers with the status 401\n"
        "hint: `providers.mcp.closed.headers_env` says in which variables headers with credentials are\n"
    )
    assert (beside.code, only.code, data.code) == (4, 4, 4)
    assert beside.stderr == f"note: the MCP server 'demo' has 24 tools\n{said}"
    assert "demo_fail" in beside.stdout
    assert only.stderr == said
    assert "fs_read_file" in only.stdout
    error = json.loads(data.stderr)["error"]
    assert (error["exit_code"], error["hint"].split()[0]) == (4, "`providers.mcp.closed.headers_env`")
    assert "fs_read_file" in {tool["name"] for tool in json.loads(data.stdout)["tools"]}
    assert both.code == 1
    assert both.stderr.count("error: ") == 2


def test_a_question_without_an_answer_is_named_in_the_hint(tmp_path: Path) -> None:
    work = make_workspace(tmp_path / "work", settings=ON_SERVER)
    prepare(TRUST, cwd=work)
    gone = run_jp("tool", "ls", "--refresh", "--cfg", "providers.mcp.demo.command=no-such-program", cwd=work)
    assert gone.code == 3
    asks = run_jp("tool", "run", "demo_ask", "--yes", "--hide-tools", cwd=work)
    key = "`conversation.tools.demo_ask.questions.name.answer`"
    check_failure(asks, 8, "'demo_ask' has no answer that it needs of a person", f"be at a terminal, or set {key}")
