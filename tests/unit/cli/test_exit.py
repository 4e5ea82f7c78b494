from __future__ import annotations

import io
import sys
from collections.abc import Callable

import msgspec
import pytest

from jp.cli.terminal.exit import Terminated, flush_stdout, guard
from jp.errors import AuthenticationError, ExitCode, JpError, UsageError
from jp.provider.errors import ProviderError

DEFECT = "this is a defect of jp; run it again with -vv to see where it happened"
FULL = OSError(28, "No space left on device")


def caused(cause: BaseException) -> RuntimeError:
    error = RuntimeError("Error calling __set_name__")
    error.__cause__ = cause
    return error


def raising(error: BaseException) -> Callable[[], int]:
    def work() -> int:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (JpError("it failed"), 1, "error: it failed\n"),
        (UsageError("no 'x'", hint="use y"), 2, "error: no 'x'\nhint: use y\n"),
        (ProviderError("too long", kind="context_too_long", hint="send less"), 7, "error: too long\nhint: send less\n"),
        (KeyboardInterrupt(), 130, ""),
        (caused(KeyboardInterrupt()), 130, ""),
        (Terminated(ExitCode.TERMINATED), 143, ""),
        (SystemExit(7), 7, ""),
        (SystemExit("text"), 1, ""),
        (
            FileNotFoundError(2, "No such file or directory", "a b"),
            1,
            "error: No such file or directory: 'a b'\nhint: run it again with -vv to see where this happened\n",
        ),
        (
            OSError(28, "No space left on device"),
            1,
            "error: No space left on device\nhint: run it again with -vv to see where this happened\n",
        ),
        (
            KeyError("x"),
            1,
            f"error: unexpected KeyError: 'x'\nhint: {DEFECT}\n",
        ),
        (ExceptionGroup("tasks", [KeyError("x"), UsageError("told")]), 2, "error: told\n"),
        (ExceptionGroup("tasks", [ExceptionGroup("inner", [UsageError("deep")])]), 2, "error: deep\n"),
        (BaseExceptionGroup("tasks", [KeyboardInterrupt()]), 130, ""),
    ],
)
def test_whatever_is_raised_ends_in_a_code_and_words(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guard(raising(error), as_json=False, verbosity=0) == code
    assert capsys.readouterr() == ("", said)


def test_work_that_ends_well_keeps_its_code() -> None:
    assert guard(lambda: 12, as_json=False, verbosity=0) == 12


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AuthenticationError("no 'key'", hint="set it"), "authentication"),
        (JpError("x"), "failure"),
        (ProviderError("x", kind="rate_limit"), "rate_limit"),
        (KeyError("x"), "failure"),
    ],
)
def test_an_error_can_be_one_json_object(error: Exception, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = guard(raising(error), as_json=True, verbosity=0)

    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    value = msgspec.json.decode(err)
    assert value["schema"] == 1
    assert sorted(value["error"]) == ["exit_code", "hint", "kind", "message"]
    assert (value["error"]["kind"], value["error"]["exit_code"]) == (kind, code)


@pytest.mark.parametrize("verbosity", [1, 2])
def test_a_traceback_is_shown_from_the_second_v_on(verbosity: int, capsys: pytest.CaptureFixture[str]) -> None:
    guard(raising(KeyError("x")), as_json=False, verbosity=verbosity)

    assert ("Traceback" in capsys.readouterr().err) is (verbosity == 2)


class Unflushable(io.StringIO):
    """A stdout that holds text which nobody takes."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def flush(self) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "before", "after"),
    [(BrokenPipeError(), 0, 141), (BrokenPipeError(), 5, 5), (FULL, 0, 1), (FULL, 5, 5)],
)
def test_what_stdout_does_not_take_at_the_end_is_a_failure_unless_there_was_one(
    error: OSError, before: int, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", Unflushable(error))

    assert flush_stdout(before, as_json=False) == after


@pytest.mark.parametrize(("error", "before"), [(BrokenPipeError(), 0), (FULL, 5)])
def test_nothing_is_said_where_the_reader_left_or_a_failure_was_said(
    error: OSError, before: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Unflushable(error))
    flush_stdout(before, as_json=False)

    assert capsys.readouterr().err == ""


def test_a_full_disk_at_the_end_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdout", Unflushable(FULL))
    flush_stdout(0, as_json=False)

    assert capsys.readouterr().err == (
        "error: cannot write to stdout: No space left on device\n"
        "hint: look where the output goes: there has to be room\n"
    )


def test_a_connection_that_breaks_elsewhere_is_not_taken_for_the_end_of_a_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert guard(raising(BrokenPipeError(32, "Broken pipe")), as_json=False, verbosity=0) == 1
    assert capsys.readouterr().err.startswith("error: Broken pipe\n")


def test_an_error_that_quotes_something_huge_is_cut_in_its_middle(capsys: pytest.CaptureFixture[str]) -> None:
    error = UsageError(f"no {'x' * 100_000!r} here")
    for as_json in (False, True):
        guard(raising(error), as_json=as_json, verbosity=0)

        said = capsys.readouterr().err
        assert len(said) < 4200
        assert "no 'xxx" in said
        assert "xxx' here" in said


def test_the_name_of_a_file_that_is_not_utf_8_breaks_no_json(capsys: pytest.CaptureFixture[str]) -> None:
    guard(raising(UsageError("x", hint="jp init caf\udce9")), as_json=True, verbosity=0)

    assert msgspec.json.decode(capsys.readouterr().err)["error"]["hint"] == "jp init caf\N{REPLACEMENT CHARACTER}"
