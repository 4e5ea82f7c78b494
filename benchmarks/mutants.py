"""`make mutants`: change the sources in small ways, one at a time, and count the changes that a test notices.

mutmut makes the changes ("mutants"). Each is applied to a copy of the tree, and only the tests that enter the changed
function run, until one fails; they are recorded first, in one run of the suite. The sources themselves are never
changed, and what is copied goes away with the run, however it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import libcst as cst
import libcst.matchers as m
from mutmut.mutation.file_mutation import Mutation, create_mutations

ROOT = Path(__file__).parents[1]
WORKER = Path(__file__).with_name("mutant_tests.py")
ACCEPTED = ROOT / "tests" / "accepted-mutants.txt"
COPIED = ("src", "tests", "benchmarks", "docs", "workspace-example", "pyproject.toml", "README.md", "CHANGELOG.md")
SOURCES = (
    "src/jp/turn",
    "src/jp/compaction",
    "src/jp/conversation",
    "src/jp/workspace",
    "src/jp/tool/consent.py",
    "src/jp/tool/coordinator.py",
    "src/jp/tool/rules.py",
    *(f"src/jp/provider/{name}/response.py" for name in ("anthropic", "chat", "google", "ollama", "openai")),
)
TARGET = 0.9
NOTICED = ("failed", "did not end")
TYPES_ONLY = m.Call(func=m.Name(value=m.MatchIfTrue({"cast", "assert_never", "TypeVar"}.__contains__)))
MESSAGES = m.Raise() | m.Call(func=m.Name(value=m.MatchRegex(r"\w+(Error|Warning)|storage_errors|failure|phrase")))
"""Calls whose texts are the words of an error, a hint or a note."""

UNREACHABLE = re.compile(r"^\s*case _:\s+(pass|assert_never\(.*\))\s*$")
"""The case of a closed union that names all of its members: it cannot run."""

CASELESS = re.compile(r"\b(SELECT|INSERT|WHERE|CREATE|PRAGMA|DELETE|UPDATE|BEGIN|COMMIT|ROLLBACK)\b")
"""SQL, whose words are the same in any case."""

TEXTS = m.SimpleString() | m.FormattedString() | m.ConcatenatedString()


FEW_TESTS = 40
MOST_SECS = 15.0
LIMIT_SECS = 3 * MOST_SECS

Tests = dict[str, tuple[float, list[str]]]
"""Each test's duration, and the functions that it enters."""


class Mutant(NamedTuple):
    """A change of one function: the lines that differ, and the whole source with it."""

    path: str
    function: str
    line: int
    removed: tuple[str, ...]
    added: tuple[str, ...]
    code: str

    @property
    def name(self) -> str:
        """Return a name that stays when other lines change."""
        return " | ".join((f"{self.path}:{self.function}", " ".join(self.removed), " ".join(self.added)))


class Candidate(NamedTuple):
    """A change that is not applied yet."""

    path: str
    module: cst.Module
    mutation: Mutation

    def applied(self) -> Mutant:
        """Return the source with this change."""
        mutation, before = self.mutation, self.module.code.splitlines()
        changed = self.module.deep_replace(mutation.original_node, mutation.mutated_node)
        code = changed.code if isinstance(changed, cst.Module) else self.module.code
        lines = _difference(before, code.splitlines())
        line = lines[0][0] if lines else 0
        removed = tuple(text.strip() for _, sign, text in lines if sign == "-")
        added = tuple(text.strip() for _, sign, text in lines if sign == "+")
        function = mutation.contained_by_top_level_function
        return Mutant(self.path, function.name.value if function else "", line, removed, added, code)


