"""Runs command lines of jp one after the other in one process, until one fails: see `forked.prepare`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence


def run_all(lines: Iterable[Sequence[str]]) -> int:
    """The exit code of the last one."""
    from jp.cli.app import run

    return next((code for words in lines if (code := run(words))), 0)


if __name__ == "__main__":
    os._exit(run_all(json.loads(sys.argv[1])))
