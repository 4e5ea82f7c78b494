from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest

ALL_ENDINGS = """
    import sys
    import warnings
    import pytest

    def test_passes(): pass
    def test_fails():
        print("what it had said")
        assert 1 + 1 == 3
    def test_is_skipped(): pytest.skip("no reason")
    @pytest.mark.xfail(reason="known")
    def test_is_known_to_fail(): assert False
    @pytest.mark.xfail(reason="thought to fail")
    def test_passes_against_all_hope(): pass
    @pytest.fixture
    def broken(): raise ValueError("cannot be set up")
    def test_cannot_begin(broken): pass
    @pytest.fixture
    def clumsy():
        yield
        raise ValueError("cannot be taken down")
    def test_cannot_end(clumsy): pass
    def test_warns(): warnings.warn("be careful", FutureWarning)
    def test_gives_properties(record_property): record_property("colour", "green")
"""

DIES = """
    import os, signal
    import pytest

    @pytest.mark.parametrize("number", range(20))
    def test_lives(number): pass
    def test_is_killed(): os.kill(os.getpid(), signal.SIGKILL)
    def test_ends_everything(): os._exit(0)
    @pytest.mark.parametrize("number", range(20))
    def test_lives_on(number): pass
"""

SHARES = """
    import os
    import pytest

    @pytest.fixture(scope="module", autouse=True)
    def opened():
        yield
        with open("closed", "a", encoding="utf-8") as closed:
            closed.write(f"{os.getpid()}\\n")
    @pytest.mark.parametrize("number", range(50))
    def test_writes(number, tmp_path):
        tmp_path.joinpath("mine").touch(exist_ok=False)
"""

LEAVES = """
    import pytest
    def test_leaves(): pytest.exit("enough", 42)
    def test_passes(): pass
"""

INTERRUPTS = """
    def test_interrupts(): raise KeyboardInterrupt
    def test_passes(): pass
"""

FAILS_TWICE = """
    def test_fails(): assert False
    def test_fails_again(): assert False
    def test_passes(): pass
"""

SLEEPS = """
    import threading
    threading.Thread(target=threading.Event().wait, name="Sleeper", daemon=True).start()
    def test_passes(): pass
"""

STAYS = """
    import signal
    from pathlib import Path
    import pytest

    @pytest.fixture(scope="session")
    def opened():
        yield
        Path("closed").touch()
    def test_stays(opened):
        Path("begun").write_text("yes")
        while True:
            signal.pause()
"""


class Run(NamedTuple):
    """What came of a run of pytest."""

    code: int
    said: str

    @property
    def end(self) -> str:
        """The last line, without decoration and the time."""
        return re.sub(r"^=* ?| in \d.*$", "", self.said.splitlines()[-1])


SERVER = """
import argparse
import gc
import json
import multiprocessing.connection
import os
import pdb
import selectors
import sys

import pytest
from _pytest.config import get_config

get_config()
gc.collect()
gc.freeze()
for line in sys.stdin:
    directory, options = json.loads(line)
    process = os.fork()
    if not process:
        code = 70
        try:
            said = os.open(f"{directory}/said", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(said, stream)
            os.chdir(directory)
            code = pytest.main(["-q", "-p", "workers", "-p", "no:faulthandler", "--basetemp=below", *options])
            sys.stdout.flush()
        finally:
            os._exit(code)
    print(process, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""
"""Forks for each run, so that pytest, its plugins and what ours imports are imported once."""


class Runner:
    """Runs pytest on a file of its own in a directory of its own."""

    def __init__(self, directory: Path, server: subprocess.Popen[str]) -> None:
        self.directory = directory
        self._server = server
        (directory / "pytest.ini").write_text("[pytest]\njunit_family = xunit1\n", encoding="utf-8")

    def start(self, source: str, *options: str, workers: int = 2) -> int:
        """Begin; the process id."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        (self.directory / "test_it.py").write_text(dedent(source), encoding="utf-8")
        print(
            json.dumps([str(self.directory), [f"--workers={workers}", *options]]), file=self._server.stdin, flush=True
        )
        return int(self._server.stdout.readline())

    def end(self) -> Run:
        """Wait for what was begun."""
        assert self._server.stdout is not None
        code = int(self._server.stdout.readline())
        return Run(code, (self.directory / "said").read_text(encoding="utf-8"))

    def __call__(self, source: str, *options: str, workers: int = 2) -> Run:
        self.start(source, *options, workers=workers)
        return self.end()


