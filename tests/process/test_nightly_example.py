"""The nightly script of `workspace-example`, run as cron runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import forked
from jp.conversation.entries import Compaction
from running import TIMEOUT_SECS, home_beside, isolated_environment
from stage import entries_of, logs, make_workspace

SCRIPT = Path(__file__).parents[2] / "workspace-example/scripts/compact-nightly.sh"
READER = """
[[reply]]
when = { contains = "read" }
calls = [{ name = "fs_read_file", arguments = { path = "a.txt" } }]

[[reply]]
when = { tool = "fs_read_file" }
text = "There are many."

[[reply]]
text = "Noted."
"""
SETTINGS = "[conversation.tools.fs_read_file]\nenable = true\n"


def started(root: Path, *, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """The script, in a group of its own, without a terminal, with what cron sets."""
    environment = isolated_environment(
        home_beside(root), **{"PATH": forked.search_path(), "JP_SESSION": "", **(env or {})}
    )
    return subprocess.Popen(
        [str(SCRIPT), str(root)],
        cwd="/",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    """Its exit code, its lines without the time, and what stands on stderr."""
    out, err = process.communicate(timeout=TIMEOUT_SECS)
    lines = [re.sub(r"^\d{4}-\d\d-\d\dT\d\d:\d\dZ ", "", line) for line in out.splitlines()]
    return process.returncode, lines, err


def test_two_nights_at_once_compact_what_is_worth_it_once_and_leave_the_rest(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "the shed", READER, settings=SETTINGS)
    (root / "a.txt").write_text("a bolt, a nut and a washer\n" * 300, encoding="utf-8")
    ask = ("query", "--approve-all")
    forked.prepare(
        [*ask, "--new", "--title", "Pinned", "keep this"],
        ["conversation", "edit", "Pinned", "--pin"],
        [*ask, "--new", "--tmp", "for today"],
        [*ask, "--new", "--title", "Long", "read a.txt"],
        *([*ask, "--id", "Long", f"and {number}?"] for number in range(3)),
        cwd=root,
    )
    listed = json.loads(forked.run_jp("conversation", "ls", "--format", "json", cwd=root).stdout)
    identities = {found["title"]: found["id"] for found in listed["conversations"]}

    nights = [finished(process) for process in [started(root), started(root)]]

    assert [(code, err) for code, _, err in nights] == [(0, ""), (0, "")]
    for _, lines, _ in nights:
        assert f"{identities['Pinned']} skipped: pinned" in lines
        assert f"{identities[None]} skipped: temporary" in lines
    told = [line for _, lines, _ in nights for line in lines if line.startswith(identities["Long"])]
    (done,) = [line for line in told if " compacted: " in line]
    assert re.fullmatch(r"\S+ compacted: 2\d{3} of 2\d{3} tokens freed, undone by: jp conversation undo \S+", done)
    assert [line for line in told if line != done] == [f"{identities['Long']} left: nothing to compact"]
    overlays = [[entry for entry in entries_of(log) if isinstance(entry, Compaction)] for log in logs(root)]
    assert [len(found) for found in overlays] == [0, 0, 1]


def told(freed: int, edit: dict[str, int | None] | None, *, summary: bool = False) -> str:
    """A dry run as jp tells it, as far as the script reads it."""
    value: dict[str, Any] = {
        "tokens": {"before": 10_000, "freed": freed},
        "cache": {"edit": edit},
        "summary": {} if summary else None,
    }
    return json.dumps(value)


def another_jp(directory: Path, cases: Sequence[tuple[str, int, int]]) -> dict[str, str]:
    """PATH with a `jp` that says of the Nth conversation what is in `cases`: its dry run, how that and compacting end.

    One more conversation is the original JP's.
    """
    directory.mkdir()
    conversations: list[dict[str, Any]] = []
    for number, (text, dry, done) in enumerate(cases):
        (directory / f"jp-c{number}.json").write_text(text, encoding="utf-8")
        (directory / f"jp-c{number}.sh").write_text(f"dry={dry} done={done}\n", encoding="utf-8")
        conversations.append({"id": f"jp-c{number}", "path": str(directory), "pinned_at": None, "expires_at": None})
    elsewhere = str(directory / "elsewhere")
    conversations.append({"id": "jp-coriginal", "path": elsewhere, "pinned_at": None, "expires_at": None})
    (directory / "events.jsonl").touch()
    (directory / "ls.json").write_text(json.dumps({"conversations": conversations}), encoding="utf-8")
    program = directory / "jp"
    program.write_text(
        f"""#!/bin/sh
