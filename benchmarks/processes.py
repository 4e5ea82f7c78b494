"""Whole processes: start-up, help, one-shot queries, listings, beside other programs where they are installed."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from fixtures import JP, MODEL, make_conversations, new_workspace, query
from results import Report
from samples import Program, launcher, medians_of
from server import TimingServer

RUNS = 15
FEWER_RUNS = 9
MANY = 10_000
PROVIDERS = {
    MODEL: "",
    "openai/gpt-5.5": "/v1",
    "google/gemini-3-flash": "/v1beta",
    "openrouter/openai/gpt-5.5": "/api/v1",
    "cerebras/gpt-oss-120b": "/v1",
    "ollama/qwen3": "",
    "llamacpp/qwen3": "/v1",
    "mine/qwen3": "/v1",
}
"""A model of each provider, and of a server that the user has declared, with the path of its API."""

CODEX = """
model = "x"
model_provider = "loopback"
check_for_update_on_startup = false
analytics.enabled = false
model_providers.loopback = {{ name = "x", base_url = "{url}/v1", wire_api = "responses", env_key = "OPENAI_API_KEY" }}
"""
LLM = """
- model_id: loopback
  model_name: x
  api_base: {url}/v1
  api_key_name: none
"""


def rows(report: Report) -> Iterator[str]:
    """Time everything, interleaved."""
    with tempfile.TemporaryDirectory() as scratch, closing(TimingServer()) as server:
        home = Path(scratch)
        new_workspace(home)
        others = [*_llm(home, server.url), *_codex(home, server.url)]
        programs = [*_programs(home, server.url), *(program for program in others if _works(program))]
        found = medians_of(programs, server, RUNS, report)
    floor, jp = found["`python -c pass`"].wall, found["`jp query`"]
    head = ("", "to the first byte, ms", "in all, ms", "of `pass`", "CPU, ms", "peak, MB")
    cells = [
        (name, _number(of.wire), f"{of.wall:.0f}", f"{of.wall / floor:.1f}", f"{of.cpu:.0f}", f"{of.peak:.0f}")
        for name, of in found.items()
    ]
    yield from report.table("table", head, cells)
    others = [(name, jp.wire / of.wire) for name, of in found.items() if name != "`jp query`" and of.wire > 0]
    report.figures |= {
        "comparison": " and ".join(f"{ratio:.2f} times as long as {name}" for name, ratio in others),
        "query to wire": jp.wire,
        "help of pass": found["`jp --help`"].wall / floor,
    }
    if others:
        yield f"to the first byte, jp takes {report.figures['comparison']}"


def _works(program: Program) -> bool:
    """Run a program of others once; one that fails here is not compared."""
    with launcher() as launched:
        try:
            launched.run(program)
        except SystemExit as error:
            print(f"not compared: {error}", file=sys.stderr)
            return False
    return True


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.0f}"


def _programs(home: Path, url: str) -> list[Program]:
    return [
        Program("`python -c pass`", (sys.executable, "-I", "-c", "pass"), home),
        Program("`jp --version`", (JP, "--version"), home),
        Program("`jp --help`", (JP, "--help"), home),
        Program("`jp query`", (JP, *query(url, "--new", "hello")), home, to_wire=True),
    ]


def _llm(home: Path, url: str) -> list[Program]:
    llm = os.environ.get("JP_BENCH_LLM") or shutil.which("llm")
    if not llm:
        return []
    settings = home / "llm"
    settings.mkdir()
    (settings / "extra-openai-models.yaml").write_text(LLM.format(url=url), encoding="utf-8")
    variables = {"LLM_USER_PATH": str(settings)}
    ask = (llm, "-m", "loopback", "--no-log", "hello")
    return [
        Program("`llm --help`", (llm, "--help"), home, variables=variables),
        Program("`llm`", ask, home, to_wire=True, variables=variables),
    ]


def _codex(home: Path, url: str) -> list[Program]:
    codex = native_codex(os.environ.get("JP_BENCH_CODEX") or shutil.which("codex"))
    if codex is None:
        return []
    settings = home / "codex"
    settings.mkdir()
    (settings / "config.toml").write_text(CODEX.format(url=url), encoding="utf-8")
    temporary = home / "temporary"
    temporary.mkdir()  # codex does less where its settings are in the directory for temporary files
    ask = (str(codex), "exec", "--skip-git-repo-check", "hello")
    variables = {"CODEX_HOME": str(settings), "TMPDIR": str(temporary)}
    return [Program("`codex exec` (native)", ask, home, to_wire=True, variables=variables)]


def native_codex(command: str | None) -> Path | None:
    """Return the program itself: what npm installs is a script that starts it through Node.js."""
    if not command:
        return None
    path = Path(command).resolve()
    if path.suffix != ".js":
        return path
    packages = next((parent for parent in path.parents if parent.name == "node_modules"), path.parent)
    return next(iter(sorted(packages.glob("@openai/codex*/**/vendor/*/bin/codex"))), None)


def provider_rows(report: Report) -> Iterator[str]:
    """Time each provider from the start to the first byte of a request; the ratio is to the first of them."""
    with tempfile.TemporaryDirectory() as scratch, closing(TimingServer()) as server:
        home = Path(scratch)
        new_workspace(home)
        programs = [
            Program(
                model.partition("/")[0],
                (JP, *query(server.url, "--new", "hello", model=model, path=path)),
                home,
                to_wire=True,
            )
            for model, path in PROVIDERS.items()
        ]
        yield from _wire_rows(programs, server, report)


def server_rows(report: Report) -> Iterator[str]:
    """Time a query without tools, with one of jp's own, and with those of an MCP server that is remembered."""
    script = Path(__file__).with_name("mcp_server.py")
    mcp = json.dumps({"command": sys.executable, "arguments": ["-S", "-I", str(script)]})
    tools = json.dumps({"source": "mcp.bench.*", "enable": True})
    ways = {
        "without tools": (),
        "with a tool of jp's own": ("--tool=fs_read_file",),
        "with 20 tools of an MCP server": (
            *("--cfg", f"providers.mcp.bench:={mcp}"),
            *("--cfg", f"conversation.tools.bench:={tools}"),
        ),
    }
    with tempfile.TemporaryDirectory() as scratch, closing(TimingServer()) as server:
        home = Path(scratch)
        new_workspace(home)
        programs = [
            Program(name, (JP, *query(server.url, "--new", *words, "hello")), home, to_wire=True)
            for name, words in ways.items()
        ]
        yield from _wire_rows(programs, server, report)