def _difference(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, str, str]]:
    """Return the lines that differ: where, `-` or `+`, and the text."""
    start = next(
        (n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    end, most = 0, min(len(before), len(after)) - start
    while end < most and before[-1 - end] == after[-1 - end]:
        end += 1
    removed, added = before[start : len(before) - end], after[start : len(after) - end]
    return [*((start + 1, "-", text) for text in removed), *((start + 1, "+", text) for text in added)]


def candidates(sources: Sequence[str]) -> Iterator[Candidate]:
    """Yield all changes of the sources but those that no behavior depends on."""
    paths = (sorted((ROOT / name).rglob("*.py")) if (ROOT / name).is_dir() else [ROOT / name] for name in sources)
    for path in chain.from_iterable(paths):
        name = str(path.relative_to(ROOT))
        module, mutations, _, _ = create_mutations(name, path.read_text(encoding="utf-8"))
        ignored = _without_behavior(module)
        for mutation in mutations:
            if isinstance(mutation.contained_by_top_level_function, cst.FunctionDef) and not ignored(mutation):
                yield Candidate(name, module, mutation)


def _without_behavior(module: cst.Module) -> Callable[[Mutation], bool]:
    """Return whether a change is of types only, of the words of an error, or of the case of an encoding or of SQL."""
    types = {id(node) for call in m.findall(module, TYPES_ONLY) for node in _within(call)}
    words = {
        id(node) for part in m.findall(module, MESSAGES) for text in m.findall(part, TEXTS) for node in _within(text)
    }

    def ignored(mutation: Mutation) -> bool:
        old, new = mutation.original_node, mutation.mutated_node
        if isinstance(old, cst.Match) and isinstance(new, cst.Match):
            kept = {id(case) for case in new.cases}
            return any(id(case) not in kept and UNREACHABLE.search(module.code_for_node(case)) for case in old.cases)
        if id(old) in types or id(old) in words:
            return True
        if isinstance(old, cst.SimpleString) and isinstance(new, cst.SimpleString):
            is_caseless = old.value == '"utf-8"' or CASELESS.search(old.value) is not None
            return is_caseless and old.value.lower() == new.value.lower()
        return False

    return ignored


def _within(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield a node and all below it."""
    yield node
    for child in node.children:
        yield from _within(child)


class Suite:
    """Copies of the tree, each with an environment and a process that runs tests in it."""

    def __init__(self, directory: Path, count: int) -> None:
        self.workers = [self._started(directory / str(number)) for number in range(count)]

    def _started(self, tree: Path) -> subprocess.Popen[str]:
        tree.mkdir()
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__", "foreign"))
            else:
                shutil.copy(source, tree / name)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", tree / "env"], check=True)
        [packages] = (tree / "env" / "lib").glob("python3*/site-packages")
        installed = Path(sys.prefix, *packages.relative_to(tree / "env").parts)
        (packages / "paths.pth").write_text(f"{tree / 'src'}\n{installed}\n", encoding="utf-8")
        shutil.copy(WORKER, packages / "mutant_tests.py")
        (tree / "tmp").mkdir()
        environment = os.environ | {"TMPDIR": str(tree / "tmp"), "PYTHONPATH": ""}
        command = [tree / "env" / "bin" / "python", packages / "mutant_tests.py"]
        return subprocess.Popen(
            command, cwd=tree, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def answers(self, jobs: Sequence[object]) -> Iterator[tuple[int, object]]:
        """Yield the number and the answer of each job as it is done."""
        waiting, done = queue.SimpleQueue[tuple[int, object]](), queue.SimpleQueue[tuple[int, object]]()
        for job in enumerate(jobs):
            waiting.put(job)

        def work(worker: subprocess.Popen[str]) -> None:
            while True:
                try:
                    number, job = waiting.get_nowait()
                except queue.Empty:
                    return
                if worker.stdin is not None and worker.stdout is not None:  # they are pipes
                    print(json.dumps(job), file=worker.stdin, flush=True)
                    done.put((number, json.loads(worker.stdout.readline() or '"the worker ended"')))

        for worker in self.workers:
            threading.Thread(target=work, args=(worker,), daemon=True).start()
        for _ in jobs:
            yield done.get()

    def close(self) -> None:
        """End the processes."""
        for worker in self.workers:
            worker.kill()
            worker.wait()


def recorded(suite: Suite, kept: Path | None) -> Tests:
    """Return the functions that each test enters, and how long it takes: recorded in a run of all tests."""
    if kept is not None and kept.is_file():
        return json.loads(kept.read_text(encoding="utf-8"))
    files = sorted(ROOT.glob("tests/*/**/test_*.py"), key=lambda path: -path.stat().st_size)
    names = [str(path.relative_to(ROOT)) for path in files]
    names = [name for name in names if not name.startswith(("tests/foreign/", "tests/unit/benchmarks/"))]
    parts = [names[number::8] for number in range(8)]
    tests: Tests = {}
    for _, answer in suite.answers([{"record": part, "sources": SOURCES} for part in parts]):
        if not isinstance(answer, dict):  # a mutant would survive for want of tests
            raise SystemExit(f"the tests could not be recorded: {answer}")
        tests |= answer
    if kept is not None:
        kept.write_text(json.dumps(tests), encoding="utf-8")
    return tests


def chosen_tests(mutant: Mutant, tests: Tests) -> list[list[str]]:
    """Return the tests that enter the function: first the few that are quick and enter little else, then more."""
    key = f"{mutant.path}:{mutant.function}"
    known = sorted(
        (secs + len(entered) / 2000, secs, test) for test, (secs, entered) in tests.items() if key in entered
    )
    ranks: Counter[str] = Counter()
    ranked: list[tuple[float, float, str]] = []
    for cost, secs, test in known:
        cases = test.partition("[")[0]
        ranks[cases] += 1
        ranked.append((cost * ranks[cases], secs, test))
    few, more, spent = list[str](), list[str](), 0.0
    for _, secs, test in sorted(ranked):
        spent += secs
        if spent > MOST_SECS:
            break
        (few if len(few) < FEW_TESTS else more).append(test)
    return [part for part in (few, more) if part]


def judged(suite: Suite, mutants: Sequence[Mutant], tests: Tests) -> Iterator[tuple[Mutant, str]]:
    """Yield how the tests end with each mutant: more tests run with those that survive the first few."""
    left = [(mutant, chosen_tests(mutant, tests)) for mutant in mutants]
    yield from ((mutant, "no test enters it") for mutant, parts in left if not parts)
    for stage in range(2):
        now = [(mutant, parts) for mutant, parts in left if len(parts) > stage]
        jobs = [
            {"path": mutant.path, "code": mutant.code, "tests": parts[stage], "limit": LIMIT_SECS}
            for mutant, parts in now
        ]
        left: list[tuple[Mutant, list[list[str]]]] = []
        for number, end in suite.answers(jobs):
            mutant, parts = now[number]
            if end == "survived" and len(parts) > stage + 1:
                left.append((mutant, parts))
            else:
                yield mutant, str(end)


class Report:
    """The survivors, as they are found, and the score of each package."""

    def __init__(self) -> None:
        lines = ACCEPTED.read_text(encoding="utf-8").splitlines() if ACCEPTED.is_file() else []
        self.reasons = dict(line.rsplit(" # ", 1) for line in lines if not line.startswith("#") and " # " in line)
        self.total, self.noticed, self.ends = Counter[str](), Counter[str](), Counter[str]()

    def add(self, mutant: Mutant, end: str) -> None:
        """Count a mutant; print it if it has survived."""
        _, _, package, *rest = mutant.path.split("/")
        package = f"provider/{rest[0]}" if package == "provider" else package
        self.total[package] += 1
        self.ends[end] += 1
        if end in NOTICED:
            self.noticed[package] += 1
        else:
            reason = self.reasons.get(mutant.name, "not accepted")
            print(f"{mutant.path}:{mutant.line}: {end}: {reason}\n  {mutant.name}", flush=True)

    def score(self) -> float:
        """Print the figures, and return the part that is noticed."""
        for package, total in sorted(self.total.items()):
            print(f"{package:20} {self.noticed[package]:4} of {total:4}")
        total = self.total.total()
        score = self.noticed.total() / total if total else 0.0
        print(f"{score:.1%} of {total} mutants are noticed: {dict(self.ends)}")
        return score


def main() -> int:
    """Run and report; leave with 1 below the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="part of a path")
    parser.add_argument("--record", type=Path, help="a file that keeps which test enters what, for further runs")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()
    chosen = [candidate for candidate in candidates(SOURCES) if options.only in candidate.path]
    sample = random.Random(options.seed).sample(chosen, min(options.count, len(chosen)))  # noqa: S311 - reproducible
    mutants = [candidate.applied() for candidate in sample]
    print(f"seed {options.seed}: {len(mutants)} of {len(chosen)} mutants", flush=True)
    with ExitStack() as here:
        memory = Path("/dev/shm")  # noqa: S108 - only the directory within it is used
        place = memory if os.access(memory, os.W_OK) else None
        directory = here.enter_context(
            tempfile.TemporaryDirectory(prefix="mutants-", dir=place, ignore_cleanup_errors=True)
        )
        suite = Suite(Path(directory), options.jobs)
        here.callback(suite.close)
        tests = recorded(suite, options.record)
        print(f"{len(tests)} tests recorded after {time.monotonic() - began:.0f} s", flush=True)
        report = Report()
        try:
            for mutant, end in judged(suite, mutants, tests):
                report.add(mutant, end)
        finally:  # also where it is interrupted
            score = report.score()
            print(f"{time.monotonic() - began:.0f} s")
        return 0 if score >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