cd "{directory}"
case "$*" in
    "conversation ls --format json") cat ls.json ;;
    *--dry-run*) for id; do :; done; . "./$id.sh"; cat "$id.json"; exit "$dry" ;;
    *)
        for id; do :; done; . "./$id.sh"
        echo "$id" >> compacted
        case $done in 0 | 12) ;; *) echo "error: $id" >&2 ;; esac
        exit "$done"
        ;;
esac
""",
        encoding="utf-8",
    )
    program.chmod(0o755)
    return {"PATH": f"{directory}{os.pathsep}{os.environ['PATH']}"}


CASES = [
    (told(5000, {"break_even": 10}), 0, 0, "compacted: 5000 of 10000 tokens freed, undone by: jp conversation undo {}"),
    (told(5000, None), 0, 0, "compacted: 5000 of 10000 tokens freed, undone by: jp conversation undo {}"),
    (told(1999, None), 0, 0, "left: it would free 1999 of 10000 tokens"),
    (told(5000, {"break_even": 11}), 0, 0, "left: it would free 5000 of 10000 tokens, and pay after 11 requests only"),
    (told(5000, {"break_even": None}), 0, 0, "left: it would free 5000 of 10000 tokens, and never pay for itself"),
    (told(5000, None, summary=True), 0, 0, "left: profile 'default' would ask a model"),
    (told(0, None), 12, 0, "left: nothing to compact"),
    (told(5000, None), 0, 12, "left: nothing to compact"),
    (told(5000, None), 0, 11, "left: another process writes it"),
]


def test_tokens_and_the_break_even_decide(tmp_path: Path) -> None:
    env = another_jp(tmp_path / "bin", [case[:3] for case in CASES])

    code, lines, err = finished(started(tmp_path, env=env))

    assert (code, err) == (0, "")
    assert lines == [
        *(f"jp-c{number} {case[3].format(f'jp-c{number}')}" for number, case in enumerate(CASES)),
        "jp-coriginal skipped: original",
    ]
    assert (tmp_path / "bin/compacted").read_text(encoding="utf-8").split() == ["jp-c0", "jp-c1", "jp-c7", "jp-c8"]


def test_what_is_wrong_is_said_and_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    cases = [("", 1, 0), ("not JSON", 0, 0), (told(5000, None), 0, 5), (told(5000, None), 0, 0)]

    code, lines, err = finished(started(tmp_path, env=another_jp(tmp_path / "bin", cases)))

    assert code == 1
    assert lines[:3] == [f"jp-c{number} failed: exit code {ended}" for number, ended in ((0, 1), (1, 1), (2, 5))]
    assert lines[3].startswith("jp-c3 compacted: ")
    assert "JSONDecodeError" in err
    assert err.endswith("error: jp-c2\n")


@pytest.mark.parametrize("ended", [130, 143])
def test_where_jp_is_interrupted_the_night_is_over(ended: int, tmp_path: Path) -> None:
    cases = [(told(5000, None), ended, 0), (told(5000, None), 0, 0)]

    assert finished(started(tmp_path, env=another_jp(tmp_path / "bin", cases))) == (ended, [], "")


def test_a_night_that_is_terminated_ends(tmp_path: Path) -> None:
    env = another_jp(tmp_path / "bin", [])
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    (tmp_path / "bin/jp").write_text(f"#!/bin/sh\necho x > {fifo}; exec sleep 600\n", encoding="utf-8")
    process = started(tmp_path, env=env)
    assert fifo.read_text(encoding="utf-8") == "x\n"

    os.killpg(process.pid, signal.SIGTERM)

    assert finished(process) == (-signal.SIGTERM, [], "")


def test_without_jp_or_without_the_directory_it_fails(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "date").symlink_to("/bin/date")

    code, lines, err = finished(started(tmp_path, env={"PATH": str(programs)}))
    assert (code, lines, err) == (1, [], "compact-nightly: jp is not on PATH\n")
    code, lines, err = finished(started(tmp_path / "nowhere"))
    assert (code, lines) == (1, [])
    assert "nowhere" in err
