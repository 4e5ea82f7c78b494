"""What the command `jp` starts with.

It is a module of another name: Python looks for imports beside a script first, and jmespath, which boto3 needs, puts a
script called `jp.py` there.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal  # is there already, while `signal` itself would import `enum` first


def _leave(number: int, frame: object) -> None:
    """End at once on a signal: nothing is open yet, and an exception would be reported by whatever imports this."""
    os._exit(130 if number == _signal.SIGINT else 143)


for _number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
    if _signal.getsignal(_number) in {_signal.default_int_handler, _signal.SIG_DFL}:
        _signal.signal(_number, _leave)


def main() -> None:
    """Run jp, whatever lies beside the script that calls this."""
    if not sys.flags.safe_path and len(sys.path) > 1:
        del sys.path[0]
    from jp.__main__ import main as run

    run()
