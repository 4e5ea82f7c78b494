"""Runs `jp` as its users do: a process of its own, with nothing of this machine's around it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

JP = (sys.executable, "-m", "jp")
TIMEOUT = 60


class Result(NamedTuple):
    """What came of a run. A negative code is the signal that killed the process."""

    code: int
    stdout: str
    stderr: str


def isolated_environment(home: Path, **more: str) -> dict[str, str]:
    """An environment in which jp finds nothing but what lies under `home`: no keys, no terminal, no user's files."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TMPDIR": str(home),
        "JP_USER_DATA_DIR": str(home / "data"),
        "JP_GLOBAL_CONFIG_DIR": str(home / "config"),
        "JP_SESSION": "test",
        "LC_ALL": "C.UTF-8",
        "PYTHONWARNDEFAULTENCODING": "1",
        "PYTHONDONTWRITEBYTECODE": "",
        **more,
    }


def run_jp(
    *arguments: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | bytes | None = None,
) -> Result:
    """Run `jp` to its end, without a terminal. `env` is added to an isolated environment.

    Without `cwd` and `env` the process sees an empty home that is gone afterwards; with `cwd` its home is the
    directory `.home` in it, so that runs in the same directory see each other. `stdin` is piped; None is /dev/null.
    """
    with tempfile.TemporaryDirectory() as scratch:
        home = (cwd / ".home") if cwd is not None else Path(scratch)
        home.mkdir(exist_ok=True)
        done = subprocess.run(
            [*JP, *arguments],
            cwd=cwd or home,
            env=isolated_environment(home, **(env or {})),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
            start_new_session=True,
        )
    return Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
