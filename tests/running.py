"""Runs `jp` as its users do: a process of its own, with nothing of this machine's around it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

JP = (sys.executable, "-m", "jp")
TIMEOUT_SECS = 60


class Result(NamedTuple):
    """What came of a run. A negative code is the signal that killed the process."""

    code: int
    stdout: str
    stderr: str


def isolated_environment(home: Path, **more: str) -> dict[str, str]:
    """An environment in which jp finds nothing but what lies under `home`: no keys, no user's files.

    `jp` itself is on PATH.
    """
    search_path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {
        "PATH": search_path,
        "HOME": str(home),
        "TMPDIR": str(home),
        "JP_USER_DATA_DIR": str(home / "data"),
        "JP_GLOBAL_CONFIG_DIR": str(home / "config"),
        "JP_SESSION": "test",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        "LC_ALL": "C.UTF-8",
        "PYTHONWARNDEFAULTENCODING": "1",
        **more,
    }


def home_beside(cwd: Path) -> Path:
    """The home that runs in `cwd` share, outside of it so that nothing in it is attached by accident."""
    home = cwd.parent / f".home-of-{cwd.name}"
    home.mkdir(exist_ok=True)
    return home


def run_jp(
    *arguments: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | bytes | None = None,
    program: Sequence[str] = JP,
) -> Result:
    """Run `jp` to its end, without a terminal. `env` is added to an isolated environment.

    Runs in the same `cwd` see each other's data (`home_beside`); without `cwd`, everything is gone afterwards.
    `stdin` is piped; None is /dev/null.
    """
    with tempfile.TemporaryDirectory() as scratch:
        where = cwd or Path(scratch)
        done = subprocess.run(
            [*program, *arguments],
            cwd=where,
            env=isolated_environment(home_beside(where) if cwd else where, **(env or {})),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=TIMEOUT_SECS,
            check=False,
            start_new_session=True,
        )
    return Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def start_jp(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    program: Sequence[str] = JP,
) -> subprocess.Popen[bytes]:
    """Start `jp` as `run_jp` does, with pipes that the test reads, writes and closes."""
    return subprocess.Popen(
        [*program, *arguments],
        cwd=cwd,
        env=isolated_environment(home_beside(cwd), **(env or {})),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
