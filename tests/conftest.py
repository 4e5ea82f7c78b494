"""What holds for every test: how many examples a property is tried on, and which objects the collector leaves alone."""

from __future__ import annotations

import gc
import os

from hypothesis import HealthCheck, settings

_EXAMPLES = os.environ.get("JP_TEST_EXAMPLES", "")
"""How many examples each property is tried on, new ones in each run. Unset: a few, the same in each run."""

settings.register_profile(
    "jp",
    max_examples=int(_EXAMPLES or 30),
    derandomize=not _EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("jp")


def pytest_collection_finish() -> None:
    """Tests and libraries stay to the end: looking through them for garbage again and again takes 7 % of the suite."""
    gc.collect()
    gc.freeze()
