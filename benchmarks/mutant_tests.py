"""Runs tests in a copy of the tree for `mutants`: a job is a line on stdin, its answer a line on stdout.

A job either records which functions each test enters, or applies a mutant and runs tests until one fails. Each runs in
a child that is forked from a process which has imported pytest and the libraries, but neither jp nor the tests.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import itertools
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

import pytest

HITS = "hits.jsonl"
CONTEXT = "context"
LOG = "pytest.log"
RAN_TO_THE_END = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
LIBRARIES = (
    "hypothesis",
    "hypothesis.strategies",
    "hypothesis.stateful",
    "anyio",
    "msgspec",
    "httpx2",
    "rich.console",
    "mcp",
    "anthropic",
    "openai",
    "google.genai",
    "jsonschema",
    "trustme",
    "typer",
    "tomlkit",
    "inline_snapshot",
)
LATE = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
GRACE_SECS = 30
MOST_CPU_SECS = 60
MOST_MEMORY = 6 << 30

_times = itertools.count(int(time.time()) - 10_000_000)


class _Entered:
    """The functions that are entered, by the test that runs."""

    def __init__(self) -> None:
        self.process, self.test = 0, ""
        self.seen: set[str] = set()
        self.hits = -1

    def note(self, **found: object) -> None:
        """Write a line to the hits, which stay open: a test may run without the right to open them."""
        os.write(self.hits, f"{json.dumps(found)}\n".encode())

    def enter(self, name: str) -> None:
        """Note a function; in a process that a test has started, at once."""
        process = os.getpid()
        if process != self.process:
            self.process, self.seen, self.test = process, set[str](), ""
        if name in self.seen:
            return
        self.seen.add(name)
        if not self.test:
            with contextlib.suppress(OSError):
                tree = Path(__file__).parents[4]
                test = (tree / CONTEXT).read_text(encoding="utf-8")
                with (tree / HITS).open("a", encoding="utf-8") as hits:
                    hits.write(json.dumps({"test": test, "entered": [name]}) + "\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Attribute to this test what is entered while it runs."""
        Path(CONTEXT).write_text(item.nodeid, encoding="utf-8")
        self.process, self.test, self.seen = os.getpid(), item.nodeid, set[str]()
        try:
            return (yield)
        finally:
            self.note(test=self.test, entered=sorted(self.seen))

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how long a test takes, and whether it passes."""
        self.note(test=report.nodeid, secs=report.duration, passed=report.passed)


entered = _Entered()
"""What the instrumented functions call."""


class _Chosen:
    """Runs the tests that are asked for, in that order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.places = {test: place for place, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out all other tests."""
        items[:] = sorted((item for item in items if item.nodeid in self.places), key=lambda i: self.places[i.nodeid])


def record(files: Sequence[str], sources: Sequence[str]) -> dict[str, object] | str:
    """Return what each test that passes enters, and its duration; a text if the tests do not run to their end."""
    originals = {path: path.read_text(encoding="utf-8") for path in _modules(sources)}
    for path, code in originals.items():
        _write(path, _instrumented(path, code))
    here: _Entered = sys.modules[__name__].entered
    here.hits = os.open(HITS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    status = _in_child(lambda: _pytest([*files], here), 1200)
    os.close(here.hits)
    for path, code in originals.items():
        _write(path, code)
    if status not in RAN_TO_THE_END:
        return f"the tests of {files[0]!r} and others ended with {status}: {_last_words()}"
    names: dict[str, set[str]] = {}
    secs: dict[str, float] = {}
    failed: set[str] = set()
    for line in Path(HITS).read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        test = found["test"]
        names.setdefault(test, set()).update(found.get("entered", ()))
        secs[test] = secs.get(test, 0) + found.get("secs", 0)
        if not found.get("passed", True):
            failed.add(test)
    return {test: [round(secs[test], 4), sorted(found)] for test, found in names.items() if test not in failed}


def _last_words() -> str:
    """Return the end of what pytest said."""
    return Path(LOG).read_text(encoding="utf-8", errors="replace")[-2000:]


def _modules(sources: Sequence[str]) -> Iterator[Path]:
    """Yield the modules below the `sources`."""
    for source in map(Path, sources):
        yield from source.rglob("*.py") if source.is_dir() else [source]


def _instrumented(path: Path, code: str) -> str:
    """Have each function of a module, and each method of its classes, say that it is entered."""
    lines = code.splitlines(keepends=True)
    places: list[tuple[int, int, str]] = []
    body = list(ast.parse(code).body)
    for node in [*body, *itertools.chain.from_iterable(node.body for node in body if isinstance(node, ast.ClassDef))]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = next((s for s in node.body if not _is_docstring(s)), None)
            if first is not None and first.lineno > node.lineno:
                above = [decorator.lineno for decorator in getattr(first, "decorator_list", ())]
                places.append((min([first.lineno, *above]) - 1, first.col_offset, node.name))
    for line, indent, name in sorted(places, reverse=True):
        lines.insert(line, f"{' ' * indent}__import__('mutant_tests').entered.enter({f'{path}:{name}'!r})\n")
    return "".join(lines)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def attempt(path: Path, code: str, tests: Sequence[str], limit: float) -> str:
    """Return how the tests end with this mutant."""
    original = path.read_text(encoding="utf-8")
    _write(path, code)
    try:
        status = _in_child(lambda: _pytest(sorted({test.partition("::")[0] for test in tests}), _Chosen(tests)), limit)
    finally:
        _write(path, original)
    return {0: "survived", None: "did not end"}.get(status, "failed")


def _write(path: Path, code: str) -> None:
    """Write a module such that nothing compiled from an earlier text of it is used."""
    path.write_text(code, encoding="utf-8")
    moment = next(_times)
    os.utime(path, (moment, moment))


def _pytest(files: Sequence[str], plugin: object) -> int:
    """Run tests, quietly."""
    with Path(LOG).open("w+b") as nothing:
        for number in (0, 1, 2):
            os.dup2(nothing.fileno(), number)
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:inline_snapshot", "-W", LATE, *files]
    if isinstance(plugin, _Chosen):
        arguments.append("-x")
    return int(pytest.main(arguments, [plugin]))


def _in_child(action: Callable[[], int], limit: float) -> int | None:
    """Run it in a child of bounded memory and processor time, and return its status; `None` if it does not end."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
            if limit < 600:
                resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECS, MOST_CPU_SECS))
            status = action()
        except BaseException:  # noqa: BLE001 - the child ends here
            traceback.print_exc()
        finally:
            os._exit(status)
    deadline = time.monotonic() + limit + GRACE_SECS
    descriptor = os.pidfd_open(child)
    ended = select.select([descriptor], [], [], deadline - time.monotonic())[0]
    os.close(descriptor)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if ended and status >= 0 else None


def main() -> None:
    """Do the jobs as they come."""
    answers = os.fdopen(os.dup(1), "w")
    sys.modules["mutant_tests"] = sys.modules[__name__]
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        job = json.loads(line)
        if "record" in job:
            answer: object = record(job["record"], job["sources"])
        else:
            answer = attempt(Path(job["path"]), job["code"], job["tests"], job["limit"])
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
