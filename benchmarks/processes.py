"""Whole processes: start-up, help, one-shot queries, listings. Runs are interleaved; medians are given."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from server import TimingServer

RUNS = 11
CONVERSATIONS = 1000


class Program(NamedTuple):
    """A command to time. `to_wire`: the time to the first request byte is taken too."""

    name: str
    command: Sequence[str]
    to_wire: bool = False


class Sample(NamedTuple):
    """One run: seconds to the wire (None where nothing was sent), seconds in all and of CPU, peak memory in MB."""

    wire: float | None
    wall: float
    cpu: float
    peak: float


def _run(program: Program, env: Mapping[str, str], cwd: Path, server: TimingServer) -> Sample:
    before = len(server.arrivals)
    start = time.monotonic()
    process = subprocess.Popen(
        program.command,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        message = f"{program.name}: exit code {process.returncode}"
        raise SystemExit(message)
    wire = server.arrivals[before] - start if program.to_wire else None
    peak = usage.ru_maxrss / (1024 if sys.platform == "linux" else 1024 * 1024)
    return Sample(wire, wall, usage.ru_utime + usage.ru_stime, peak)


def _asking(model: str, url: str, *, path: str = "") -> tuple[str, ...]:
    provider = model.partition("/")[0]
    jp = str(Path(sys.executable).with_name("jp"))
    account = f"providers.llm.{provider}.base_url={url}{path}"
    return (jp, "query", "--new", "--cfg", account, "--model", model)


def _providers(url: str) -> list[Program]:
    """A one-shot query to each provider, and to a server that the user has declared."""
    models = {
        "anthropic/claude-haiku-4-5": "",
        "openai/gpt-5.5": "/v1",
        "google/gemini-3-flash": "/v1beta",
        "openrouter/openai/gpt-5.5": "/api/v1",
        "cerebras/gpt-oss-120b": "/v1",
        "ollama/qwen3": "",
        "llamacpp/qwen3": "/v1",
        "mine/qwen3": "/v1",
    }
    return [
        Program(model.partition("/")[0], (*_asking(model, url, path=path), "hello"), to_wire=True)
        for model, path in models.items()
    ]


def _with_servers(url: str) -> list[Program]:
    """A one-shot query without tools, with one of jp's own, and with those of an MCP server that is remembered."""
    ask = (*_asking("anthropic/claude-haiku-4-5", url), "--cfg")
    script = Path(__file__).with_name("mcp_server.py")
    server = json.dumps({"command": sys.executable, "arguments": ["-S", "-I", str(script)]})
    tools = json.dumps({"source": "mcp.bench.*", "enable": True})
    remembering = (*ask, f"providers.mcp.bench:={server}", "--cfg", f"conversation.tools.bench:={tools}", "hello")
    return [
        Program("without tools", (*ask, "user.name=x", "hello"), to_wire=True),
        Program(
            "with a tool of jp's own", (*ask, "conversation.tools.fs_read_file.enable=true", "hello"), to_wire=True
        ),
        Program("with 20 tools of an MCP server", remembering, to_wire=True),
    ]


def _programs(url: str) -> list[Program]:
    jp = (str(Path(sys.executable).with_name("jp")),)
    ask = _asking("anthropic/claude-haiku-4-5", url)
    programs = [
        Program("python -c pass", (sys.executable, "-I", "-c", "pass")),
        Program("jp --version", (*jp, "--version")),
        Program("jp --help", (*jp, "--help")),
        Program("jp query (one-shot)", (*ask, "hello"), to_wire=True),
        Program(f"jp conversation ls ({CONVERSATIONS:,})", (*jp, "conversation", "ls")),
    ]
    llm = os.environ.get("JP_BENCH_LLM") or shutil.which("llm")
    if llm:
        programs += [
            Program("llm --version", (llm, "--version")),
            Program("llm --help", (llm, "--help")),
            Program("llm (one-shot)", (llm, "-m", "loopback", "--no-log", "hello"), to_wire=True),
        ]
    return programs


