from __future__ import annotations

import os
import select
import signal
from pathlib import Path

import anyio
import pytest

from jp.process.guardian import GuardedProcess

PATIENCE = 20.0


def started(script: str, directory: Path) -> GuardedProcess:
    return GuardedProcess(["/bin/sh", "-c", script], directory=str(directory), environment=dict(os.environ))


def test_a_program_does_not_hold_the_leash_of_another(tmp_path: Path) -> None:
    async def end_in_turn() -> None:
        with anyio.fail_after(PATIENCE):
            first, second = started("sleep 1000", tmp_path), started("sleep 1000", tmp_path)
            for process in (first, second):
                process.kill()
                await process.wait()
                assert process.exit_code == -signal.SIGKILL
                await process.end(0)
                process.close()

    anyio.run(end_in_turn)


def test_a_program_whose_guardian_is_killed_counts_as_killed(tmp_path: Path) -> None:
    async def run() -> None:
        with anyio.fail_after(PATIENCE):
            process = started("read line; kill -9 $PPID", tmp_path)
            process.close_input()
            await process.wait()
            await process.end(0)
            process.close()
        assert process.exit_code == -signal.SIGKILL

    anyio.run(run)


def test_no_descriptor_of_jp_reaches_a_program(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)  # noqa: FBT003 - there is no name for it
    process = started("sleep 1000", tmp_path)
    os.close(theirs)

    assert select.select([ours], [], [], PATIENCE)[0]
    assert os.read(ours, 1) == b""

    os.close(ours)
    anyio.run(process.end, 0)
    process.close()


@pytest.mark.parametrize(
    ("word", "directory", "named"), [("missing", ".", "missing"), ("/bin/sh", "nowhere", "nowhere")]
)
def test_what_cannot_be_started_is_an_error_that_names_what_is_missing(
    word: str, directory: str, named: str, tmp_path: Path
) -> None:
    before = len(list(Path("/dev/fd").iterdir()))

    with pytest.raises(FileNotFoundError) as caught:
        GuardedProcess([word], directory=str(tmp_path / directory), environment={})

    assert str(caught.value.filename).endswith(named)
    assert len(list(Path("/dev/fd").iterdir())) == before


@pytest.mark.parametrize(("word", "variable"), [("a\0b", "x"), ("ab", "x\0")])
def test_a_zero_byte_is_refused(word: str, variable: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="null byte"):
        GuardedProcess(["/bin/echo", word], directory=str(tmp_path), environment={"A": variable})
