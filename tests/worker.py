"""Runs tests in a fork of the process that has collected them (`workers`), and tells it what became of each."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Literal, NamedTuple, NoReturn

import pytest
from _pytest.capture import CaptureManager
from _pytest.runner import runtestprotocol

_EVERYWHERE = vars(pytest.TestReport("", ("", 0, ""), {}, "passed", None, "call")).keys()
"""What every report has; some have more."""


class Passed(NamedTuple):
    """All that is not known beforehand of a report on what has passed."""

    when: Literal["setup", "call", "teardown"]
    duration: float
    start: float
    stop: float


class Warned(NamedTuple):
    """A warning, as text: its class may be one that only this process can find."""

    category: str
    text: str
    filename: str
    line: int
    when: str
    test: str


class Told(NamedTuple):
    """What became of a test. A report is `Passed` or what pytest can make one of again."""

    reports: Sequence[object] = ()
    warned: Sequence[Warned] = ()
    stop: tuple[str, int | None] | None = None
    """The reason and the exit code of a test that stops everything; without a reason it does what Ctrl-C does."""


def work(session: pytest.Session, line: Connection, name: str) -> NoReturn:
    """Run the tests whose numbers come until there is an empty list of them or nothing at all, and end the process.

    `name` is that of the directory for temporary files.
    """
    code = 1
    try:
        _settle(session.config, name)
        reporter = Reporter()
        session.config.pluginmanager.register(reporter)
        reporter.warned.clear()  # what was warned of before is told to everybody who comes
        for number, following in pairwise(_numbers(line)):
            if following is None:
                gc.collect()  # what earlier tests have left undone shows now or never
            item, next_item = (None if at is None else session.items[at] for at in (number, following))
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
            line.send(reporter.told(session.config))
        code = 0
    except (KeyboardInterrupt, pytest.exit.Exception) as error:
        stop = (error.msg, error.returncode) if isinstance(error, pytest.exit.Exception) else ("", None)
        with contextlib.suppress(Exception):
            line.send(Told(stop=stop))
        with contextlib.suppress(Exception):
            session._setupstate.teardown_exact(None)  # pyright: ignore[reportPrivateUsage] - what pytest does at its end
    except ConnectionError:
        pass  # nobody is there any more to be told
    except BaseException:  # noqa: BLE001 - whatever it is, the fork must not go on as if it were its parent
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _settle(config: pytest.Config, name: str) -> None:
    """Share neither Ctrl-C nor what is captured nor temporary directories with another process."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    capture = config.pluginmanager.getplugin("capturemanager")
    if isinstance(capture, CaptureManager):
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
    directories: pytest.TempPathFactory = vars(config)["_tmp_path_factory"]
    vars(directories)["_basetemp"] = directories.mktemp(name, numbered=False)


def _numbers(line: Connection) -> Iterator[int | None]:
    """The numbers of the tests to run, and None behind them."""
    with contextlib.suppress(EOFError):
        while numbers := line.recv():
            yield from numbers
    yield None


class Reporter:
    """Keeps what pytest would tell the plugins of this process."""

    def __init__(self) -> None:
        self.warned: list[Warned] = []
        self._reports: list[pytest.TestReport] = []

    def told(self, config: pytest.Config) -> Told:
        """What became of the last test."""
        told = Told([_sent(config, report) for report in self._reports], self.warned)
        self.warned = []
        return told

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Do as pytest does, which would report at once."""
        self._reports = runtestprotocol(item, log=False, nextitem=nextitem)
        return True

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str) -> None:
        """Keep a warning that is no error."""
        kind, text = warning_message.category.__name__, str(warning_message.message)
        self.warned.append(Warned(kind, text, warning_message.filename, warning_message.lineno, when, nodeid))


def _sent(config: pytest.Config, report: pytest.TestReport) -> object:
    plain = vars(report).keys() == _EVERYWHERE and not report.sections and not report.user_properties
    if plain and report.passed:
        return Passed(report.when, report.duration, report.start, report.stop)
    return config.hook.pytest_report_to_serializable(config=config, report=report)
