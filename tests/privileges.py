"""jp as somebody whom permissions hold back, root or not; run as a script it is that."""

from __future__ import annotations

import os
import sys
from pathlib import Path

NOBODY = 65534
_VERSION = 0x20080522
_OVERRIDES = 0b110
"""The bits of `CAP_DAC_OVERRIDE` and `CAP_DAC_READ_SEARCH`."""


def bound_by_permissions() -> Path:
    """The script for `forked.run_jp` as a user whom modes of files bind; skips where root cannot become one."""
    import pytest

    if os.geteuid() == 0 and sys.platform != "linux":
        pytest.skip("root may read and write everything, and only Linux can take this away")
    return Path(__file__)


def as_nobody() -> Path:
    """The script for `forked.run_jp` as a user without any privileges; only root can become one."""
    return Path(__file__).with_name("nobody.py")


def _be_bound() -> None:
    """Give up, in this process, to read and write what modes of files forbid. Raises `OSError`."""
    from ctypes import CDLL, c_uint32, get_errno

    system = CDLL(None, use_errno=True)
    header = (c_uint32 * 2)(_VERSION, 0)
    sets = (c_uint32 * 6)()
    system.capget(header, sets)
    for number in range(3):  # what is in effect, what may be, and what is handed on
        sets[number] &= ~_OVERRIDES
    if system.capset(header, sets) != 0:
        raise OSError(get_errno(), "capset")


if __name__ == "__main__":
    from jp.__main__ import main

    if os.geteuid() == 0:
        _be_bound()
    main()
