"""compaction-conformance-kit: rules, limits, facts, goals and wishes of a user survive five compactions of jp's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from foreign_server import PYTHON

pytestmark = pytest.mark.foreign

COMPACTOR = Path(__file__).parent / "kit_compactor.py"
TYPES = {"safety_rule", "hard_constraint", "fact", "goal_state", "user_preference"}
MOST_SECS = 300


@pytest.mark.parametrize("session", [[], ["--generated-seed", "7"]], ids=["seeded", "generated"])
def test_what_a_user_said_survives_five_compactions(tmp_path: Path, session: list[str]) -> None:
    if not PYTHON.exists():
        pytest.skip("there is no kit in .venv-foreign: `make test-foreign` installs one")
    environ = {
        **os.environ,
        "JP_KIT_COMMAND": str(Path(sys.executable).parent / "jp"),
        "JP_KIT_OPTIONS": "--profile heavy --local --keep 1",
        "TMPDIR": str(tmp_path),
    }
    spec = f"{COMPACTOR}:JpCompactor"
    done = subprocess.run(
        [PYTHON, "-m", "compaction_kit.cli", "check", spec, "--rounds", "5", "--format", "json", *session],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=MOST_SECS,
        check=False,
    )

    assert done.returncode == 0, (done.stdout, done.stderr)
    report: dict[str, Any] = json.loads(done.stdout)
    curves = {finding["type"]: finding["survival_curve"] for finding in report["findings"]}
    assert curves == {kind: [1.0] * 5 for kind in TYPES}
