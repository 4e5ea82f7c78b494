"""Queries where the world fails them: full disks, other programs, other queries, kills, clocks."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from doubles import kinds, messages
from failures import check_failure
from forked import Started, prepare, run_jp, start_jp
from halting import MODEL, halting
from jp.conversation.thread import carriers_in
from jp.conversation.turns import turns_of
from privileges import bound_by_permissions
from running import Result, home_beside
from stage import copied, entries_of, logs, make_workspace, only_log


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a conversation."""
    root = make_workspace(tmp_path_factory.mktemp("prepared") / "work")
    prepare(["query", "first"], cwd=root)
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    return copied(prepared, tmp_path / "work")


def files_below(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


LIMITED = """
import resource, sys

size = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

from jp.__main__ import main
main()
"""


def scripted(script: str, *arguments: str, cwd: Path) -> Result:
    """Run a Python script that becomes jp. What it says goes through pipes, which have no size."""
    path = home_beside(cwd) / "script.py"
    path.write_text(script, encoding="utf-8")
    process = start_jp(*arguments, cwd=cwd, script=path)
    out, err = process.communicate()
    return Result(process.wait(), out.decode(), err.decode())


def limited(size: int, *arguments: str, cwd: Path) -> Result:
    """Run jp where no file may grow beyond `size` bytes."""
    return scripted(LIMITED, str(size), *arguments, cwd=cwd)


@pytest.mark.parametrize("size", [0, 200, 1000, 1500, 4000])
def test_a_new_conversation_on_a_full_disk_is_whole_or_not_there(tmp_path: Path, size: int) -> None:
    make_workspace(tmp_path)
    (tmp_path / "a.txt").write_text("a" * 9000, encoding="utf-8")

    result = limited(size, "query", "hi", "-a", "a.txt", cwd=tmp_path)

    check_failure(result, 1, "File too large", "ulimit -f")
    assert list((tmp_path / ".jp" / "conversations").iterdir()) == []
    assert run_jp("query", "hi", "-a", "a.txt", cwd=tmp_path).code == 0


@pytest.mark.parametrize("more", [0, 100, 400, 900])
def test_a_full_disk_costs_a_conversation_nothing_that_it_has(root: Path, more: int) -> None:
    (root / "a.txt").write_text("a" * 9000, encoding="utf-8")
    before = files_below(root / ".jp")
    log = logs(root)[0]

    result = limited(len(before[log]) + more, "query", "--id", "last", "two", "-a", "a.txt", cwd=root)

    check_failure(result, 1, "File too large")
    after = files_below(root / ".jp")
    assert set(after) == set(before)
    assert after.pop(log).startswith(before.pop(log))
    assert after == before
    assert entries_of(log)
    assert run_jp("query", "--id", "last", "three", cwd=root).stdout == "You said: three\n"


@contextmanager
def small_disk(where: Path, kibibytes: int) -> Generator[Path]:
    """A file system of this size at `where`; skips where none can be mounted."""
    where.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "none", str(where)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield where
    finally:
        subprocess.run(["umount", str(where)], check=True)


def test_a_disk_that_fills_up_is_named_and_what_was_said_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a" * 40_000, encoding="utf-8")
    with small_disk(tmp_path / "disk", 48) as disk:
        root = make_workspace(disk / "work")
        home = tmp_path / "home"
        mine = {"JP_USER_DATA_DIR": str(home), "HOME": str(home)}
        first = run_jp("query", "one", cwd=root, env=mine)
        before = logs(root)[0].read_bytes()

        refused = run_jp("query", "--id", "last", "two", "-a", str(file), cwd=root, env=mine)
        after = logs(root)[0].read_bytes()
        goes_on = run_jp("query", "--id", "last", "three", "--no-persist", cwd=root, env=mine)

    assert first.code == 0
    check_failure(refused, 1, "No space left on device", "free some space")
    assert after.startswith(before)
    assert goes_on.stdout == "You said: three\n"


def test_a_workspace_that_may_only_be_read_is_read(root: Path) -> None:
    script = bound_by_permissions()
    for path in [*(root / ".jp").rglob("*"), root / ".jp"]:
        path.chmod(0o555 if path.is_dir() else 0o444)

    def run(*arguments: str) -> Result:
        return run_jp(*arguments, cwd=root, script=script)

    written = [
        run("query", "hi"),
        run("query", "--id", "last", "hi"),
        run("attachment", "add", "a.txt", "--id", "last"),
        run("config", "set", "user.name=x"),
        run("conversation", "rm", "--yes", "last"),
    ]
    read = [
        run("query", "--id", "last", "hi", "--no-persist"),
        run("query", "--id", "last", "hi", "--dry-run"),
        run("query", "--new", "--local", "hi"),
        run("conversation", "print", "last"),
        run("workspace", "trust", "--yes"),
    ]
    for path in [root / ".jp", *(root / ".jp").rglob("*")]:
        path.chmod(0o755)

    for result in written:
        check_failure(result, 1, "Permission denied")
    assert [result.code for result in read] == [0] * 5


def test_where_data_cannot_be_kept_nothing_is_half_created(tmp_path: Path) -> None:
    script = bound_by_permissions()
    make_workspace(tmp_path)
    data = home_beside(tmp_path) / "data"
    data.mkdir(mode=0o555)

    refused = run_jp("query", "hi", cwd=tmp_path, script=script)
    unkept = run_jp("query", "hi", "--no-persist", cwd=tmp_path, script=script)
    data.chmod(0o755)

    check_failure(refused, 1, f"{str(data)!r}"[:-1], "--no-persist")
    assert logs(tmp_path) == []
    assert unkept == (0, "You said: hi\n", "")


@contextmanager
def halted_query(root: Path) -> Generator[tuple[Started, Event]]:
    """A query of the newest conversation that has begun to answer, and goes on when it is told to."""
    with halting("one ", "two three four") as model:
        words = ("query", "--id", "last", "--model", MODEL, "--no-stdin", "go on")
        process = start_jp(*words, cwd=root, env=model.environment)
        assert process.stdout.read(4) == b"one "
        yield process, model.go_on


def remove(log: Path) -> None:
    shutil.rmtree(log.parent)


def replace(log: Path) -> None:
    copy = log.with_name("copy")
    shutil.copy(log, copy)
    copy.replace(log)


def rename(log: Path) -> None:
    log.parent.rename(log.parent.with_name("99999-renamed"))


def shorten(log: Path) -> None:
    os.truncate(log, 100)


@pytest.mark.parametrize("change", [remove, replace, rename, shorten])
def test_a_log_that_another_program_takes_away_is_named_and_not_written_in_vain(
    root: Path, change: Callable[[Path], None]
) -> None:
    with halted_query(root) as (process, go_on):
        change(logs(root)[0])
        go_on.set()
        out, err = process.communicate(timeout=30)

    assert process.returncode == 1
    assert out == b"two three four\n"
    assert err.count(b"error: ") == 1
    assert b"by another program while jp was writing it\nhint: " in err


@pytest.mark.parametrize("ending", ["\n", ""])
def test_a_line_that_is_added_by_hand_stays_beside_those_of_a_running_query(root: Path, ending: str) -> None:
    with halted_query(root) as (process, go_on):
        with logs(root)[0].open("a", encoding="utf-8") as log:
            log.write('{"type":"note","id":"by-hand","at":"2026-01-01T00:00:00Z"}' + ending)
        go_on.set()
        process.communicate(timeout=30)

    assert process.returncode == 0
    assert kinds(only_log(root))[-3:] == ["note", "chat_response", "cycle_end"]
    assert run_jp("query", "--id", "last", "--model", "script/test", "go on", cwd=root).code == 0


def test_removing_waits_for_the_query_that_writes(root: Path) -> None:
    with halted_query(root) as (process, go_on):
        removing = start_jp("conversation", "rm", "--yes", "last", cwd=root)
        assert b"waiting for conversation" in removing.stderr.readline()
        go_on.set()
        process.communicate(timeout=30)
        removing.communicate(timeout=30)

    assert (process.returncode, removing.returncode) == (0, 0)
    assert logs(root) == []


def test_twenty_queries_that_do_not_wait_write_whole_turns_or_nothing(root: Path) -> None:

    def ask(number: int) -> Result:
        return run_jp("query", "--id", "last", "--wait", "0", f"number {number}", cwd=root)

    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(ask, range(20)))

    for result in results:
        if result.code:
            check_failure(result, 11, "is locked", "--wait")
    said = [f"You said: number {number}" for number, result in enumerate(results) if result.code == 0]
    assert said
    assert sorted(messages(only_log(root))[1:]) == sorted(said)
    assert len(turns_of(only_log(root))) == len(said) + 1


