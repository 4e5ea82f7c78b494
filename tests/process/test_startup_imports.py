from __future__ import annotations

import marshal
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from jp.config.entries import McpServerConfig
from jp.mcp.definitions import Listing, ListingCache, ServerTool, fingerprint
from loopback import Loopback, Reply
from running import TIMEOUT_SECS, home_beside, isolated_environment, run_jp
from stage import make_workspace

TRACED = (sys.executable, "-X", "importtime", "-c")
ENTRY = "from jp.__main__ import main; main()"
TRIAL = "import sys; from jp.cli.app import run; from trial import ROOT; run(sys.argv[1:], ROOT)"
FORKS = """
import marshal, os, sys
for name in sys.argv[1:]:
    __import__(name)
while True:
    try:
        code, arguments, directory, environment, trace = marshal.load(sys.stdin.buffer)
    except EOFError:
        sys.exit()
    child = os.fork()
    if child == 0:
        break
    os.write(1, b"%d\\n" % child)
    os.waitpid(child, 0)
    os.write(1, b"ended\\n")
os.chdir(directory)
os.environ.clear()
os.environ.update(environment)
for stream in (0, 1):
    os.dup2(os.open(os.devnull, os.O_RDWR), stream)
os.dup2(os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
sys.argv[1:] = arguments
exec(code)
os._exit(0)
"""
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
    "prompt_toolkit",
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
    "httpcore2",
    "httpx2",
    "jp.attachment",
    "jp.app.estimates",
    "jp.cli.command_line.help",
    "jp.app.query.dry_run",
    "jp.app.query.inquiries",
    "jp.app.query.structured",
    "jp.app.schema_checker",
    "jp.config.formats",
    "jp.config.original",
    "jp.config.original_rules",
    "jp.context.breakdown",
    "jp.context.secret_finder",
    "jp.provider.anthropic.response",
    "jp.provider.catalogue",
    "jp.provider.classification",
    "jp.provider.clouds",
    "jp.provider.key_storage",
    "jp.provider.discovery",
    "jp.provider.reader",
    "jp.provider.script",
    "jp.render.json_lines",
    "jp.render.markdown",
    "jp.render.prompts",
    "jp.render.sanitize",
    "jp.render.status_line",
    "jp.render.tool_calls",
    "jp.workspace.retention",
    "keyring",
    "markdown_it",
    "openai",
    "pathspec",
    "platformdirs",
    "prompt_toolkit",
    "pydantic",
    "pydantic_core",
    "pygments",
    "pyjson5",
    "rich",
    "tomlkit",
    "tomllib",
    "typer.rich_utils",
    "yaml",
}
"""What a query that attaches nothing, whose answer goes into a pipe, does without until its request is on its way."""

MODULES_OF_A_COMPLETION = 150
"""With 132 modules, a completion takes 2.8 times the processor time of `jp --version`; it may take four times that."""


def imported(*arguments: str) -> set[str]:
    """The modules that a run imports, by their full names."""
    return set(named_in(run_jp(*arguments, program=(*TRACED, ENTRY)).stderr))


def named_in(trace: str) -> list[str]:
    """The modules, in the order in which they were there."""
    return [line.rpartition("|")[2].strip() for line in trace.splitlines() if line.startswith("import time:")]


