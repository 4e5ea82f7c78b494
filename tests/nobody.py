"""jp as the user nobody; run as a script it is that."""

from __future__ import annotations

import os

from privileges import NOBODY

if __name__ == "__main__":
    from jp.__main__ import main

    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    main()
