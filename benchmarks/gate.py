"""`make bench-gate`: counts of what jp does, with bounds. No times, so a busy machine changes nothing.

Growth: the steps of a command at a size and at twice that size. A step is a call of a function or a line of jp's code.
Budget: what a query does until the first byte of its request, and its connections, within `budget.json`.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from fixtures import (
    JP,
    MODEL,
    environment,
    make_conversations,
    make_long_conversation,
    new_workspace,
    query,
    tool_query,
)
from probe import STEPS
from server import TimingServer, tool_calls

BUDGET = Path(__file__).with_name("budget.json")
PROBE = Path(__file__).with_name("probe.py")
LINEAR = 2.1
"""Of something linear, twice as much takes at most so many times the steps."""

ALMOST_CONSTANT = 1.25
"""Of what depends little on the size: a prompt is summed up from the tokens of its messages."""

CONSTANT = 1.02
"""Of what only compares names: a new conversation's id must be that of no other."""

NOTEWORTHY = 0.95
"""Below this share of its budget, a figure asks for a lower one."""

CYCLES = 20
NAMED = 8
"""So many functions are named where a growth is too fast."""

SIDE_BY_SIDE = 2
TIMEOUT_SECS = 60


Steps = Counter[str]
"""Steps by the functions that take them."""


class Growth(NamedTuple):
    """Steps that must not grow faster than `bound` allows from `size` to twice that.

    `steps` counts them at a size. With `base`, what that size takes is subtracted.
    """

    name: str
    size: int
    bound: float
    steps: Callable[[int], Steps]
    base: int | None = None


class Grown(NamedTuple):
    """The steps at a size and at twice that size."""

    growth: Growth
    once: Steps
    twice: Steps

    @property
    def ratio(self) -> float:
        """How many times as many steps the double size takes."""
        return self.twice.total() / max(self.once.total(), 1)

    @property
    def ok(self) -> bool:
        """Whether the ratio is within its bound."""
        return self.ratio <= self.growth.bound

    def fastest(self) -> list[tuple[str, int, int]]:
        """Return the functions that exceed the bound by the most steps, with their steps at both sizes."""
        bound = 2 if self.growth.bound >= LINEAR else 1
        over = Counter({name: steps - bound * self.once[name] for name, steps in self.twice.items()})
        return [(name, self.once[name], self.twice[name]) for name, excess in over.most_common(NAMED) if excess > 0]


class Limit(NamedTuple):
    """A figure's bound in `budget.json`, and the reason for it where one is given."""

    most: int
    reason: str = ""


class Budget(NamedTuple):
    """The file `budget.json`: the Python whose modules it counts, and the bounds by the names of their figures."""

    python: str
    limits: Mapping[str, Limit]


