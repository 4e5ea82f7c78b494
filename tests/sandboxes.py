"""What confines programs on this machine, for tests of what is confined and of what is said of it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from jp.process.sandbox.launcher import in_force, mechanism_for
from jp.process.sandbox.policy import Bubblewrap, Confinement, Landlock, Limits, Mechanism

_ELSEWHERE = str(Path(__file__).parent / "nowhere")


@cache
def _mechanism() -> Mechanism:
    return mechanism_for(Confinement(mode="workspace-write", root=_ELSEWHERE))


def require_bubblewrap() -> Bubblewrap:
    """Bubblewrap, which holds all of a confinement; skips where there is none that works."""
    mechanism = _mechanism()
    if not isinstance(mechanism, Bubblewrap):
        pytest.skip(f"no sandbox that holds everything: {getattr(mechanism, 'why', 'not on this system')}")
    return mechanism


def require_landlock() -> Landlock:
    """What the kernel offers besides; skips where it does not."""
    from jp.process.sandbox.landlock import offered_version

    version = offered_version()
    if not version:
        pytest.skip("the kernel has no Landlock")
    return Landlock(version, "bwrap is not installed")


def limits(*, network: bool = False) -> Limits:
    """What holds for `run_command` in a workspace without settings."""
    return in_force(Confinement(mode="workspace-write", root=_ELSEWHERE, network=network))
