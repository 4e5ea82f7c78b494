"""The benchmarks are scripts beside the package: they are found last, so that none of them hides a library."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