def test_a_query_that_is_killed_while_it_stores_content_leaves_whole_blobs(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    (tmp_path / "many").mkdir()
    for number in range(40):
        (tmp_path / "many" / f"{number}.txt").write_text(f"{number} " * 20_000, encoding="utf-8")
    blobs = tmp_path / ".jp" / "blobs"

    process = start_jp("query", "--no-stdin", "--yes", "hi", "-a", "many", cwd=tmp_path)
    while process.poll() is None and len(list(blobs.glob("*/*/*"))) < 5:
        pass
    process.kill()
    process.communicate()
    stored = [path for path in blobs.rglob("*") if path.is_file() and not path.name.startswith(".")]
    result = run_jp("query", "--new", "--yes", "hi", "-a", "many", cwd=tmp_path)

    assert stored
    assert all(hashlib.sha256(path.read_bytes()).hexdigest() == path.name for path in stored)
    assert result.code == 0
    for log in logs(tmp_path):
        named = {carrier.sha256 for entry in entries_of(log) for carrier in carriers_in(entry) if carrier.sha256}
        assert named <= {path.name for path in blobs.rglob("*")}


BACKWARDS = """
import itertools, sys, time

hours = itertools.count()
now = time.time_ns
time.time_ns = lambda: now() - next(hours) * 3_600_000_000_000
time.time = lambda: time.time_ns() / 1e9

from jp.__main__ import main
main()
"""


def test_a_clock_that_goes_backwards_changes_no_order(tmp_path: Path) -> None:
    make_workspace(tmp_path)

    first = scripted(BACKWARDS, "query", "one", cwd=tmp_path)
    second = scripted(BACKWARDS, "query", "--id", ".", "two", cwd=tmp_path)
    third = run_jp("query", "--id", ".", "three", cwd=tmp_path)

    assert [first.code, second.code, third.code] == [0, 0, 0]
    entries = only_log(tmp_path)
    ids = [entry.id for entry in entries]
    assert messages(entries) == ["You said: one", "You said: two", "You said: three"]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_a_file_that_changes_meanwhile_is_one_of_its_contents(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    file = tmp_path / "a.txt"
    file.write_text("0" * 50_000, encoding="utf-8")
    process = start_jp("query", "--no-stdin", "hi", "-a", "a.txt", cwd=tmp_path)

    number = 0
    while process.poll() is None:
        number += 1
        (tmp_path / "next").write_text(f"{number % 10}" * 50_000, encoding="utf-8")
        (tmp_path / "next").replace(file)
    process.communicate()

    assert process.returncode == 0
    printed = run_jp("conversation", "print", "last", "-F", "json", cwd=tmp_path).stdout
    assert any(f'"text":"{str(digit) * 50_000}"' in printed for digit in range(10))
