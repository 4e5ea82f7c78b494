from __future__ import annotations

import math
import os
from pathlib import Path

import anyio
import pytest

from jp.process.environment import exit_code_text, find_program
from jp.process.guardian import CapturedOutput, OutputLimits, ProcessLimits, ProcessResult, Program, run

PATIENCE = 20.0
WIDE = OutputLimits(kept=2**20, most=2**30)
QUICK = ProcessLimits(timeout_secs=PATIENCE, grace_secs=0.05)


def ended(
    script: str,
    directory: Path,
    *,
    stdin: bytes | None = None,
    output: OutputLimits = WIDE,
    limits: ProcessLimits = QUICK,
) -> ProcessResult:
    program = Program(
        words=["/bin/sh", "-c", script], directory=str(directory), environment=dict(os.environ), stdin=stdin
    )

    async def in_time() -> ProcessResult:
        with anyio.fail_after(PATIENCE):
            return await run(program, output=output, limits=limits)

    return anyio.run(in_time)


def test_what_a_program_reads_and_prints_passes_unchanged(tmp_path: Path) -> None:
    data = bytes(range(256)) * 2000

    result = ended("cat; echo wrong >&2; exit 3", tmp_path, stdin=data)

    assert result.stdout.head + result.stdout.tail == data
    assert result.stdout.omitted == 0
    assert result.exit_code == 3
    assert result.stderr == CapturedOutput(head=b"wrong\n")
    assert result.stopped is None


def test_a_program_need_not_read_what_it_may(tmp_path: Path) -> None:
    assert ended("exec <&-; echo done", tmp_path, stdin=b"x" * 10**6).stdout == CapturedOutput(head=b"done\n")


@pytest.mark.parametrize("stdin", [None, b""])
def test_a_program_may_have_nothing_to_read(stdin: bytes | None, tmp_path: Path) -> None:
    assert ended("cat", tmp_path, stdin=stdin).stdout == CapturedOutput(head=b"")


def test_of_much_output_the_beginning_and_the_end_are_kept(tmp_path: Path) -> None:
    result = ended(
        "echo first; head -c 3000000 /dev/zero; echo last", tmp_path, output=OutputLimits(kept=1001, most=10**8)
    )

    assert result.exit_code == 0
    assert result.stdout.head == b"first\n" + bytes(495)
    assert result.stdout.tail == bytes(495) + b"last\n"
    assert result.stdout.omitted == 3_000_011 - 1001


def test_what_just_fits_is_kept_whole(tmp_path: Path) -> None:
    result = ended("printf 12345678901", tmp_path, output=OutputLimits(kept=11, most=100))

    assert result.stdout == CapturedOutput(head=b"123456", tail=b"78901")


def test_a_flood_is_stopped(tmp_path: Path) -> None:
    result = ended("yes & yes >&2", tmp_path, output=OutputLimits(kept=100, most=10**6))

    assert result.stopped == "output"
    assert (result.stdout.head + result.stderr.head).startswith(b"y\ny\n")
    assert len(result.stdout.head + result.stdout.tail + result.stderr.head + result.stderr.tail) <= 200


def test_what_came_before_the_time_was_over_is_kept(tmp_path: Path) -> None:
    result = ended("echo begun; sleep 1000", tmp_path, limits=ProcessLimits(timeout_secs=0.5))

    assert result.stopped == "time"
    assert result.stdout == CapturedOutput(head=b"begun\n")
    assert result.exit_code == -15


def test_a_program_may_take_as_long_as_it_likes(tmp_path: Path) -> None:
    assert ended("echo done", tmp_path, limits=ProcessLimits(timeout_secs=math.inf)).stopped is None


def test_what_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    program = Program(words=[str(tmp_path / "missing")], directory=str(tmp_path), environment={})

    with pytest.raises(FileNotFoundError):
        anyio.run(lambda: run(program, output=WIDE, limits=QUICK))


@pytest.mark.parametrize(
    ("code", "text"), [(0, "0"), (130, "130"), (-15, "143 (SIGTERM)"), (-9, "137 (SIGKILL)"), (-99, "227 (signal 99)")]
)
def test_an_exit_code_is_told_as_a_shell_does(code: int, text: str) -> None:
    assert exit_code_text(code) == text


def test_a_program_is_found_by_its_path_or_in_absolute_directories(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "own"
    program.touch(mode=0o755)
    (tmp_path / "bin" / "directory").mkdir()
    search_path = {"PATH": f"bin:{tmp_path}/bin"}

    assert find_program("own", str(tmp_path), search_path) == str(program)
    assert find_program("own", str(tmp_path), {"PATH": "bin:."}) is None
    assert find_program("directory", str(tmp_path), search_path) is None
    assert find_program("bin/own", str(tmp_path), {}) == str(program)
    assert find_program("sh", str(tmp_path), {}) == "/bin/sh"
