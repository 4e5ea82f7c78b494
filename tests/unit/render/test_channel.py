from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest

from jp.cli.terminal.wording import worded
from jp.errors import JpError
from jp.render.channel import Channel


def channel_over(stream: TextIO | None) -> Channel:
    return Channel(stream, name="stdout")


def test_text_is_written_at_once_and_after_what_the_stream_held(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("w", encoding="utf-8") as stream:
        stream.write("before ")
        channel = channel_over(stream)

        channel.write("after é")

        assert path.read_text(encoding="utf-8") == "before after é"


def test_a_stream_without_a_descriptor_is_written_through() -> None:
    stream = io.StringIO()
    channel = channel_over(stream)

    channel.write("text")
    channel.write_bytes(b"\xc3\xa9\n")

    assert stream.getvalue() == "texté\n"


def test_what_cannot_be_encoded_is_escaped() -> None:
    raw = io.BytesIO()
    channel = channel_over(io.TextIOWrapper(raw, encoding="ascii"))

    channel.write("é \udc80")

    assert raw.getvalue() == b"\\xe9 \\udc80"


def test_nothing_is_written_to_a_stream_that_was_closed() -> None:
    channel = channel_over(None)

    channel.write("text")

    assert not channel.is_at_line_start


def test_lines_are_kept_apart_only_where_something_was_written() -> None:
    stream = io.StringIO()
    channel = channel_over(stream)

    channel.leave_line()
    channel.end_line()
    channel.write("one")
    channel.end_line()
    channel.end_line()
    channel.leave_line()
    channel.leave_line()
    channel.write("two\n")
    channel.write("\n")
    channel.leave_line()

    assert stream.getvalue() == "one\n\ntwo\n\n"


def test_streams_on_one_file_know_of_each_others_lines(tmp_path: Path) -> None:
    with (
        (tmp_path / "out").open("w", encoding="utf-8") as first,
        os.fdopen(os.dup(first.fileno()), "w", encoding="utf-8") as second,
    ):
        out, err = channel_over(first), channel_over(second)

        assert out.shares_sink(err)
        assert out.shares_sink(err)
        out.write("text")
        err.end_line()
        err.write("note\n")
        out.end_line()

        assert (tmp_path / "out").read_text(encoding="utf-8") == "text\nnote\n"


def test_streams_on_two_files_do_not(tmp_path: Path) -> None:
    with (tmp_path / "a").open("w", encoding="utf-8") as first, (tmp_path / "b").open("w", encoding="utf-8") as second:
        assert not channel_over(first).shares_sink(channel_over(second))
        assert not channel_over(first).shares_sink(channel_over(io.StringIO()))


def test_what_is_erased_again_counts_for_nothing() -> None:
    channel = channel_over(io.StringIO())

    channel.write_unseen("waiting")

    assert channel.is_at_line_start


def test_that_the_reader_has_left_is_for_the_caller_to_know() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        channel = channel_over(stream)

        with pytest.raises(BrokenPipeError):
            channel.write("text")


def test_a_lossy_stream_loses_what_nobody_reads() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        channel = Channel(stream, name="stderr", is_lossy=True)

        channel.write("text")
        channel.write("text")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_an_error_that_names_the_stream() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as stream:
        channel = channel_over(stream)

        with pytest.raises(JpError, match="cannot write to stdout: No space left on device") as caught:
            channel.write("text")
    assert "`jp conversation print`" in worded(caught.value.hint)


def test_a_reader_that_is_slow_gets_everything_from_a_pipe_that_does_not_block() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    text = "0123456789" * 100_000
    count = "import sys; print(len(sys.stdin.read()))"
    with (
        os.fdopen(reader, "r", encoding="utf-8") as source,
        subprocess.Popen([sys.executable, "-c", count], stdin=source, stdout=subprocess.PIPE) as process,
    ):
        with os.fdopen(writer, "w", encoding="utf-8") as stream:
            channel_over(stream).write(text)
        counted, _ = process.communicate(timeout=30)

    assert int(counted) == len(text)


def test_only_what_leads_to_a_program_is_a_pipe(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb"), os.fdopen(writer, "w", encoding="utf-8") as stream:
        channel = channel_over(stream)
        assert channel.is_pipe
    assert not channel.is_pipe  # it is closed
    with (tmp_path / "out").open("w", encoding="utf-8") as stream:
        assert not channel_over(stream).is_pipe
    assert not channel_over(io.StringIO()).is_pipe
