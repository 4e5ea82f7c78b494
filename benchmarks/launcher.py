"""Run commands one after the other for a benchmark, and tell what each used: `python -S -I launcher.py`.

A process that forks has its children inherit the peak of its memory, up to the program that they become. This one is
small, so that what is told is the program's own. Jobs come on stdin and answers go to stdout, both by `marshal`.
"""

from __future__ import annotations

import marshal
import os
import sys
import time


def run(words: list[str], environment: dict[str, str], directory: str) -> tuple[int, float, float, float, int]:
    """Return the exit code, when it started and ended by the clock, its seconds of CPU, and its peak of memory."""
    os.chdir(directory)
    null = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
    start = time.monotonic()
    process = os.posix_spawnp(words[0], words, environment, file_actions=null)
    _, status, usage = os.wait4(process, 0)
    end = time.monotonic()
    return os.waitstatus_to_exitcode(status), start, end, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main() -> None:
    """Answer jobs until the input ends."""
    while True:
        try:
            job = marshal.load(sys.stdin.buffer)  # noqa: S302 - from the benchmark that started this
        except EOFError:
            return
        marshal.dump(run(*job), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