def many_rows(report: Report) -> Iterator[str]:
    """Time a listing of many conversations, and a query among them and among none."""
    with tempfile.TemporaryDirectory() as scratch, closing(TimingServer()) as server:
        none, many = Path(scratch) / "none", Path(scratch) / "many"
        new_workspace(none)
        report(f"{MANY:,} conversations")
        make_conversations(new_workspace(many), MANY)
        ask = (JP, *query(server.url, "--new", "hello"))
        programs = [
            Program("`query`, among none", ask, none, to_wire=True),
            Program("`query`", ask, many, to_wire=True),
            Program("`conversation ls`", (JP, "conversation", "ls"), many),
        ]
        found = medians_of(programs, server, FEWER_RUNS, report)
    cells = [(name, _number(of.wire), f"{of.wall:.0f}", f"{of.cpu:.0f}") for name, of in found.items()]
    yield from report.table("table", ("", "to the first byte, ms", "in all, ms", "CPU, ms"), cells)
    report.figures["conversations"] = MANY
    report.figures["ls seconds"] = found["`conversation ls`"].wall / 1000
    report.figures["more ms"] = found["`query`"].wire - found["`query`, among none"].wire


def _wire_rows(programs: list[Program], server: TimingServer, report: Report) -> Iterator[str]:
    found = medians_of(programs, server, FEWER_RUNS, report)
    first = next(iter(found.values())).wire
    cells = [(name, f"{of.wire:.0f}", f"{of.wire / first:.2f}", f"{of.cpu:.0f}") for name, of in found.items()]
    yield from report.table("table", ("", "to the first byte, ms", "ratio", "CPU, ms"), cells)
