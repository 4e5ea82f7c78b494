"""jp as a user without privileges, whoever runs the tests; run as a script it is that.

Programs that it starts have none at all. jp itself keeps the one to read everything: Python may be installed where only
who runs the tests may read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

SCRIPT = Path(__file__)
"""For `forked.run_jp`."""

NOBODY = 65534

_VERSION = 0x20080522
_KEEP_CAPABILITIES = 8
_READ_EVERYTHING = 1 << 2


def give_to_nobody(directories: Iterable[Path]) -> None:
    """Make the user the owner of the directories and of all in them."""
    if os.geteuid() == 0:
        for directory in directories:
            for path in (directory, *directory.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def _become_nobody() -> None:
    """Be another user from here on. Raises `OSError`."""
    from ctypes import CDLL, c_uint32, get_errno

    system = CDLL(None, use_errno=True)
    system.prctl(_KEEP_CAPABILITIES, 1, 0, 0, 0)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    header, sets = (c_uint32 * 2)(_VERSION, 0), (c_uint32 * 6)(_READ_EVERYTHING, _READ_EVERYTHING)
    if system.capset(header, sets) != 0:
        raise OSError(get_errno(), "capset")


if __name__ == "__main__":
    from jp.__main__ import main

    if sys.platform == "linux" and os.geteuid() == 0:
        _become_nobody()
    main()
