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
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
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
KILLED = ("failed", "did not end")
TYPES_ONLY = m.Call(func=m.Name(value=m.MatchIfTrue({"cast", "assert_never", "TypeVar"}.__contains__)))
MESSAGES = m.Raise() | m.Call(func=m.Name(value=m.MatchRegex(r"\w+(Error|Warning)")))
TEXTS = m.SimpleString() | m.FormattedString() | m.ConcatenatedString()


FEW_TESTS = 40
MOST_SECS = 15.0

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
        line = next((number for number, sign, _ in lines), 0)
        removed = tuple(text.strip() for _, sign, text in lines if sign == "-")
        added = tuple(text.strip() for _, sign, text in lines if sign == "+")
        function = mutation.contained_by_top_level_function
        return Mutant(self.path, function.name.value if function else "", line, removed, added, code)


def _difference(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, str, str]]:
    """Return the lines that differ: where, `-` or `+`, and the text."""
    start = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    end, most = 0, min(len(before), len(after)) - start
    while end < most and before[-1 - end] == after[-1 - end]:
        end += 1
    removed, added = before[start : len(before) - end], after[start : len(after) - end]
    return [*((start + 1, "-", text) for text in removed), *((start + 1, "+", text) for text in added)]


def candidates(sources: Sequence[str]) -> Iterator[Candidate]:
    """Yield all changes of the sources but those that no behavior depends on."""
    for source in sources:
        place = ROOT / source
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            name = str(path.relative_to(ROOT))
            module, mutations, _, _ = create_mutations(name, path.read_text(encoding="utf-8"))
            ignored = _without_behavior(module)
            for mutation in mutations:
                if isinstance(mutation.contained_by_top_level_function, cst.FunctionDef) and not ignored(mutation):
                    yield Candidate(name, module, mutation)


def _without_behavior(module: cst.Module) -> Callable[[Mutation], bool]:
    """Return whether a change is of types only, of the words of an error, or of the case of an encoding's name."""
    types = {id(node) for call in m.findall(module, TYPES_ONLY) for node in _within(call)}
    words = {id(node) for part in m.findall(module, MESSAGES) for text in m.findall(part, TEXTS) for node in _within(text)}

    def ignored(mutation: Mutation) -> bool:
        old, new = mutation.original_node, mutation.mutated_node
        if id(old) in types or id(old) in words:
            return True
        texts = isinstance(old, cst.SimpleString) and isinstance(new, cst.SimpleString)
        return texts and old.value.lower() == new.value.lower() == '"utf-8"'

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
                assert worker.stdin is not None
                assert worker.stdout is not None
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
        tests |= answer if isinstance(answer, dict) else {}
    if kept is not None:
        kept.write_text(json.dumps(tests), encoding="utf-8")
    return tests


def chosen_tests(mutant: Mutant, tests: Tests) -> list[list[str]]:
    """Return the tests that enter the function: first the few that are quick and enter little else, then more."""
    key = f"{mutant.path}:{mutant.function}"
    known = sorted((secs + len(entered) / 2000, secs, test) for test, (secs, entered) in tests.items() if key in entered)
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


def judged(suite: Suite, mutants: Sequence[Mutant], tests: Tests) -> dict[int, str]:
    """Return how the tests end with each mutant: the few tests first, then more for those that survive them."""
    ends = dict.fromkeys(range(len(mutants)), "no test enters it")
    parts = [chosen_tests(mutant, tests) for mutant in mutants]
    for stage in range(2):
        open_ = [n for n in ends if ends[n] not in KILLED and len(parts[n]) > stage]
        jobs = [
            {"path": mutants[n].path, "code": mutants[n].code, "tests": parts[n][stage], "limit": 3 * MOST_SECS}
            for n in open_
        ]
        for job, end in suite.answers(jobs):
            ends[open_[job]] = str(end)
    return ends


def reported(mutants: Sequence[Mutant], ends: dict[int, str]) -> bool:
    """Print the survivors, package by package, and the score; return whether it reaches the target."""
    lines = ACCEPTED.read_text(encoding="utf-8").splitlines() if ACCEPTED.is_file() else []
    reasons = dict(line.rsplit(" # ", 1) for line in lines if " # " in line and not line.startswith("#"))
    totals, survived = Counter[str](), Counter[str]()
    for number, mutant in sorted(enumerate(mutants), key=lambda pair: (pair[1].path, pair[1].line)):
        package = "/".join(mutant.path.split("/")[2:4]) if "provider" in mutant.path else mutant.path.split("/")[2]
        totals[package] += 1
        if ends[number] not in KILLED:
            survived[package] += 1
            print(f"{mutant.path}:{mutant.line}: {ends[number]}: {reasons.get(mutant.name, 'not accepted')}")
            print(f"  {mutant.name}")
    for package, total in sorted(totals.items()):
        print(f"{package:20} {total - survived[package]:4} of {total:4}")
    score = 1 - survived.total() / max(1, len(mutants))
    print(f"{dict(Counter(ends.values()))}: {score:.1%} of {len(mutants)} mutants are noticed")
    return score >= TARGET


def main() -> int:
    """Run and report; leave with 1 below the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="part of a path")
    parser.add_argument("--record", type=Path, help="a file that keeps which test enters what, for further runs")
    options = parser.parse_args()
    began = time.monotonic()
    chosen = [candidate for candidate in candidates(SOURCES) if options.only in candidate.path]
    sample = random.Random(options.seed).sample(chosen, min(options.count, len(chosen)))  # noqa: S311 - reproducible
    mutants = [candidate.applied() for candidate in sample]
    print(f"seed {options.seed}: {len(mutants)} of {len(chosen)} mutants", flush=True)
    with ExitStack() as here:
        memory = Path("/dev/shm")  # noqa: S108 - only the directory within it is used
        place = memory if os.access(memory, os.W_OK) else None
        directory = here.enter_context(tempfile.TemporaryDirectory(prefix="mutants-", dir=place, ignore_cleanup_errors=True))
        suite = Suite(Path(directory), options.jobs)
        here.callback(suite.close)
        tests = recorded(suite, options.record)
        print(f"{len(tests)} tests recorded after {time.monotonic() - began:.0f} s", flush=True)
        noticed = reported(mutants, judged(suite, mutants, tests))
        print(f"{time.monotonic() - began:.0f} s")
        return 0 if noticed else 1


if __name__ == "__main__":
    sys.exit(main())
