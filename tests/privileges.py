"""jp as somebody whom permissions hold back, root or not; run as a script it is that."""

from __future__ import annotations

import os
import sys
from pathlib import Path

NOBODY = 65534
_VERSION = 0x20080522
_CAPABILITIES = (1, 2, 19, 21, 38)
"""`CAP_DAC_OVERRIDE` and `CAP_DAC_READ_SEARCH`; `CAP_SYS_PTRACE`, `CAP_SYS_ADMIN` and `CAP_PERFMON`."""
_SET_SIZE = 32
_DROP_FROM_BOUNDING_SET = 24


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
    """Give up, in this process and its programs, what permissions and other processes forbid. Raises `OSError`."""
    from ctypes import CDLL, c_uint32, get_errno

    system = CDLL(None, use_errno=True)
    header = (c_uint32 * 2)(_VERSION, 0)
    sets = (c_uint32 * 6)()
    system.capget(header, sets)
    for capability in _CAPABILITIES:
        if system.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0) != 0:
            raise OSError(get_errno(), "prctl")
        word, bit = divmod(capability, _SET_SIZE)
        for number in range(3):  # what is in effect, what may be, and what is handed on
            sets[3 * word + number] &= ~(1 << bit)
    if system.capset(header, sets) != 0:
        raise OSError(get_errno(), "capset")


if __name__ == "__main__":
    from jp.__main__ import main

    if os.geteuid() == 0:
        _be_bound()
    main()
