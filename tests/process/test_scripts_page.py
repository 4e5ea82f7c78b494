"""`docs/scripts.md`: what stands there is run, and says what the examples do."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from forked import run_jp, run_script
from jp.cli.hook import HookSettings, script_of
from running import TIMEOUT_SECS
from stage import make_workspace

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/scripts.md").read_text(encoding="utf-8")
HOOK = script_of(HookSettings(name="prepare-commit-msg")).decode()
NIGHTLY = (ROOT / "workspace-example/scripts/compact-nightly.sh").read_text(encoding="utf-8")
SCENARIO = """
[[reply]]
when = { contains = "Is it broken?" }
text = '{"broken": true}'

[[reply]]
text = "The linker."
"""


def test_the_scripts_on_the_page_work_as_they_stand(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work", SCENARIO)
    (root / "build.log").write_text("undefined symbol\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", "--template=", "."], cwd=root, check=True, timeout=TIMEOUT_SECS)
    run_jp("prompt", "add", "review", "Review this.", cwd=root)
    scripts = [
        script for script in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) if "jp " in script
    ]

    said = [run_script(script, cwd=root) for script in scripts]

    assert [(done.returncode, done.stdout, done.stderr) for done in said] == [
        (0, "The linker.\n", ""),
        (0, '{"broken":true}\nthere is nothing to hide\n', ""),
        (0, said[2].stdout, ""),
        (0, "The linker.\n", ""),
        (0, "kind=haiku\n", ""),
    ]
    assert (root / "haiku.txt").read_text(encoding="utf-8") == "The linker.\n"
    labels = [json.loads(path.read_text(encoding="utf-8")).get("labels", {}) for path in root.rglob("metadata.json")]
    assert sorted(labels, key=str) == [{"kind": "haiku"}, {"topic": "builds"}, {}, {}]
    assert "jp hook install pre-push --prompt review" in said[2].stdout
    assert sorted(path.name for path in (root / ".git/hooks").iterdir()) == ["commit-msg", "prepare-commit-msg"]


def test_the_page_says_the_numbers_of_the_examples() -> None:
    for number, written in (("20 seconds", "deadline=20s"), ("$0.05", "most_usd=0.05")):
        assert number in PAGE
        assert f"\n{written} " in HOOK or f"\n{written}\n" in HOOK
    assert "100,000 characters" in PAGE
    assert "most_characters=100000\n" in HOOK
    assert "2,000 at least" in PAGE
    assert "least_freed=${JP_NIGHTLY_LEAST_FREED:-2000}" in NIGHTLY
    assert "10 requests at most" in PAGE
    assert "most_requests=${JP_NIGHTLY_MOST_REQUESTS:-10}" in NIGHTLY
