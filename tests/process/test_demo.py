from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from forked import search_path
from running import TIMEOUT_SECS, isolated_environment

EXAMPLE = Path(__file__).parents[2] / "workspace-example"


def files(directory: Path) -> dict[str, bytes]:
    """Everything in a directory, but what Python compiled."""
    found = (path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo prints, stdout and stderr as they come."""
    home = tmp_path_factory.mktemp("home")
    before = files(EXAMPLE)

    done = subprocess.run(
        ["sh", str(EXAMPLE / "demo.sh")],
        env=isolated_environment(home, PATH=search_path(), JP_CFG_ASSISTANT_MODEL_ID="script/none"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_SECS,
        check=False,
    )

    output = done.stdout.decode()
    assert done.returncode == 0, output
    assert files(EXAMPLE) == before
    assert files(home) == {}
    return output


def test_the_demo_asks_reads_refreshes_and_recalls(demo: str) -> None:
    assert "ValueError: day is out of range for month" in demo
    assert "adds `LOAN_DAYS` to the **day of the month**" in demo
    assert "`overdue.py` **sorts** by `loans.due`" in demo
    assert "← fs_read_file: src/overdue.py, 21 lines, 585 B, unchanged since turn 1" in demo
    assert "← refresh_resource: src/loans.py, 46 lines, 1.2 KiB, changed since turn 0, a diff of " in demo
    assert "Yes. `due` adds a `timedelta` now" in demo
    assert re.search(r"← fs_read_file: data/visits.log, 2,000 lines, 43.8 KiB, cut to .*: recall ", demo)
    assert "← recall: " in demo
    assert "“visit 1000 of the shed” is in the part that was cut" in demo
    assert "I am a scenario, not a model" not in demo


def outputs_of(demo: str, command: str) -> list[str]:
    """What was printed each time that a command ran."""
    return [part.partition("\n\n# ")[0].partition("\n\n$ ")[0] for part in demo.split(f"\n$ {command}\n")[1:]]


def test_the_demo_compacts_asks_on_what_is_left_and_takes_it_back(demo: str) -> None:
    (told,) = outputs_of(demo, "jp conversation compact --dry-run --keep 0")
    (done,) = outputs_of(demo, "jp conversation compact --keep 0")
    (asked,) = outputs_of(demo, 'jp query --id . "And visit 1500?"')
    (whole,) = outputs_of(demo, "jp conversation print . --turn 3 | head -n 9")
    compacted, reset = outputs_of(demo, "jp conversation print . --turn 3 --compacted | head -n 9")

    sizes = re.search(r"^tokens: about ([0-9,]+) now, ([0-9,]+) after it", told, re.MULTILINE)
    assert sizes
    assert f"tokens: about {sizes[1]} before, {sizes[2]} now" in done
    assert asked.startswith("→ recall(")
    assert "That one, too: the log is hidden from me" in demo
    assert "        visit 2 of the shed" in whole
    assert "[compacted] fs_read_file: success; data/visits.log; " in compacted
    assert "visit 2 of the shed" not in compacted
    assert "        visit 2 of the shed" in reset
    assert "undid turns 0 to 3: " in demo
