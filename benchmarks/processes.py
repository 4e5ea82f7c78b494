"""Whole processes: start-up, help, one-shot queries, listings. Runs are interleaved; medians are given."""

from __future__ import annotations

import itertools
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


def _programs(url: str) -> list[Program]:
    jp = (str(Path(sys.executable).with_name("jp")),)
    ask = (
        *jp,
        "query",
        "--new",
        "--cfg",
        f"providers.llm.anthropic.base_url={url}",
        "--model",
        "anthropic/claude-haiku-4-5",
    )
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
        "ANTHROPIC_API_KEY": "k",
        "OPENAI_API_KEY": "k",
        "LLM_USER_PATH": str(llm),
        "LC_ALL": "C.UTF-8",
    }


def _make_conversations(root: Path) -> None:
    from jp.workspace.metadata import Metadata
    from jp.workspace.workspace import create_workspace, find_workspace

    create_workspace(root, commit_conversations=False)
    workspace = find_workspace(root, user_data=root / "data")
    for number in range(CONVERSATIONS):
        workspace.create({}, Metadata(title=f"conversation {number}"))


def _sample(home: Path, server: TimingServer, report: Callable[[str], None]) -> dict[str, list[Sample]]:
    """Every program `RUNS` times, in turns; the first round warms up and is not counted."""
    listed, empty = home / "listed", home / "empty"
    listed.mkdir()
    empty.mkdir()
    _make_conversations(listed)
    env = _environment(home, server.url)
    programs = _programs(server.url)
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
        samples = _sample(Path(scratch), server, report)
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
