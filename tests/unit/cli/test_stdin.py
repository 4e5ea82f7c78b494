from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from jp.app.values import PipedText, Source, choose_source, decode, read_piped, stdin_source
from jp.errors import UsageError

PIPE = stat.S_IFIFO
FILE = stat.S_IFREG
DEVICE = stat.S_IFCHR


@pytest.mark.parametrize(
    ("mode", "is_terminal", "asked", "source"),
    [
        (None, False, False, "none"),
        (None, False, True, "none"),
        (PIPE, False, False, "pipe"),
        (PIPE, False, True, "pipe"),
        (stat.S_IFSOCK, False, False, "pipe"),
        (FILE, False, False, "file"),
        (FILE, False, True, "file"),
        (DEVICE, True, False, "none"),
        (DEVICE, True, True, "terminal"),
        (DEVICE, False, False, "none"),
        (DEVICE, False, True, "file"),
        (stat.S_IFDIR, False, False, "none"),
    ],
)
def test_what_is_at_the_other_end_decides(mode: int | None, source: Source, *, is_terminal: bool, asked: bool) -> None:
    assert choose_source(mode, is_terminal=is_terminal, asked=asked, refused=False) == source


@pytest.mark.parametrize("mode", [None, PIPE, FILE, DEVICE])
def test_it_can_be_left_alone(mode: int | None) -> None:
    assert choose_source(mode, is_terminal=False, asked=False, refused=True) == "none"


def test_asking_for_it_and_leaving_it_alone_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        choose_source(PIPE, is_terminal=False, asked=True, refused=True)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\n", PipedText(text="a", size=2, is_damaged=False)),
        (b"a\n\n", PipedText(text="a\n", size=3, is_damaged=False)),
        (b"a\r\n", PipedText(text="a", size=3, is_damaged=False)),
        (b"\xef\xbb\xbfa", PipedText(text="a", size=4, is_damaged=False)),
        (b"caf\xe9", PipedText(text="caf\N{REPLACEMENT CHARACTER}", size=4, is_damaged=True)),
        (b"\n", PipedText(text="", size=1, is_damaged=False)),
    ],
)
def test_bytes_become_text_without_their_last_line_break(content: bytes, expected: PipedText) -> None:
    assert decode(content) == expected


@pytest.fixture
def saved_stdin() -> Iterator[None]:
    saved = os.dup(0)
    yield
    os.dup2(saved, 0)
    os.close(saved)


def use_as_stdin(descriptor: int) -> None:
    os.dup2(descriptor, 0)
    os.close(descriptor)


def read(
    source: Source | None = None, *, on_idle: Callable[[], object] | None = None, most_bytes: int = 1_000_000
) -> PipedText | None:
    """Read standard input, without waiting before it counts as idle where that is expected."""

    async def read_in_time() -> PipedText | None:
        with anyio.fail_after(5):
            return await read_piped(
                source or stdin_source(asked=False, refused=False),
                on_idle=on_idle or refuse_notice,
                idle_secs=60 if on_idle is None else 0,
                most_bytes=most_bytes,
            )

    return anyio.run(read_in_time)


def refuse_notice() -> None:
    raise AssertionError("nothing was idle")


@pytest.mark.usefixtures("saved_stdin")
def test_a_pipe_is_read_to_its_end() -> None:
    reader, writer = os.pipe()
    use_as_stdin(reader)

    async def feed() -> PipedText | None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write_slowly, writer)
            with anyio.fail_after(5):
                return await read_piped(stdin_source(asked=False, refused=False), on_idle=refuse_notice)

    assert anyio.run(feed) == PipedText(text="one two", size=7, is_damaged=False)


async def write_slowly(writer: int) -> None:
    os.write(writer, b"one ")
    await anyio.lowlevel.checkpoint()
    os.write(writer, b"two")
    os.close(writer)


@pytest.mark.usefixtures("saved_stdin")
def test_an_idle_pipe_is_noticed_once_and_waited_for() -> None:
    reader, writer = os.pipe()
    use_as_stdin(reader)
    notices: list[int] = []

    def write_at_last() -> None:
        notices.append(os.write(writer, b"late"))
        os.close(writer)

    assert read("pipe", on_idle=write_at_last) == PipedText(text="late", size=4, is_damaged=False)
    assert notices == [4]


@pytest.mark.usefixtures("saved_stdin")
def test_waiting_for_a_pipe_can_be_cancelled() -> None:
    reader, writer = os.pipe()
    use_as_stdin(reader)

    async def wait() -> bool:
        with anyio.fail_after(5), anyio.CancelScope() as scope:
            await read_piped("pipe", on_idle=scope.cancel, idle_secs=0)
        return scope.cancelled_caught

    assert anyio.run(wait)
    os.close(writer)


@pytest.mark.usefixtures("saved_stdin")
def test_a_socket_is_read_like_a_pipe() -> None:
    ours, theirs = socket.socketpair()
    use_as_stdin(theirs.detach())
    ours.sendall(b"over a socket\n")
    ours.close()

    piped = read()

    assert piped is not None
    assert piped.text == "over a socket"


@pytest.mark.usefixtures("saved_stdin")
def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 200_000)
    use_as_stdin(os.open(tmp_path / "large", os.O_RDONLY))

    piped = read()

    assert piped is not None
    assert piped.size == 200_000


@pytest.mark.usefixtures("saved_stdin")
@pytest.mark.parametrize("asked", [True, False])
def test_an_empty_stdin_is_nothing(*, asked: bool) -> None:
    use_as_stdin(os.open(os.devnull, os.O_RDONLY))

    assert read(stdin_source(asked=asked, refused=False)) is None


@pytest.mark.usefixtures("saved_stdin")
def test_a_closed_stdin_is_nothing() -> None:
    os.close(0)

    assert stdin_source(asked=False, refused=False) == "none"


@pytest.mark.usefixtures("saved_stdin")
def test_more_than_the_bound_is_refused_without_reading_all_of_it() -> None:
    use_as_stdin(os.open("/dev/zero", os.O_RDONLY))

    with pytest.raises(UsageError, match="more than 1,000 bytes are piped in"):
        read("file", most_bytes=1000)
