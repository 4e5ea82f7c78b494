"""jp where bubblewrap is not installed; run as a script it is that.

With JP_TEST_LANDLOCK=0, Landlock is missing, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

SCRIPT = Path(__file__)
"""For `forked.run_jp`."""

SEARCH = "_bubblewraps"
"""What finds the programs."""


def _none(root: str, path: str) -> Iterator[str]:
    del root, path
    return iter(())


if __name__ == "__main__":
    from jp.__main__ import main
    from jp.process.sandbox import landlock, launcher

    setattr(launcher, SEARCH, _none)
    if os.environ.get("JP_TEST_LANDLOCK") == "0":
        landlock.offered_version = lambda: 0
    main()