def read_budget(path: Path = BUDGET) -> Budget:
    """Return the budget in the file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return Budget(data["python"], {name: Limit(**limit) for name, limit in data["limits"].items()})


def write_budget(budget: Budget, path: Path = BUDGET) -> None:
    """Write the budget to the file."""
    limits = {
        name: {"most": limit.most} | ({"reason": limit.reason} if limit.reason else {})
        for name, limit in budget.limits.items()
    }
    text = json.dumps({"python": budget.python, "limits": limits}, indent=2, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def probed(home: Path, words: tuple[str, ...], *, until: str = "end") -> Steps:
    """Return the counts of a command in the workspace below `home`, with the steps of each function."""
    file = home / "counts"
    file.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, str(PROBE), str(file), until, JP, *words],
        cwd=home / "work",
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=TIMEOUT_SECS,
    )
    if done.returncode != 0 or not file.exists():
        raise SystemExit(f"jp {' '.join(words)}: exit code {done.returncode}\n{done.stderr.decode()}")
    counts: Steps = Counter()
    for line in file.read_text(encoding="utf-8").splitlines():
        name, _, number = line.rpartition("\t")
        counts[name] += int(number)
    return counts


def steps_in(counts: Steps) -> Steps:
    """Return the steps of each function among these counts."""
    return Counter({name.removeprefix(STEPS): number for name, number in counts.items() if name.startswith(STEPS)})


class Stage:
    """Workspaces below a directory, each made once and for one kind of command."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch

    def home(self, name: str) -> Path:
        """Return the directory of that name, with an empty workspace if it is new."""
        home = self._scratch / name
        new_workspace(home)
        return home

    def turn(self, answers: list[bytes], name: str) -> tuple[Steps, int]:
        """Return the steps and the connections of a turn with these answers before the last."""
        with closing(TimingServer(answers)) as server:
            steps = steps_in(probed(self.home(name), tool_query(server.url, "--new", "go")))
            if len(server.arrivals) != len(answers) + 1:
                raise SystemExit(f"{len(answers) + 1} requests were expected and {len(server.arrivals)} came")
            return steps, server.connections

    def cycles(self, count: int) -> Steps:
        """Return the steps of a turn with so many tool cycles."""
        return self.turn([tool_calls(number, 1) for number in range(count)], f"cycles-{count}")[0]

    def calls(self, count: int) -> Steps:
        """Return the steps of a turn with so many calls in one answer."""
        return self.turn([tool_calls(0, count)] if count else [], f"calls-{count}")[0]

    def among(self, command: tuple[str, ...], count: int) -> Steps:
        """Return the steps of a command in a workspace of so many conversations; an empty one is a new query.

        They are those of a second run: once an hour, one looks for expired conversations.
        """
        home = self._scratch / f"{len(command)}-among-{count}"
        make_conversations(new_workspace(home), count)
        with closing(TimingServer()) as server:
            words = command or query(server.url, "--new", "hello")
            probed(home, words)
            return steps_in(probed(home, words))

    def long(self, command: tuple[str, ...], entries: int) -> Steps:
        """Return the steps of a command on a conversation of so many entries."""
        return steps_in(probed(self._long(f"{command[0]}-{entries}", entries), command))

    def later_cycles(self, entries: int) -> Steps:
        """Return the steps of ten tool cycles in a conversation of so many entries, without the rest of the turn."""
        found: list[Steps] = []
        for cycles in (1, 11):
            home = self._long(f"cycles-{cycles}-at-{entries}", entries)
            with closing(TimingServer([tool_calls(number, 1) for number in range(cycles)])) as server:
                found.append(steps_in(probed(home, tool_query(server.url, "--id", "last", "go"))))
        return difference(found[1], found[0])

    def _long(self, name: str, entries: int) -> Path:
        home = self._scratch / name
        make_long_conversation(new_workspace(home), entries, blob_bytes=200)
        return home

    def growths(self) -> tuple[Growth, ...]:
        """Return everything whose growth is bounded."""
        ls = partial(self.among, ("conversation", "ls"))
        context = partial(self.long, ("conversation", "context", "last"))
        dry_run = partial(self.long, ("query", "--dry-run", "--id", "last", "--model", MODEL, "hello"))
        return (
            Growth("a turn, by tool cycles", 60, LINEAR, self.cycles, base=0),
            Growth("a turn, by calls in one answer", 200, LINEAR, self.calls, base=0),
            Growth("a query, by conversations", 500, CONSTANT, partial(self.among, ())),
            Growth("`conversation ls`, by conversations", 500, LINEAR, ls, base=1),
            Growth("a tool cycle, by entries before it", 2000, ALMOST_CONSTANT, self.later_cycles),
            Growth("`query --dry-run`, by entries", 2000, LINEAR, dry_run, base=8),
            Growth("`conversation context`, by entries", 2000, LINEAR, context, base=8),
        )

    def path_figures(self) -> dict[str, int]:
        """Return what a query does up to the first byte of its request; a first run fills the caches."""
        home = self.home("path")
        with closing(TimingServer()) as server:
            words = query(server.url, "--new", "hello")
            probed(home, words)
            counts = probed(home, words, until="request")
        return {
            "modules loaded before the request": counts["modules"],
            "files looked up (stat) before the request": counts["stats"],
            "regular expressions compiled before the request": counts["patterns"],
            "annotations evaluated before the request": counts["annotations"],
            "function calls before the request": steps_in(counts).total(),
        }


def difference(steps: Steps, base: Steps) -> Steps:
    """Return what is left of the steps of each function without those of `base`; it may be less than nothing."""
    return Counter({name: steps[name] - base[name] for name in steps | base})


