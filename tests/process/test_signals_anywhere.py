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

DID_THE_REST = 99
words, number, pending, directory = json.loads(sys.argv[1])
count, begun, counting = 0, False, pending == [0]


def separate():
    # For a child of each moment, in which this returns. One that reaches its moment with nothing to share with others
    # does the same there for the later ones: what comes before it is run once.
    global pending
    while pending:
        child = os.fork()
        if not child:
            _signal.alarm(60)  # one that hangs is one that fails
            for descriptor, name in ((1, "out"), (2, "err")):
                own = os.open(f"{directory}/{name}{os.getpid()}", os.O_CREAT | os.O_TRUNC | os.O_RDWR)
                os.write(own, os.pread(descriptor, 1 << 20, 0))
                os.dup2(own, descriptor)
                os.close(own)
            return
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if ended == DID_THE_REST:
            break
        said = [open(f"{directory}/{name}{child}", encoding="utf-8").read() for name in ("out", "err")]
        os.write(told, (json.dumps([pending.pop(0), ended, *said]) + "\\n").encode())
    os._exit(0 if os.getpid() == first else DID_THE_REST)


def look(frame, event, argument):
    global count, begun
    begun = begun or _signal.getsignal(number) not in (_signal.SIG_DFL, _signal.default_int_handler)
    # Where Python looks for signals: at the beginning of a function, and after a builtin one.
    if begun and event in ("call", "c_return"):
        count += 1
        if count == pending[0]:
            if len(os.listdir("/dev/fd")) == alone and len(sys._current_frames()) == 1:
                separate()
            if count == pending[0]:
                sys.setprofile(None)
                os.kill(os.getpid(), number)
        elif counting and count % 64 == 0:
            os.pwrite(counter, b"%d" % count, 0)


first = os.getpid()
told = os.dup(1)
counter = os.open(f"{directory}/count", os.O_CREAT | os.O_WRONLY)
for descriptor in (1, 2):
    os.dup2(os.open(os.devnull, os.O_RDONLY), descriptor)
alone = len(os.listdir("/dev/fd"))
separate()
sys.argv = words
sys.setprofile(look)
import jp_entry

jp_entry.main()
os._exit(98)
"""


def played(root: Path, number: int, moments: list[int], *words: str) -> list[tuple[int, int, str, str]]:
    """The moment, the exit code, stdout and stderr of runs that get a signal at their n-th call of a function."""
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
    moments = sorted({*spread, *early})

    runs = played(root, number, moments, *words)

    assert [moment for moment, *_ in runs] == moments
    for moment, ended, out, err in runs:
        assert "Traceback" not in err, (moment, err)
        assert all(line.startswith("note: ") for line in err.splitlines()), (moment, err)
        if ended != code:  # it had done all that there was to do
            assert (ended, out) == (0, answer), moment
