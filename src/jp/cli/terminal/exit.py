"""The end of a run: its exit code, and the report of a failure."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from time import monotonic
from types import FrameType

from jp.cli.terminal.streams import SCHEMA, json_text, stdout_failed, write_stderr
from jp.errors import ExitCode, JpError

_DETAILS = 2
_LONGEST, _TAIL = 4000, 1000


class Terminated(SystemExit):
    """The process was told to end by SIGTERM or SIGHUP; what is open gets closed on the way out.

    A SystemExit because an event loop lets only that and KeyboardInterrupt pass from wherever they are raised.
    """


SAME_PRESS_SECS = 0.1
"""Two SIGINTs within this time are one Ctrl-C: the terminal sends it to everybody, and some parents pass it on."""


class _Unwinding:
    """Lets signals unwind the program by an exception, and knows which one did last."""

    def __init__(self) -> None:
        self.code: ExitCode | None = None
        self._at = -math.inf

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Raise what unwinds the program, once for each press of a key."""
        code = ExitCode.INTERRUPTED if number == _SIGINT else ExitCode.TERMINATED
        now = monotonic()
        if code == self.code and now - self._at <= SAME_PRESS_SECS:
            return
        self.code, self._at = code, now
        if code == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        raise Terminated(code)


_SIGINT = 2
_unwinding = _Unwinding()


def end_on_signals() -> None:
    """Let SIGINT, SIGTERM and SIGHUP unwind the program by an exception, so that locks and files are closed."""
    import signal

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) not in {signal.SIG_IGN, None}:
            signal.signal(number, _unwinding.receive)


def guard(work: Callable[[], int], *, as_json: bool, verbosity: int) -> int:
    """Return the exit code of `work`, whatever it raises; a failure is reported on stderr."""
    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - the outermost handler of the program
        return _code_of(_first_cause(error), as_json=as_json, verbosity=verbosity)


def report(error: JpError, *, as_json: bool) -> None:
    """Print what failed and how to fix it to stderr: two lines, or one JSON object.

    Secrets are removed; very long texts are cut.
    """
    message, hint = (_shortened(_without_secrets(_worded(text))) for text in (error.message, error.hint))
    if as_json:
        value = {"kind": _kind(error), "message": message, "hint": hint, "exit_code": int(error.exit_code)}
        write_stderr(json_text({"schema": SCHEMA, "error": value}) + "\n")
    else:
        write_stderr(f"error: {message}\n" + (f"hint: {hint}\n" if hint else ""))


def flush_stdout(code: int, *, as_json: bool) -> int:
    """Write what stdout still holds; the code to leave with, which is `code` unless only this failed."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if code:
            return code
        if isinstance(error, BrokenPipeError):
            return ExitCode.BROKEN_PIPE
        report(stdout_failed(error), as_json=as_json)
        return ExitCode.FAILURE
    return code


def _code_of(error: BaseException, *, as_json: bool, verbosity: int) -> int:
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else ExitCode.FAILURE
    if (stopped := _signal_behind(error)) is not None:
        return stopped
    if isinstance(error, BrokenPipeError) and _reader_has_left():
        return ExitCode.BROKEN_PIPE
    if verbosity >= _DETAILS:
        _write_traceback(error)
    said = error if isinstance(error, JpError) else _in_words(error)
    report(said, as_json=as_json)
    return said.exit_code


def _signal_behind(error: BaseException) -> ExitCode | None:
    """Return the exit code of the signal that unwound the program, where `error` is what others made of it.

    What is raised while a class is being made has a RuntimeError around it in Python 3.11, and what stops an import
    may become an ImportError.
    """
    if isinstance(error, JpError):
        return None
    if _unwinding.code is not None:  # an import that is stopped may lose it: "cannot release un-acquired lock"
        return _unwinding.code
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, KeyboardInterrupt):
            return ExitCode.INTERRUPTED
        if isinstance(found, Terminated):
            return ExitCode.TERMINATED
        waiting += (found.__cause__, found.__context__, *_causes(found))
    return None


def _in_words(error: BaseException) -> JpError:
    """Return a message for an unexpected error."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename!r}" if error.filename else ""
        return JpError(f"{error.strerror}{where}", hint="run it again with -vv to see where this happened")
    if isinstance(error, RecursionError):
        return JpError(
            "something that was read is nested too deeply",
            hint="simplify it: a schema, a call's arguments, or a file; -vv says where this was found out",
        )
    return JpError(
        f"unexpected {type(error).__name__}: {error}",
        hint="this is a defect of jp; run it again with -vv to see where it happened",
    )


def _first_cause(error: BaseException) -> BaseException:
    """Return the first error inside a group of concurrent tasks that has a message for users, else the first."""
    causes = _causes(error)
    return next((cause for cause in causes if isinstance(cause, JpError)), causes[0])


def _causes(error: BaseException) -> list[BaseException]:
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return [cause for each in inner for cause in _causes(each)] or [error]


def _reader_has_left() -> bool:
    """Return whether stdout or stderr is a pipe without a reader, rather than some other connection that broke."""
    from select import POLLERR, POLLHUP, poll

    poller = poll()
    for descriptor in (1, 2):
        poller.register(descriptor, 0)
    return any(events & (POLLERR | POLLHUP) for _, events in poller.poll(0))


def _kind(error: JpError) -> str:
    kind = getattr(error, "kind", None)
    return kind if isinstance(kind, str) else error.exit_code.name.lower()


def _worded(text: str) -> str:
    if type(text) is str:
        return text
    from jp.cli.terminal.wording import worded

    return worded(text)


def _shortened(text: str) -> str:
    """Return `text` without its middle if it is as long as a file."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - _TAIL]} … {text[-_TAIL:]}"


def _write_traceback(error: BaseException) -> None:
    from traceback import format_exception

    write_stderr(_without_secrets("".join(format_exception(error))))


def _without_secrets(text: str) -> str:
    from jp.context.redaction import redact

    return redact(text).text
