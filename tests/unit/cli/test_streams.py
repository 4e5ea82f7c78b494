from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

import pytest

from jp.cli.terminal import streams
from jp.errors import JpError
from jp.render.sanitize import mask

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Failing(io.StringIO):
    """A stream that takes nothing."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def flush(self) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("caf\u00e9 \U0001f600", "caf\u00e9 \U0001f600".encode()),
        (os.fsdecode(b"caf\xe9"), b"caf\xe9"),
        ("\ud800x\udfff", b"?x?"),
    ],
)
def test_stdout_is_utf_8_in_any_locale_and_encodes_everything(
    text: str, expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    streams.prepare()
    streams.write_stdout(text)

    assert written.getvalue() == expected


def test_a_stdout_that_takes_no_more_is_an_error_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Failing(OSError(28, "No space left on device")))

    with pytest.raises(JpError) as caught:
        streams.write_stdout("text")

    assert caught.value.message == "cannot write to stdout: No space left on device"


def test_a_reader_that_has_left_is_no_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Failing(BrokenPipeError()))

    with pytest.raises(BrokenPipeError):
        streams.write_stdout("text")


def test_what_stderr_does_not_take_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Failing(OSError(28, "No space left on device")))

    streams.write_stderr("text")


def test_stderr_gets_neither_secrets_nor_control_sequences(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "abcdefgh")

    streams.write_stderr("key abcdefgh \x1b]0;title\x07\x1b[31mred\n")

    assert capsys.readouterr().err == "key *** red\n"


@pytest.mark.parametrize(
    ("name", "is_masked"),
    [("A_API_KEY", True), ("GITHUB_TOKEN", True), ("db_password", True), ("X_SECRET", True), ("HOME", False)],
)
def test_names_of_variables_say_what_is_secret(name: str, *, is_masked: bool) -> None:
    assert (mask("a 12345678 b", {name: "12345678"}) == "a *** b") is is_masked


def test_short_values_are_not_masked() -> None:
    assert mask("a 1 b", {"A_API_KEY": "1", "B_API_KEY": ""}) == "a 1 b"


class Narrow(io.BytesIO):
    """Takes three bytes at a time, as a pipe without a buffer before it may."""

    def write(self, data: Buffer, /) -> int:
        return super().write(memoryview(data)[:3])


def test_bytes_are_written_as_they_are_and_all_of_them_behind_what_was_written_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = Narrow()
    stream = io.TextIOWrapper(written, encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", stream)
    stream.write("ab")

    streams.write_stdout_bytes(b"\x89PNG\r\n\x1a\n")

    assert written.getvalue() == b"ab\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(28, "No space left on device")])
def test_bytes_that_stdout_does_not_take_are_a_failure_as_text_is(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", Failing(error))

    with pytest.raises(BrokenPipeError if isinstance(error, BrokenPipeError) else JpError):
        streams.write_stdout_bytes(b"x")
