"""What the command `jp` starts with.

It is a module of another name: Python looks for imports beside a script first, and jmespath, which boto3 needs, puts a
script called `jp.py` there.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run jp, whatever lies beside the script that calls this."""
    if not sys.flags.safe_path and len(sys.path) > 1:
        del sys.path[0]
    from jp.__main__ import main as run

    run()