def _environment(home: Path, url: str) -> dict[str, str]:
    llm = home / "llm"
    llm.mkdir()
    model = f"- model_id: loopback\n  model_name: x\n  api_base: {url}/v1\n  api_key_name: none\n"
    (llm / "extra-openai-models.yaml").write_text(model, encoding="utf-8")
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "JP_USER_DATA_DIR": str(home / "data"),
        "JP_GLOBAL_CONFIG_DIR": str(home / "config"),
        "JP_SESSION": "bench",
        **{f"{name}_API_KEY": "k" for name in ("ANTHROPIC", "OPENAI", "GEMINI", "OPENROUTER", "CEREBRAS")},
        "LLM_USER_PATH": str(llm),
        "LC_ALL": "C.UTF-8",
    }


def _make_conversations(root: Path) -> None:
    from jp.workspace.listing import Metadata
    from jp.workspace.workspace import create_workspace, find_workspace

    create_workspace(root, commit_conversations=False)
    workspace = find_workspace(root, user_data=root / "data")
    for number in range(CONVERSATIONS):
        workspace.create({}, Metadata(title=f"conversation {number}"))


def _sample(
    programs: Sequence[Program], home: Path, server: TimingServer, report: Callable[[str], None]
) -> dict[str, list[Sample]]:
    """Every program `RUNS` times, in turns; the first round warms up and is not counted."""
    listed, empty = home / "listed", home / "empty"
    listed.mkdir()
    empty.mkdir()
    _make_conversations(listed)
    env = _environment(home, server.url)
    samples: dict[str, list[Sample]] = {program.name: [] for program in programs}
    for run, program in itertools.product(range(RUNS + 1), programs):
        report(f"processes, run {run} of {RUNS}: {program.name}")
        sample = _run(program, env, listed if " ls " in program.name else empty, server)
        if run:
            samples[program.name].append(sample)
    return samples


def rows(report: Callable[[str], None]) -> list[str]:
    """Time everything, interleaved; the lines of a table in milliseconds and multiples of `python -c pass`."""
    server = TimingServer()
    with tempfile.TemporaryDirectory() as scratch:
        samples = _sample(_programs(server.url), Path(scratch), server, report)
    server.close()
    floor = statistics.median([sample.wall for sample in samples["python -c pass"]])
    table = [f"{'':<32}{'to wire ms':>11}{'wall ms':>9}{'x pass':>8}{'CPU ms':>8}{'peak MB':>9}"]
    for name, taken in samples.items():
        wires = [sample.wire for sample in taken if sample.wire is not None]
        wire = f"{statistics.median(wires) * 1000:.0f}" if wires else ""
        wall = statistics.median([sample.wall for sample in taken])
        cpu = statistics.median([sample.cpu for sample in taken])
        peak = statistics.median([sample.peak for sample in taken])
        table.append(f"{name:<32}{wire:>11}{wall * 1000:>9.0f}{wall / floor:>8.1f}{cpu * 1000:>8.0f}{peak:>9.0f}")
    return table


def provider_rows(report: Callable[[str], None]) -> list[str]:
    """From the start of a process to the first request byte, for each provider; the ratio is to the first of them."""
    return _wire_rows(_providers, report)


def server_rows(report: Callable[[str], None]) -> list[str]:
    """The same, with and without an MCP server; the first run starts it, and the others remember its tools."""
    return _wire_rows(_with_servers, report)


def _wire_rows(programs: Callable[[str], list[Program]], report: Callable[[str], None]) -> list[str]:
    server = TimingServer()
    with tempfile.TemporaryDirectory() as scratch:
        samples = _sample(programs(server.url), Path(scratch), server, report)
    server.close()
    medians = {
        name: statistics.median([sample.wire for sample in taken if sample.wire is not None])
        for name, taken in samples.items()
    }
    first = next(iter(medians.values()))
    head = f"{'':<32}{'to wire ms':>11}{'ratio':>8}{'CPU ms':>8}"
    return [
        head,
        *(
            f"{name:<32}{wire * 1000:>11.0f}{wire / first:>8.2f}"
            f"{statistics.median([sample.cpu for sample in samples[name]]) * 1000:>8.0f}"
            for name, wire in medians.items()
        ),
    ]
