"""Runs the tests in forks of the process that has collected them: `--workers=auto`.

Each fork (`worker`) has what the collection has imported, at no price. It is given the numbers of a few tests at a
time, fewer and fewer towards the end, and tells what became of each; this process makes pytest's reports of it.
Fixtures of a module or of the session are set up in each fork that needs them. A fork that dies has failed the test
that it was running; another one takes its place.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import warnings
from collections import deque
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from selectors import EVENT_READ, DefaultSelector
from time import monotonic
from typing import Literal

import pytest

from worker import Passed, Told, work

MOST_AT_ONCE = 32
"""So many tests are given to a worker at most."""

SHARE = 8
"""A worker is given one in so many of the tests that would be its share of the rest."""

PATIENCE_SECS = 10.0
"""So long, workers that are stopped may take down what they have set up."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer `--workers`."""
    about = "run the tests in N forks of this process; auto: one more than there are processors; 0: in this process"
    parser.addoption("--workers", type=_count, default=0, metavar="N", help=about)


def _count(text: str) -> int:
    """One more than there are processors, unless it is said: many tests wait for a process or a deadline."""
    if text == "auto":
        return (os.cpu_count() or 1) + 1
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor 'auto'")
    return int(text)


def pytest_configure(config: pytest.Config) -> None:
    """Take the place of pytest's own loop, unless somebody debugs or only lists the tests."""
    alone = config.option.usepdb or config.option.trace or config.option.collectonly
    if config.option.workers and not alone:
        config.pluginmanager.register(Distribution(config.option.workers), "distribution")


class Worker:
    """A fork that runs tests, as the process sees it that gives them to it."""

    def __init__(self, process: int, line: Connection) -> None:
        """`process` is its id."""
        self.process = process
        self.line = line
        self.given: deque[int] = deque()
        """The tests that it has not told of. It runs the first one."""
        self.wants = True
        """Whether it waits for more."""

    def give(self, numbers: list[int]) -> None:
        """Have it run these next; without any, those that it has are its last ones. Nothing where it has died."""
        self.given.extend(numbers)
        self.wants = bool(numbers)
        with contextlib.suppress(OSError):
            self.line.send(numbers)

    def hear(self) -> Told | None:
        """What became of the first test that it was given; None if it has ended."""
        try:
            return self.line.recv()
        except (EOFError, OSError):
            return None

    def reap(self) -> str:
        """How it has ended; empty if there was nothing left to do."""
        self.line.close()
        code = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        if code < 0:
            return f"was killed by signal {-code} ({signal.strsignal(-code)})"
        return f"ended with exit code {code}" if code or self.given else ""


class Distribution:
    """Gives the tests of this process to its forks."""

    def __init__(self, count: int) -> None:
        """`count` is the number of workers."""
        self._count = count
        self._process = os.getpid()
        self._hired = 0
        self._crew: set[Worker] = set()

    def pytest_report_header(self) -> str:
        """Name the number of workers."""
        return f"workers: {self._count}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all tests; what pytest says where there is none to run is left to it."""
        broken = session.testsfailed and not session.config.option.continue_on_collection_errors
        if broken or not session.items:
            return None
        if others := [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]:
            raise pytest.UsageError(f"nothing can be forked while threads run: {', '.join(others)}")
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        if isinstance(reporter, pytest.TerminalReporter):
            reporter.showfspath = False  # as results come, they would hardly ever be of the same file twice
        vars(session.config)["_tmp_path_factory"].getbasetemp()
        self._session = session
        self._rest = deque(range(len(session.items)))
        with DefaultSelector() as self._selector:
            try:
                self._distribute()
            finally:
                self._dismiss()
        return True

    def _distribute(self) -> None:
        for _ in range(min(self._count, len(self._rest))):
            self._hire()
        while self._crew:
            for key, _ in self._selector.select():
                worker: Worker = key.data
                told = worker.hear()
                if told is None:
                    self._bury(worker)
                elif told.stop and told.stop[0]:
                    pytest.exit(*told.stop)
                elif told.stop:
                    raise KeyboardInterrupt
                else:
                    self._report(self._session.items[worker.given.popleft()], told)
                    self._supply(worker)

    def _hire(self) -> None:
        """Fork a worker."""
        self._hired += 1
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            process = os.fork()
            if not process:
                ours.close()
                self._selector.close()
                for worker in self._crew:
                    worker.line.close()
                work(self._session, theirs, f"worker-{self._hired}")
        finally:
            # An interrupt at this very moment must not have the fork go on as if it were this process.
            if os.getpid() != self._process:
                os._exit(1)
        theirs.close()
        worker = Worker(process, ours)
        self._crew.add(worker)
        self._selector.register(ours, EVENT_READ, worker)
        self._supply(worker)

    def _supply(self, worker: Worker) -> None:
        """Give it more if it has but one: what follows that one decides what is taken down after it."""
        while worker.wants and len(worker.given) < 2:
            worker.give(self._next())

    def _next(self) -> list[int]:
        """A few tests of one module."""
        most = min(MOST_AT_ONCE, max(1, len(self._rest) // (SHARE * self._count)))
        items = self._session.items
        numbers: list[int] = []
        while self._rest and len(numbers) < most:
            if numbers and items[self._rest[0]].path != items[numbers[0]].path:
                break
            numbers.append(self._rest.popleft())
        return numbers

    def _report(self, item: pytest.Item, told: Told) -> None:
        """Say to everybody what became of a test, and stop where pytest would."""
        hook = item.ihook
        for warned in told.warned:
            kind = type(warned.category, (Warning,), {})
            message = warnings.WarningMessage(kind(warned.text), kind, warned.filename, warned.line)
            hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": message, "nodeid": warned.test, "when": warned.when, "location": None}
            )
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for sent in told.reports:
            hook.pytest_runtest_logreport(report=_report_of(item, sent))
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _bury(self, worker: Worker) -> None:
        """Go on without a worker. Where it had something to do, it has failed the first of it."""
        self._leave(worker)
        how = worker.reap()
        if how and not worker.given:
            raise RuntimeError(f"a worker {how} after its last test")
        if worker.given:
            item = self._session.items[worker.given.popleft()]
            self._rest.extendleft(reversed(worker.given))
            why = f"the process that ran the test {how}"
            self._report(item, Told([pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")]))
        if self._rest:
            self._hire()

    def _leave(self, worker: Worker) -> None:
        self._crew.discard(worker)
        self._selector.unregister(worker.line)

    def _dismiss(self) -> None:
        """Interrupt who still works, and wait until it has cleaned up; not for ever."""
        deadline = monotonic() + PATIENCE_SECS
        for worker in self._crew:
            os.kill(worker.process, signal.SIGINT)
        try:
            while self._crew and (ready := self._selector.select(max(0.0, deadline - monotonic()))):
                for worker in [key.data for key, _ in ready if key.data.hear() is None]:
                    self._leave(worker)
                    worker.reap()
        finally:
            for worker in self._crew:
                os.kill(worker.process, signal.SIGKILL)
                worker.reap()


def _report_of(item: pytest.Item, sent: object) -> pytest.TestReport:
    match sent:
        case pytest.TestReport():
            return sent
        case Passed(when, duration, start, stop):
            keywords: dict[str, Literal[1]] = dict.fromkeys(item.keywords, 1)
            return pytest.TestReport(
                item.nodeid, item.location, keywords, "passed", None, when, (), duration, start, stop
            )
        case _:
            return item.config.hook.pytest_report_from_serializable(config=item.config, data=sent)
