"""A signal at any moment of a run, from the first line of jp's own: the exit code says so, and nobody is alarmed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from running import home_beside, isolated_environment
from stage import make_workspace

EXAMPLES = int(os.environ.get("JP_TEST_EXAMPLES", "20"))

LAUNCHER = """
import _signal, json, os, sys

words, number, moments, directory = json.loads(sys.argv[1])


def play(moment):
    count, begun = 0, False

    def look(frame, event, argument):
        nonlocal count, begun
        begun = begun or _signal.getsignal(number) not in (_signal.SIG_DFL, _signal.default_int_handler)
        if begun and event in ("call", "c_call"):
            count += 1
            if count == moment:
                sys.setprofile(None)
                os.kill(os.getpid(), number)
            elif not moment:
                os.pwrite(counter, b"%d" % count, 0)

    counter = os.open(f"{directory}/count", os.O_CREAT | os.O_WRONLY)
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{directory}/{name}", os.O_CREAT | os.O_TRUNC | os.O_WRONLY), descriptor)
    sys.argv = words
    sys.setprofile(look)
    import jp_entry

    jp_entry.main()


for moment in moments:
    child = os.fork()
    if not child:
        play(moment)
        os._exit(99)
    _, status = os.waitpid(child, 0)
    said = [open(f"{directory}/{name}", encoding="utf-8").read() for name in ("out", "err")]
    print(json.dumps([moment, os.waitstatus_to_exitcode(status), *said]), flush=True)
"""


def played(root: Path, number: int, moments: list[int], *words: str) -> list[tuple[int, int, str, str]]:
    """The moment, the exit code, stdout and stderr of runs that get a signal at their n-th function call."""
    directory = root.with_name("told")
    directory.mkdir(exist_ok=True)
    given = json.dumps([["jp", *words], number, moments, str(directory)])
    environment = isolated_environment(home_beside(root))
    command = [sys.executable, "-c", LAUNCHER, given]
    ran = subprocess.run(command, cwd=root, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return [tuple(json.loads(line)) for line in ran.stdout.splitlines()]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)], ids=["INT", "TERM", "HUP"]
)
@pytest.mark.parametrize("words", [("--help",), ("conversation", "ls"), ("query", "hi")], ids=" ".join)
def test_a_signal_at_any_moment_ends_a_run_quietly(
    tmp_path: Path, number: signal.Signals, code: int, words: tuple[str, ...]
) -> None:
    root = make_workspace(tmp_path / "work")
    ((_, whole, answer, _),) = played(root, number, [0], *words)
    count = int((tmp_path / "told" / "count").read_text(encoding="utf-8"))
    assert whole == 0
    spread = [1 + place * (count - 1) // EXAMPLES for place in range(EXAMPLES)]
    early = list(range(1, min(count, EXAMPLES)))

    for moment, ended, out, err in played(root, number, sorted({*spread, *early}), *words):
        assert "Traceback" not in err, (moment, err)
        assert all(line.startswith("note: ") for line in err.splitlines()), (moment, err)
        if ended != code:  # it had done all that there was to do
            assert (ended, out) == (0, answer), moment