def grown(growth: Growth) -> Grown:
    """Count the steps of one growth."""
    base: Steps = Counter() if growth.base is None else growth.steps(growth.base)
    return Grown(growth, difference(growth.steps(growth.size), base), difference(growth.steps(2 * growth.size), base))


def growth_lines(found: Grown) -> Iterator[str]:
    """Yield the line of a growth; if it is too fast, with the functions that grow fastest."""
    growth, once, twice = found.growth, found.once.total(), found.twice.total()
    sizes = f"{growth.size:,} → {2 * growth.size:,}"
    yield f"{growth.name:<40}{sizes:>16}{once:>13,}{twice:>13,}{found.ratio:>8.2f}{growth.bound:>8.2f}"
    if not found.ok:
        yield "  FAILED: most of it is in these functions, which do again what was done before or are called too often:"
        yield from (f"    {name:<62}{one:>13,}{two:>13,}" for name, one, two in found.fastest())


def verdict(name: str, figure: int, limit: Limit | None) -> str:
    """Return what is to be done about a figure; empty where it is within its budget."""
    if limit is None:
        return f"  FAILED: {BUDGET.name} has no entry {name!r}: add it with `make bench-gate LOWER=1`"
    if figure > limit.most:
        over = f"{figure - limit.most:,} more than {limit.most:,}"
        return f"  FAILED: {over}: do less, or raise `most` in {BUDGET.name} and give a `reason`"
    if figure < limit.most * NOTEWORTHY:
        return f"  lower the budget: `make bench-gate LOWER=1` writes {rounded(figure):,} in place of {limit.most:,}"
    return ""


def rounded(figure: int) -> int:
    """Return the figure, from 1,000 on rounded up by less than 2 %: such counts vary a little with the directory."""
    unit = 2 * 10 ** (len(str(figure)) - 3) if figure >= 1000 else 1
    return -(-figure // unit) * unit


def lowered(budget: Budget, figures: Mapping[str, int]) -> Budget:
    """Return the budget with every figure that is new or below its bound."""
    limits = dict(budget.limits)
    for name, figure in figures.items():
        limit = limits.get(name)
        if limit is None or rounded(figure) < limit.most:
            limits[name] = Limit(rounded(figure), limit.reason if limit else "")
    return Budget(budget.python, limits)


def judged(figures: Mapping[str, int], budget: Budget) -> tuple[list[str], bool]:
    """Return the lines of the figures and whether all are within the budget."""
    lines: list[str] = []
    ok = True
    for name, figure in figures.items():
        limit = budget.limits.get(name)
        lines.append(f"{name:<56}{figure:>10,}{'' if limit is None else f'{limit.most:,}':>10}")
        if found := verdict(name, figure, limit):
            lines.append(found)
        ok = ok and "FAILED" not in found
    return lines, ok


def main() -> None:
    """Print all figures; leave with 1 where one is above its bound."""
    budget = read_budget()
    running = ".".join(platform.python_version_tuple()[:2])
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        stage = Stage(Path(scratch).resolve())
        growths = [pool.submit(grown, growth) for growth in stage.growths()]
        turn = pool.submit(stage.turn, [tool_calls(number, 1) for number in range(CYCLES)], "connections")
        path = pool.submit(stage.path_figures)
        print(f"{'steps':<40}{'size':>16}{'once':>13}{'twice':>13}{'ratio':>8}{'bound':>8}")
        found = [future.result() for future in growths]
        print("\n".join(line for each in found for line in growth_lines(each)))
        context, dry_run = (found[position].once.total() for position in (-1, -2))
        figures = {
            f"connections in a turn of {CYCLES} cycles": turn.result()[1],
            "steps of `conversation context`, % of a dry run's": context * 100 // dry_run,
        }
        on_path = path.result()
    print(f"\n{'figure':<56}{'found':>10}{'budget':>10}")
    if running == budget.python:
        figures |= on_path
    else:
        print("\n".join(f"{name:<56}{figure:>10,}" for name, figure in on_path.items()))
        print(
            f"  not judged: the modules of Python {running} are not those of {budget.python}, which the budget is for"
        )
    if "--lower" in sys.argv[1:]:
        budget = lowered(budget, figures)
        write_budget(budget)
    lines, within = judged(figures, budget)
    print("\n".join(lines))
    raise SystemExit(not (within and all(each.ok for each in found)))


if __name__ == "__main__":
    main()
