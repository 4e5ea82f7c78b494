"""Running jp as somebody whom permissions hold back, root or not."""

from __future__ import annotations

import os
import shutil

import pytest

from running import JP


def bound_by_permissions() -> tuple[str, ...]:
    """The program for `run_jp` as a user whom modes of files bind; skips where root cannot become one."""
    if os.geteuid() != 0:
        return JP
    if shutil.which("setpriv") is None:
        pytest.skip("root may read and write everything, and there is no setpriv that takes this away")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", *JP)
