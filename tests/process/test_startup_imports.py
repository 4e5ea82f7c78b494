from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jp.config.tools import McpServerConfig
from jp.mcp.cache import ListingCache, fingerprint
from jp.mcp.definitions import Listing, ServerTool
from loopback import Loopback, Reply
from running import home_beside, run_jp, start_jp
from stage import make_workspace

ENTRY = "from jp.__main__ import main; main()"
TRIAL = "import sys; from jp.cli.app import run; from trial import ROOT; run(sys.argv[1:], ROOT)"
VENDORS = ("ANTHROPIC", "CEREBRAS", "GEMINI", "LLAMACPP", "MINE", "OLLAMA", "OPENAI", "OPENROUTER")
KEYS = {f"{name}_API_KEY": "k" for name in VENDORS}
"""With a key in the environment, nobody looks where keys are stored."""

HEAVY = {
    "anyio",
    "asyncio",
    "click",
    "email",
    "http",
    "httpx2",
    "importlib.metadata",
    "logging",
    "markdown_it",
    "pathspec",
    "platformdirs",
    "pydantic",
    "pydantic_core",
    "pygments",
    "rich",
    "ssl",
    "tempfile",
    "tomlkit",
    "tomllib",
}
"""What no command may import before it needs it."""

NOT_BEFORE_THE_REQUEST = {
    "anthropic",
    "boto3",
    "botocore",
    "click",
    "google.auth",
    "google.genai",
    "jp.attachment",
    "jp.cli.estimates",
    "jp.cli.help",
    "jp.cli.query.dry_run",
    "jp.context.calibration",
    "jp.provider.anthropic.response",
    "jp.provider.classification",
    "jp.provider.clouds",
    "jp.provider.counting",
    "jp.provider.failures",
    "jp.provider.key_file",
    "jp.provider.key_ring",
    "jp.provider.key_storage",
    "jp.provider.local_servers",
    "jp.provider.reader",
    "jp.provider.script",
    "jp.provider.sdk",
    "jp.render.jsonl",
    "jp.render.markdown",
    "jp.render.sanitise",
    "jp.render.terminal",
    "jp.render.tool_call",
    "jp.render.waiting",
    "jp.turn.prompt_size",
    "jp.workspace.ephemeral",
    "keyring",
    "markdown_it",
    "openai",
    "pathspec",
    "platformdirs",
    "pydantic",
    "pydantic_core",
    "pygments",
    "rich",
    "tomlkit",
    "tomllib",
    "typer.rich_utils",
}
"""What a query that attaches nothing, whose answer goes into a pipe, does without until its request is on its way."""


def imported(code: str, *arguments: str, cwd: Path | None = None) -> set[str]:
    """The modules that a run imports, by their full names."""
    result = run_jp(*arguments, program=traced(code), cwd=cwd, env={"PYTHONPATH": str(Path(__file__).parents[1])})
    return named_in(result.stderr)


def traced(code: str) -> tuple[str, ...]:
    return (sys.executable, "-X", "importtime", "-c", code)


def named_in(trace: str) -> set[str]:
    return {line.rpartition("|")[2].strip() for line in trace.splitlines() if line.startswith("import time:")}


def imported_before_the_request(server: Loopback, cwd: Path, *arguments: str) -> set[str]:
    """The modules that a query has imported when its request has come. It gets no answer."""
    return named_in(traced_until_the_request(server, cwd, *arguments))


def traced_until_the_request(server: Loopback, cwd: Path, *arguments: str) -> str:
    """The trace of a query's imports up to a moment after its request has come."""
    trace = cwd.parent / "trace"
    code = f"import os; os.dup2(os.open({str(trace)!r}, os.O_WRONLY | os.O_CREAT), 2); {ENTRY}"
    with start_jp("query", *arguments, cwd=cwd, env=KEYS, program=traced(code)) as process:
        assert process.stdin is not None
        process.stdin.close()
        server.wait_for_requests(1)
        process.kill()
    return trace.read_text(encoding="utf-8")


def heavy(modules: set[str]) -> set[str]:
    return {name for name in modules if name in HEAVY or name.partition(".")[0] in HEAVY}


def test_the_version_is_printed_before_anything_of_jp_is_imported() -> None:
    modules = imported(ENTRY, "--version")

    assert {name for name in modules if name.partition(".")[0] == "jp"} == {"jp", "jp.__main__"}
    assert modules & {"re", "typing", "typer", "msgspec"} == set()


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], [], ["conversation", "--help"], ["c"], ["config", "-h"]])
def test_help_is_printed_without_typer(arguments: list[str]) -> None:
    modules = imported(ENTRY, *arguments)

    assert "jp.cli.help" in modules
    assert modules & {"typer", "msgspec", "typing", "inspect"} == set()
    assert heavy(modules) == set()


