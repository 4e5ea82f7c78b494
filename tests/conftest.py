"""What holds for every test: where it writes, on how many examples a property is tried, what the collector skips."""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import forked

pytest_plugins = ("rewriting",)

_EXAMPLES = os.environ.get("JP_TEST_EXAMPLES", "")
"""How many examples each property is tried on, new ones in each run. Unset: a few, the same in each run."""

_MEMORY = "/dev/shm"  # noqa: S108 - files in it have names of their own, as below any directory for temporary files
_LEAST_FREE_BYTES = 1 << 30


def _write_to_memory() -> None:
    """Keep temporary files in memory where there is enough of it: jp waits for the disk after each entry of a log."""
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK):
        return
    limits = os.statvfs(_MEMORY)
    if limits.f_bavail * limits.f_frsize >= _LEAST_FREE_BYTES and not limits.f_flag & os.ST_NOEXEC:
        tempfile.tempdir = os.environ["TMPDIR"] = _MEMORY


def _forget_absent_data() -> None:
    """Have tests on recorded data skip where `JP_TEST_DATA` names no directory, as where it is not set."""
    if not Path(os.environ.get("JP_TEST_DATA") or os.devnull).is_dir():
        os.environ.pop("JP_TEST_DATA", None)


_write_to_memory()
_forget_absent_data()

settings.register_profile(
    "jp",
    max_examples=int(_EXAMPLES or 20),
    derandomize=not _EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "nightly",
    settings.get_profile("jp"),
    max_examples=int(_EXAMPLES or 500),
    derandomize=False,
    print_blob=True,
)
settings.load_profile(os.environ.get("JP_TEST_PROFILE") or "jp")


gc.disable()  # until the tests are collected: what is imported stays


def pytest_configure(config: pytest.Config) -> None:
    """Where tests run side by side, have what all of them share import jp while they are collected."""
    if config.getoption("dist", "no") != "no":  # the process that hands out the tests collects none
        gc.enable()
        forked.share()


def pytest_collection_finish() -> None:
    """Tests and libraries stay to the end and tests leave little: looking for garbage would take 10 % of the suite."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 100)
