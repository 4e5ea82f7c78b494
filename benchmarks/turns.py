"""Turns with many tool cycles, or with many calls in one answer; connections and handshakes of a turn."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import trustme

from fixtures import JP, new_workspace, tool_query
from samples import Launcher, Program, Report, exponent, launcher
from server import TimingServer, tool_calls

CYCLES = (1, 100, 200, 400)
CALLS = (1, 250, 500, 1000)
RUNS = 2
CONNECTED_CYCLES = 20


def rows(report: Report) -> Iterator[str]:
    """Time both kinds of turns by the CPU they use; exponents are of what comes on top of the smallest turn."""
    with launcher() as launched:
        yield f"{'tool cycles':<24}" + "".join(f"{count:>10,}" for count in CYCLES) + f"{'exponent':>10}"
        yield _line(_seconds(launched, report, CYCLES, _one_each), report, "cycles")
        yield f"{'calls in one answer':<24}" + "".join(f"{count:>10,}" for count in CALLS) + f"{'exponent':>10}"
        yield _line(_seconds(launched, report, CALLS, _all_in_one), report, "calls")
        report("connections")
        connections, flights = _connections(launched)
    yield ""
    yield f"{CONNECTED_CYCLES} tool cycles with TLS: connections {connections}, handshake flights {flights}"
    report.figures |= {"connections of a turn": connections, "flights of a turn": flights}


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


def _line(seconds: dict[int, float], report: Report, name: str) -> str:
    smallest = min(seconds)
    grown = exponent({size: taken - seconds[smallest] for size, taken in seconds.items() if size != smallest})
    largest = max(seconds)
    report.figures |= {f"exponent of {name}": grown, f"seconds of {largest} {name}": seconds[largest]}
    return f"{'  CPU s':<24}" + "".join(f"{taken:>10.2f}" for taken in seconds.values()) + f"{grown:>10.2f}"


def _connections(launched: Launcher) -> tuple[int, int]:
    """Return how many connections a turn makes, and how often it waits for an answer in their handshakes."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)  # pyright: ignore[reportUnknownMemberType] - it takes a context of pyOpenSSL too
    with (
        tempfile.TemporaryDirectory() as scratch,
        closing(TimingServer(_one_each(CONNECTED_CYCLES), tls=context)) as server,
    ):
        home = Path(scratch)
        new_workspace(home)
        bundle = home / "authority.pem"
        authority.cert_pem.write_to_path(bundle)
        ask = (JP, *tool_query(server.url, "--new", "go"))
        launched.run(Program("a turn", ask, home, variables={"SSL_CERT_FILE": str(bundle)}))
    return server.connections, server.flights