@pytest.fixture(scope="module")
def server() -> Generator[subprocess.Popen[str]]:
    environment = os.environ | {
        "COLUMNS": "200",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": str(Path(__file__).parent),
    }
    command = [sys.executable, "-c", SERVER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8", env=environment) as process:
        yield process


@pytest.fixture
def run(tmp_path: Path, server: subprocess.Popen[str]) -> Runner:
    return Runner(tmp_path, server)


def test_every_way_in_which_a_test_ends_is_told_as_without_workers(run: Runner, tmp_path: Path) -> None:
    runs: list[Run] = []
    results: list[list[tuple[str | None, list[str]]]] = []
    for workers in (0, 1, 2):
        runs.append(run(ALL_ENDINGS, "-ra", "--junitxml=all.xml", workers=workers))
        cases = ET.parse(tmp_path / "all.xml").iter("testcase")  # noqa: S314 - pytest wrote it
        results.append(sorted((case.get("name"), [inner.tag for inner in case]) for case in cases))

    alone, in_order, together = runs
    assert {run.end for run in runs} == {"1 failed, 4 passed, 1 skipped, 1 xfailed, 1 xpassed, 1 warning, 2 errors"}
    assert {run.code for run in runs} == {pytest.ExitCode.TESTS_FAILED}
    for run_of_them in runs:
        assert "assert (1 + 1) == 3" in run_of_them.said
        assert "- Captured stdout call -" in run_of_them.said
        assert "what it had said" in run_of_them.said
        assert "test_it.py::test_warns" in run_of_them.said
        assert "FutureWarning: be careful" in run_of_them.said
        assert "SKIPPED [1] test_it.py:10: no reason" in run_of_them.said
    assert without_times(in_order.said) == without_times(alone.said)
    assert sorted(without_times(together.said).splitlines()[-9:]) == sorted(without_times(alone.said).splitlines()[-9:])
    assert results[0] == results[1] == results[2]
    assert ("test_gives_properties", ["properties"]) in results[0]


def without_times(said: str) -> str:
    return re.sub(r"in \d+\.\d+s", "", said)


@pytest.mark.parametrize(
    ("source", "options", "code", "words"),
    [
        ("def test_passes(): pass", [], pytest.ExitCode.OK, "1 passed in"),
        ("", [], pytest.ExitCode.NO_TESTS_COLLECTED, "no tests ran in"),
        ("import nowhere_at_all", [], pytest.ExitCode.INTERRUPTED, "Interrupted: 1 error during collection"),
        ("", ["--workers=many"], pytest.ExitCode.USAGE_ERROR, "'many' is neither a number nor 'auto'"),
        (LEAVES, [], 42, "_pytest.outcomes.Exit: enough"),
        (INTERRUPTS, [], pytest.ExitCode.INTERRUPTED, "KeyboardInterrupt"),
        (FAILS_TWICE, ["-x"], pytest.ExitCode.TESTS_FAILED, "stopping after 1 failures"),
        (SLEEPS, [], pytest.ExitCode.USAGE_ERROR, "nothing can be forked while threads run: Sleeper"),
    ],
)
def test_the_exit_code_is_pytests(run: Runner, *, source: str, options: list[str], code: int, words: str) -> None:
    done = run(source, *options, workers=1)

    assert done.code == code, done.said
    assert words in done.said
    assert "passed" not in done.said or code == pytest.ExitCode.OK


def test_a_worker_that_dies_has_failed_its_test_and_the_rest_goes_on_and_what_failed_is_found_again(
    run: Runner,
) -> None:
    done = run(DIES)

    assert done.end == "2 failed, 40 passed"
    assert done.code == pytest.ExitCode.TESTS_FAILED
    assert "FAILED test_it.py::test_is_killed - the process that ran the test was killed by signal 9" in done.said
    assert "FAILED test_it.py::test_ends_everything - the process that ran the test ended with exit code 0" in done.said

    assert run(DIES, "--last-failed", workers=1).end == "2 failed"


def test_a_module_is_set_up_once_a_worker_and_directories_are_apart(run: Runner, tmp_path: Path) -> None:
    assert run(SHARES).end == "50 passed"

    closed = (tmp_path / "closed").read_text(encoding="utf-8").splitlines()
    below = [path.name for path in (tmp_path / "below").iterdir()]
    assert len(closed) == len(set(closed)) == 2
    assert sorted(below) == ["worker-1", "worker-2"]
    assert len(list((tmp_path / "below").glob("*/*[0-9]/mine"))) == 50


def test_ctrl_c_stops_the_tests_and_takes_down_what_they_had_set_up(run: Runner, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "begun")
    process = run.start(STAYS)
    assert (tmp_path / "begun").read_text(encoding="utf-8") == "yes"

    os.kill(process, signal.SIGINT)

    done = run.end()
    assert done.code == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in done.said
    assert done.end == "no tests ran"
    assert (tmp_path / "closed").exists()