@pytest.mark.parametrize(
    "arguments",
    [["show", "a", "--limit", "3", "--label", "x=y"], ["style", "--ratio", "1.5", "--raw"], ["show", "--help"]],
)
def test_a_command_is_called_without_pydantic_and_rich(arguments: list[str]) -> None:
    modules = imported(TRIAL, *arguments)

    assert {"typer", "jp.cli.lazy"} <= modules
    assert heavy(modules) == set()


@pytest.mark.parametrize(
    "arguments", [["config", "path"], ["workspace", "show"], ["query", "--help"], ["conversation", "use", "--help"]]
)
def test_commands_that_need_little_import_little(arguments: list[str]) -> None:
    modules = imported(ENTRY, *arguments)

    assert "typer" in modules
    assert heavy(modules) == set()


def test_an_unknown_command_imports_no_command() -> None:
    modules = imported(ENTRY, "qurey")

    assert "typer" not in modules
    assert heavy(modules) == set()


@pytest.mark.parametrize(
    ("model", "adapter"),
    [
        ("anthropic/claude-haiku-4-5", "anthropic"),
        ("openai/gpt-5.6", "openai"),
        ("google/gemini-3.8-flash", "google"),
        ("openrouter/z-ai/glm-5.2", "openrouter"),
        ("cerebras/gpt-oss-120b", "cerebras"),
        ("ollama/qwen3:8b", "ollama"),
        ("llamacpp/any", "llamacpp"),
        ("mine/any", "compatible"),
    ],
)
def test_a_query_imports_nothing_before_its_request_that_can_wait(tmp_path: Path, model: str, adapter: str) -> None:
    cwd = tmp_path / "work"
    cwd.mkdir()
    provider = model.partition("/")[0]

    with Loopback(Reply(headless=True, ends="hang")) as server:
        to_server = ("--cfg", f"providers.llm.{provider}.base_url={server.url}/v1", "--model", model)
        own = ("--cfg", "providers.llm.mine.api_key_env=MINE_API_KEY") if provider == "mine" else ()
        modules = imported_before_the_request(server, cwd, "--new", *to_server, *own, "hello")

    assert {"httpx2", "jp.turn.loop"} <= modules
    assert any(name.startswith(f"jp.provider.{adapter}.") for name in modules)
    assert not any(name.startswith("jp.provider.") and name.endswith(".response") for name in modules)
    packages = {name.partition(".")[0] for name in modules}
    assert (modules | packages) & NOT_BEFORE_THE_REQUEST == set()


SERVER = """
[providers.mcp.notes]
command = "notes-server"
[conversation.tools.notes]
source = "mcp.notes.*"
enable = true
"""


def test_a_query_with_a_remembered_server_imports_the_sdk_once_its_request_has_left(tmp_path: Path) -> None:
    cwd = tmp_path / "work"
    cwd.mkdir()
    home = home_beside(cwd)
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text(SERVER, encoding="utf-8")
    listing = Listing(tools=(ServerTool(name="look", parameters={"type": "object"}),))
    ListingCache(home / "data" / "cache" / "mcp").write(
        fingerprint(McpServerConfig(command="notes-server"), cwd), listing
    )

    with Loopback(Reply(headless=True, ends="hang")) as server:
        to_server = ("--cfg", f"providers.llm.llamacpp.base_url={server.url}/v1", "--model", "llamacpp/any")
        trace = traced_until_the_request(server, cwd, "--new", *to_server, "hello")
        (request,) = server.requests

    assert b"notes_look" in request.body
    names = [line.rpartition("|")[2].strip() for line in trace.splitlines()]
    connected = names.index("httpcore2._async.http11")
    assert not {"jp.mcp.connection", "pydantic"} & set(names[:connected])
    assert not any(name.partition(".")[0] in {"mcp", "mcp_types"} for name in names[:connected])


def test_a_query_without_a_network_imports_no_http_client(tmp_path: Path) -> None:
    modules = imported(ENTRY, "query", "--new", "hello", cwd=make_workspace(tmp_path / "work"))

    assert "jp.provider.script.provider" in modules
    assert {
        name for name in modules if name.partition(".")[0] in {"email", "h11", "http", "httpcore2", "httpx2"}
    } == set()


def test_a_query_that_attaches_files_imports_nothing_for_other_sources(tmp_path: Path) -> None:
    cwd = make_workspace(tmp_path / "work")
    (cwd / "a.txt").write_text("content", encoding="utf-8")

    modules = imported(ENTRY, "query", "--new", "--attach", "a.txt", "hello", cwd=cwd)

    assert "jp.attachment.files.handler" in modules
    assert modules & {"bs4", "markdownify", "httpx2"} == set()
    assert {
        name for name in modules if name.startswith(("jp.attachment.web", "jp.attachment.command.handler"))
    } == set()
    assert modules & {"jp.attachment.web.handler", "jp.attachment.web.fetching", "jp.process.running"} == set()
