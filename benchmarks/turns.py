"""Turns with many tool cycles, or with many calls in one answer; connections and handshakes of a turn."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import trustme

from fixtures import JP, new_workspace, tool_query
from results import Report
from samples import Launcher, Program, exponent, launcher
from server import TimingServer, tool_calls

CYCLES = (1, 100, 200, 400)
CALLS = (1, 250, 500, 1000)
RUNS = 3
CONNECTED_CYCLES = 20


def rows(report: Report) -> Iterator[str]:
    """Time both kinds of turns by the CPU they use; exponents are of what comes on top of the smallest turn."""
    with launcher() as launched:
        cycles = _seconds(launched, report, CYCLES, _one_each)
        yield from _table("cycles", "tool cycles", cycles, report)
        yield ""
        calls = _seconds(launched, report, CALLS, _all_in_one)
        yield from _table("calls", "calls in one answer", calls, report)
        report("connections")
        with tempfile.TemporaryDirectory() as scratch:
            new_workspace(Path(scratch))
            connections, flights = connections_of_a_turn(launched, Path(scratch))
    report.figures |= {"connections": _counted(connections, "connection"), "waits": _counted(flights, "time")}
    yield ""
    yield f"{CONNECTED_CYCLES} tool cycles with TLS: connections {connections}, flights of handshakes {flights}"


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _table(name: str, title: str, seconds: dict[int, float], report: Report) -> Iterator[str]:
    smallest = min(seconds)
    grown = exponent({size: taken - seconds[smallest] for size, taken in seconds.items() if size != smallest})
    report.figures[f"{name} exponent"] = grown
    head = (title, *(f"{size:,}" for size in seconds), "exponent")
    yield from report.table(name, head, [("CPU, s", *(f"{taken:.2f}" for taken in seconds.values()), f"{grown:.2f}")])


def _one_each(count: int) -> list[bytes]:
    return [tool_calls(number, 1) for number in range(count)]


def _all_in_one(count: int) -> list[bytes]:
    return [tool_calls(0, count)]


def _seconds(
    launched: Launcher, report: Callable[[str], None], sizes: tuple[int, ...], answers: Callable[[int], list[bytes]]
) -> dict[int, float]:
    """Return the least seconds of CPU that a turn of each size takes."""
    found: dict[int, float] = {}
    for size in sizes:
        taken: list[float] = []
        for _ in range(RUNS):
            report(f"a turn of {size:,}")
            taken.append(_turn(launched, answers(size)))
        found[size] = min(taken)
    return found


def _turn(launched: Launcher, answers: list[bytes]) -> float:
    with tempfile.TemporaryDirectory() as scratch, closing(TimingServer(answers)) as server:
        home = Path(scratch)
        new_workspace(home)
        sample = launched.run(Program("a turn", (JP, *tool_query(server.url, "--new", "go")), home))
        if len(server.arrivals) != len(answers) + 1:
            raise SystemExit(f"{len(answers) + 1} requests were expected and {len(server.arrivals)} came")
    return sample.cpu


def connections_of_a_turn(launched: Launcher, home: Path, *, cycles: int = CONNECTED_CYCLES) -> tuple[int, int]:
    """Return how many connections a turn makes, and how often it waits for an answer in their handshakes."""
    authority = trustme.CA()
    bundle = home / "authority.pem"
    authority.cert_pem.write_to_path(bundle)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = authority.issue_cert("127.0.0.1")
    certificate.configure_cert(context)  # pyright: ignore[reportUnknownMemberType] - it takes others too
    with closing(TimingServer(_one_each(cycles), tls=context)) as server:
        ask = (JP, *tool_query(server.url, "--new", "go"))
        launched.run(Program("a turn", ask, home, variables={"SSL_CERT_FILE": str(bundle)}))
    return server.connections, server.flights