class Prepared:
    """A Python that forks for each run. What it has imported before counts as imported by each of them."""

    def __init__(self, directory: Path, *names: str) -> None:
        self._trace = directory / "prepared"
        environment = isolated_environment(directory, PYTHONPATH=str(Path(__file__).parents[1]))
        pipe = subprocess.PIPE
        with self._trace.open("wb") as trace:
            self._process = subprocess.Popen(
                [*TRACED, FORKS, *names],
                stdin=pipe,
                stdout=pipe,
                stderr=trace,
                env=environment,
                start_new_session=True,
            )

    @contextmanager
    def forked(self, code: str, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> Generator[int]:
        """The id of a process that runs the code; when we leave, it has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        environment = isolated_environment(home_beside(cwd), **(env or {}))
        marshal.dump((code, arguments, str(cwd), environment, str(self._last(cwd))), self._process.stdin)
        self._process.stdin.flush()
        yield int(self._process.stdout.readline())
        assert self._process.stdout.readline() == b"ended\n"

    def imported(self, code: str, *arguments: str, cwd: Path) -> list[str]:
        """The modules of a run that ends by itself."""
        with self.forked(code, *arguments, cwd=cwd):
            pass
        return self._modules(cwd)

    def imported_before_the_request(self, server: Loopback, *arguments: str, cwd: Path) -> list[str]:
        """The modules of a query up to a moment after its request has come. It gets no answer."""
        with self.forked(ENTRY, "query", "--new", *arguments, "hello", cwd=cwd, env=KEYS) as process:
            try:
                server.wait_for_requests(1)
            finally:
                os.kill(process, signal.SIGKILL)
        return self._modules(cwd)

    def end(self) -> None:
        """Let it go."""
        self._process.communicate(timeout=TIMEOUT_SECS)

    def _modules(self, cwd: Path) -> list[str]:
        return [name for path in (self._trace, self._last(cwd)) for name in named_in(path.read_text(encoding="utf-8"))]

    def _last(self, cwd: Path) -> Path:
        return home_beside(cwd) / "trace"


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Generator[Prepared]:
    prepared = Prepared(tmp_path_factory.mktemp("commands"), "jp.cli.command_line.loading")
    yield prepared
    prepared.end()


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Generator[Prepared]:
    shared = ("jp.cli.command_line.loading", "jp.app.query.run", "jp.turn.loop", "anyio._backends._asyncio", "h11")
    prepared = Prepared(tmp_path_factory.mktemp("queries"), *shared)
    yield prepared
    prepared.end()


def heavy(modules: Iterable[str]) -> set[str]:
    return {name for name in modules if name in HEAVY or name.partition(".")[0] in HEAVY}


def test_the_version_is_printed_before_anything_of_jp_is_imported() -> None:
    modules = imported("--version")

    assert {name for name in modules if name.partition(".")[0] == "jp"} == {"jp", "jp.__main__"}
    assert modules & {"re", "typing", "typer", "msgspec"} == set()


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], [], ["conversation", "--help"], ["c"], ["config", "-h"]])
def test_help_is_printed_without_typer(arguments: list[str]) -> None:
    modules = imported(*arguments)

    assert "jp.cli.command_line.help" in modules
    assert modules & {"typer", "msgspec", "typing", "inspect"} == set()
    assert heavy(modules) == set()


@pytest.mark.parametrize(
    "words",
    [
        ["conv"],
        ["query", "--he"],
        ["query", "--id", "jp-c"],
        ["query", "--label", ""],
        ["query", "--model", ""],
        ["query", "--tool="],
        ["query", "--cfg", ""],
        ["query", "--prompt", ""],
        ["query", "--attach", "f"],
        ["attachment", "rm", ""],
        ["conversation", "compact", "--profile", ""],
    ],
)
def test_a_completion_imports_little(words: list[str], tmp_path: Path) -> None:
    make_workspace(tmp_path)
    directory = tmp_path / ".jp/conversations/17800000001-x"
    directory.mkdir(parents=True)
    (directory / "metadata.json").write_text('{"title": "The lexer"}', encoding="utf-8")

    traced = run_jp(*words, cwd=tmp_path, env={"_JP_COMPLETE": "zsh"}, program=(*TRACED, ENTRY))
    modules = named_in(traced.stderr)

    assert len(modules) <= MODULES_OF_A_COMPLETION
    assert set(modules) & {"typer", "jp.app", "jp.config", "jp.provider", "subprocess"} == set()
    assert heavy(name for name in modules if name.partition(".")[0] != "tomllib") == set()


@pytest.mark.parametrize(
    "arguments",
    [["show", "a", "--limit", "3", "--label", "x=y"], ["style", "--ratio", "1.5", "--raw"], ["show", "--help"]],
)
def test_a_command_is_called_without_pydantic_and_rich(
    arguments: list[str], commands: Prepared, tmp_path: Path
) -> None:
    modules = commands.imported(TRIAL, *arguments, cwd=tmp_path)

    assert "trial" in modules
    assert heavy(modules) == set()


@pytest.mark.parametrize(
    ("arguments", "module"),
    [
        (["config", "path"], "jp.app.settings"),
        (["workspace", "show"], "jp.app.settings"),
        (["query", "--help"], "jp.app.values"),
        (["conversation", "use", "--help"], "jp.app.targets"),
    ],
)
def test_commands_that_need_little_import_little(
    arguments: list[str], module: str, commands: Prepared, tmp_path: Path
) -> None:
    modules = commands.imported(ENTRY, *arguments, cwd=tmp_path)

    assert module in modules
    assert heavy(modules) == set()


def test_an_unknown_command_imports_no_command() -> None:
    modules = imported("qurey")

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
        ("mine/any", "chat"),
    ],
)
def test_a_query_imports_nothing_before_its_request_that_can_wait(
    model: str, adapter: str, queries: Prepared, tmp_path: Path
) -> None:
    provider = model.partition("/")[0]

    with Loopback(Reply(headless=True, ends="hang")) as server:
        to_server = ("--cfg", f"providers.llm.{provider}.base_url={server.url}/v1", "--model", model)
        own = ("--cfg", "providers.llm.mine.api_key_env=MINE_API_KEY") if provider == "mine" else ()
        modules = set(queries.imported_before_the_request(server, *to_server, *own, cwd=tmp_path))

    assert any(f"{name}.".startswith(f"jp.provider.{adapter}.") for name in modules)
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


def test_a_query_with_a_remembered_server_imports_the_sdk_once_its_request_has_left(
    queries: Prepared, tmp_path: Path
) -> None:
    home = home_beside(tmp_path)
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text(SERVER, encoding="utf-8")
    listing = Listing(tools=(ServerTool(name="look", parameters={"type": "object"}),))
    ListingCache(home / "data" / "cache" / "mcp").write(
        fingerprint(McpServerConfig(command="notes-server"), tmp_path), listing
    )

    with Loopback(Reply(headless=True, ends="hang")) as server:
        to_server = ("--cfg", f"providers.llm.llamacpp.base_url={server.url}/v1", "--model", "llamacpp/any")
        names = queries.imported_before_the_request(server, *to_server, cwd=tmp_path)
        (request,) = server.requests

    assert b"notes_look" in request.body
    rendered = names.index("jp.provider.chat.messages")
    assert "jp.__main__" in names[:rendered]
    assert not {"jp.mcp.connection", "pydantic"} & set(names[:rendered])
    assert not any(name.partition(".")[0] in {"mcp", "mcp_types"} for name in names[:rendered])


SPELLINGS = {"jp.config.original", "jp.config.original_rules", "jp.config.formats", "yaml", "pyjson5"}


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ("[user]\nname = 'Ada'", set[str]()),
        ("[user]\nname = 'Ada'\n[style.code]\ncopy_link = 'off'", {"jp.config.original", "jp.config.original_rules"}),
    ],
)
def test_only_a_file_with_settings_of_the_original_imports_their_rules(
    settings: str, needed: set[str], commands: Prepared, tmp_path: Path
) -> None:
    root = make_workspace(tmp_path / "work", settings=settings)

    modules = commands.imported(ENTRY, "query", "--new", "hello", cwd=root)

    assert "tomllib" in modules
    assert SPELLINGS & {*modules} == needed


def test_a_query_without_a_network_imports_no_http_client(commands: Prepared, tmp_path: Path) -> None:
    modules = commands.imported(ENTRY, "query", "--new", "hello", cwd=make_workspace(tmp_path / "work"))

    assert "jp.provider.script.provider" in modules
    assert {
        name for name in modules if name.partition(".")[0] in {"email", "h11", "http", "httpcore2", "httpx2"}
    } == set()


def test_a_query_that_attaches_files_imports_nothing_for_other_sources(commands: Prepared, tmp_path: Path) -> None:
    cwd = make_workspace(tmp_path / "work")
    (cwd / "a.txt").write_text("content", encoding="utf-8")

    modules = set(commands.imported(ENTRY, "query", "--new", "--attach", "a.txt", "hello", cwd=cwd))

    assert "jp.attachment.files" in modules
    assert modules & {"bs4", "markdownify", "httpx2"} == set()
    assert {name for name in modules if name.startswith(("jp.attachment.web", "jp.attachment.command"))} == set()
    assert modules & {"jp.attachment.web", "jp.attachment.web_client", "jp.process.guardian"} == set()
