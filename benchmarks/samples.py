"""Commands that are run and timed."""

from __future__ import annotations

import marshal
import math
import statistics
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import IO, NamedTuple

from fixtures import environment
from server import TimingServer

LAUNCHER = Path(__file__).with_name("launcher.py")


class Program(NamedTuple):
    """A command to time, in the workspace below `home`; with `to_wire`, up to the first byte of its request too."""

    name: str
    command: Sequence[str]
    home: Path
    to_wire: bool = False
    variables: Mapping[str, str] = {}


class Sample(NamedTuple):
    """One run: seconds to the wire (None where nothing was sent), seconds in all and of CPU, peak memory in MB."""

    wire: float | None
    wall: float
    cpu: float
    peak: float


class Medians(NamedTuple):
    """The medians of several runs, in ms and MB."""

    wire: float
    wall: float
    cpu: float
    peak: float


class Launcher:
    """Runs programs from a small process of its own."""

    def __init__(self, jobs: IO[bytes], answers: IO[bytes]) -> None:
        self._jobs = jobs
        self._answers = answers

    def run(self, program: Program, server: TimingServer | None = None) -> Sample:
        """Run it once; a failure ends the benchmark."""
        before = len(server.arrivals) if server else 0
        variables = environment(program.home, **program.variables)
        marshal.dump((list(program.command), variables, str(program.home / "work")), self._jobs)
        self._jobs.flush()
        code, start, end, cpu, peak = marshal.load(self._answers)  # noqa: S302 - from the launcher
        if code != 0:
            message = f"{program.name}: exit code {code}"
            raise SystemExit(message)
        wire = server.arrivals[before] - start if server and program.to_wire else None
        return Sample(wire, end - start, cpu, peak / (1024 if sys.platform == "linux" else 1024 * 1024))


@contextmanager
def launcher() -> Generator[Launcher]:
    """Start a launcher and end it."""
    command = [sys.executable, "-S", "-I", str(LAUNCHER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("both are pipes")
        yield Launcher(process.stdin, process.stdout)


def medians_of(
    programs: Sequence[Program], server: TimingServer, runs: int, report: Callable[[str], None]
) -> dict[str, Medians]:
    """Run every program so often, in turns; the first round warms up and is not counted."""
    samples: dict[str, list[Sample]] = {program.name: [] for program in programs}
    with launcher() as launched:
        for run, program in product(range(runs + 1), programs):
            report(f"run {run} of {runs}: {program.name}")
            sample = launched.run(program, server)
            if run:
                samples[program.name].append(sample)
    return {name: _medians(taken) for name, taken in samples.items()}


def _medians(samples: Sequence[Sample]) -> Medians:
    wires = [sample.wire for sample in samples if sample.wire is not None]
    return Medians(
        wire=statistics.median(wires) * 1000 if wires else math.nan,
        wall=statistics.median(sample.wall for sample in samples) * 1000,
        cpu=statistics.median(sample.cpu for sample in samples) * 1000,
        peak=statistics.median(sample.peak for sample in samples),
    )


def exponent(points: Mapping[int, float]) -> float:
    """Return the exponent of growth that fits the points best: the slope of a line through their logarithms."""
    sizes = [math.log(size) for size in points]
    costs = [math.log(max(cost, 1e-9)) for cost in points.values()]
    return statistics.linear_regression(sizes, costs).slope
