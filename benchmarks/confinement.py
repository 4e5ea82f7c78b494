"""Measure what it costs to confine a command: `true` run by jp bare and in its sandbox, in turn, in one process."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator

from jp.config.entries import SandboxConfig
from jp.process.environment import scrubbed
from jp.process.guardian import OutputLimits, ProcessLimits, Program, run
from jp.process.sandbox.launcher import in_force
from jp.process.sandbox.policy import Confinement, confinement_of

_RUNS = 40
_OUTPUT = OutputLimits(kept=1024, most=1024 * 1024)


async def _milliseconds(directory: str, confinement: Confinement | None) -> float:
    words = (shutil.which("true") or "/bin/true",)
    program = Program(words=words, directory=directory, environment=scrubbed(os.environ), sandbox=confinement)
    start = time.perf_counter()
    ended = await run(program, output=_OUTPUT, limits=ProcessLimits())
    if ended.exit_code != 0:
        raise SystemExit(f"true: exit code {ended.exit_code}")
    return (time.perf_counter() - start) * 1000


async def _samples(directory: str, confinement: Confinement) -> tuple[list[float], list[float]]:
    bare: list[float] = []
    confined: list[float] = []
    for _ in range(_RUNS + 1):
        bare.append(await _milliseconds(directory, None))
        confined.append(await _milliseconds(directory, confinement))
    return bare[1:], confined[1:]  # the first ones import and probe


def rows(report: Callable[[str], None]) -> Iterator[str]:
    """Yield the table: median and best, and what holds the command."""
    report("confinement")
    with tempfile.TemporaryDirectory() as directory:
        confinement = confinement_of(
            SandboxConfig(), default="workspace-write", root=os.path.realpath(directory), private=()
        )
        if confinement is None:
            raise SystemExit("the default of `run_command` confines nothing")
        bare, confined = asyncio.run(_samples(directory, confinement))
        held = in_force(confinement).word
    yield f"{'`true`':<12}{'median ms':>11}{'best ms':>10}"
    for name, found in (("bare", bare), ("confined", confined)):
        yield f"{name:<12}{statistics.median(found):>11.1f}{min(found):>10.1f}"
    ratio = statistics.median(confined) / statistics.median(bare)
    yield f"confined / bare: {ratio:.1f} (held: {held}); {_RUNS} runs each, in turn"
