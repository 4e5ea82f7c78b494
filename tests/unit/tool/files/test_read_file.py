from __future__ import annotations

import os
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from jp.conversation.entries import Facts
from jp.conversation.resource import Resource, ResourceBlock, TextBlock, file_uri
from jp.tool.base import ToolInvocation, ToolOutput
from jp.tool.files import access
from jp.tool.files.access import MAX_BYTES, Content, FileAccessError, ResolvedPath
from jp.tool.files.read_tools import ReadFile
from plain_names import PlainNames

POEM = "one\ntwo\nthree\nfour\nfive\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "poem.txt").write_text(POEM, encoding="utf-8")
    return tmp_path


def read(root: Path, path: str, **lines: int) -> ToolOutput:
    return anyio.run(ReadFile(PlainNames()).run, ToolInvocation(arguments={"path": path, **lines}, root=root))


def resource(output: ToolOutput) -> Resource:
    (block,) = output.content
    assert isinstance(block, ResourceBlock)
    return block.resource


def message(output: ToolOutput) -> str:
    (block,) = output.content
    assert isinstance(block, TextBlock)
    assert output.is_error
    return block.text or ""


def test_a_file_is_a_resource_with_its_canonical_uri(root: Path) -> None:
    output = read(root, "./poem.txt")

    assert output == ToolOutput(
        content=(
            ResourceBlock(
                resource=Resource(uri=file_uri(os.path.realpath(root / "poem.txt")), mime_type="text/plain", text=POEM)
            ),
        ),
        facts=Facts(kind="read", path="poem.txt", total_lines=5),
    )


@pytest.mark.parametrize(
    ("lines", "text", "range_"),
    [
        ({"start_line": 2, "end_line": 3}, "two\nthree\n", "2-3"),
        ({"start_line": 5, "end_line": 5}, "five\n", "5-5"),
        ({"start_line": 4}, "four\nfive\n", "4-5"),
        ({"end_line": 1}, "one\n", "1-1"),
        ({"start_line": 4, "end_line": 99}, "four\nfive\n", "4-5"),
        ({"start_line": 2.0, "end_line": 3.0}, "two\nthree\n", "2-3"),
    ],
)
def test_some_lines_are_a_resource_with_a_fragment(root: Path, lines: dict[str, int], text: str, range_: str) -> None:
    output = read(root, "poem.txt", **lines)

    assert resource(output).text == text
    assert resource(output).uri == f"{file_uri(os.path.realpath(root / 'poem.txt'))}#L{range_}"
    assert output.facts == Facts(kind="read", path="poem.txt", lines=range_, total_lines=5)


@pytest.mark.parametrize(
    ("content", "lines", "text"),
    [
        ("a\nb", {"start_line": 2}, "b"),
        ("a\nb", {"end_line": 1}, "a\n"),
        ("a\r\nb\r\n", {"start_line": 2}, "b\r\n"),
        ("a\u2028b\x0cc\nd\n", {"start_line": 2}, "d\n"),
        ("\n\n", {"start_line": 2}, "\n"),
        ("\ufeffa\n", {"start_line": 1}, "\ufeffa\n"),
    ],
)
def test_lines_are_those_of_an_editor(root: Path, content: str, lines: dict[str, int], text: str) -> None:
    (root / "file").write_bytes(content.encode())

    assert resource(read(root, "file", **lines)).text == text


def test_an_empty_file_is_an_empty_resource(root: Path) -> None:
    (root / "empty").touch()

    assert resource(read(root, "empty")).text == ""


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ({"start_line": 0}, "start_line is 0, but lines count from 1"),
        ({"start_line": 6}, "start_line is 6, but 'poem.txt' has 5 lines"),
        ({"start_line": 3, "end_line": 2}, "end_line is 2, before start_line 3"),
        ({"end_line": 0}, "end_line is 0, before start_line 1"),
        ({"end_line": -1}, "end_line is -1, before start_line 1"),
    ],
)
def test_a_range_that_makes_no_sense_is_an_error(root: Path, lines: dict[str, int], expected: str) -> None:
    assert message(read(root, "poem.txt", **lines)) == expected


def test_an_empty_file_has_no_line(root: Path) -> None:
    (root / "empty").touch()

    assert message(read(root, "empty", start_line=1)) == "start_line is 1, but 'empty' has 0 lines"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x89PNG\r\n\x00\x00", "'file' is binary (8 bytes), not text"),
        (b"caf\xe9\n", "'file' is not UTF-8 text: byte 3 does not fit"),
    ],
)
def test_what_is_not_text_is_an_error(root: Path, data: bytes, expected: str) -> None:
    (root / "file").write_bytes(data)

    assert message(read(root, "file")) == expected


def test_a_file_of_the_largest_size_is_read_and_a_larger_one_is_not(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "MAX_BYTES", 100_000)
    (root / "largest").write_bytes(b"x" * 100_000)
    (root / "larger").write_bytes(b"x" * 100_001)

    assert len(resource(read(root, "largest")).text or "") == 100_000
    assert message(read(root, "larger")) == "'larger' is larger than 100,000 bytes, which is the most that is read"


def test_a_file_that_grows_while_it_is_read_is_bounded_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = os.fstat

    def look_then_grow(descriptor: int) -> os.stat_result:
        found = look(descriptor)
        with (root / "poem.txt").open("ab") as file:
            file.truncate(MAX_BYTES + 1)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", look_then_grow)
        output = read(root, "poem.txt")

    assert "is larger than" in message(output)


def test_what_the_root_does_not_hold_is_an_error(root: Path) -> None:
    assert message(read(root, "missing.txt")) == "there is no file 'missing.txt'"
    assert "is outside of" in message(read(root, "../x"))
    assert message(read(root, ".")) == "'.' is a directory"


def test_a_fifo_does_not_block(root: Path) -> None:
    os.mkfifo(root / "fifo")

    assert message(read(root, "fifo")) == "'fifo' is not a regular file"


def test_a_name_that_is_not_utf_8_has_a_uri_of_its_bytes(root: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    try:
        (root / name).write_text("x", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes names in UTF-8 only")

    output = read(root, name)

    assert resource(output).uri.endswith("/caf%E9")
    assert output.facts == Facts(kind="read", path="caf\ufffd", total_lines=1)


def test_a_read_that_hangs_can_be_cancelled(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, released, finished = threading.Event(), threading.Event(), threading.Event()

    def hang(place: ResolvedPath) -> Content:
        started.set()
        released.wait(5)
        finished.set()
        raise FileAccessError(f"{place.written!r} came too late")

    async def run_it() -> None:
        await ReadFile(PlainNames()).run(ToolInvocation(arguments={"path": "poem.txt"}, root=root))

    async def cancel_it() -> None:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(run_it)
                await anyio.to_thread.run_sync(started.wait)
                group.cancel_scope.cancel()
        assert not finished.is_set()
        released.set()

    monkeypatch.setattr("jp.tool.files.read_tools.read_whole", hang)

    try:
        anyio.run(cancel_it)
    finally:
        released.set()
