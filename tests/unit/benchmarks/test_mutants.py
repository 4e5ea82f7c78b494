"""`make mutants` on a tree of one module: what its tests notice, what they do not, and what is accepted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
SIGN = '''
def sign(number):
    """Return its sign."""
    return -1 if number < 0 else 1
'''
NOTICED = """
from jp.turn.sign import sign


def test_a_negative_number_has_one():
    assert sign(-5) == -1
    assert sign(5) == 1
"""
PREVENTED = """
import os


def test_a_run_that_ends_early():
    os._exit(7)
"""
BELOW_ONE = "src/jp/turn/sign.py:sign | return -1 if number < 0 else 1 | return -1 if number < 1 else 1"
AT_ZERO = "src/jp/turn/sign.py:sign | return -1 if number < 0 else 1 | return -1 if number <= 0 else 1"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("benchmarks", "src/jp/turn", "tests/unit", "docs", "workspace-example"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "src/jp/__init__.py", "src/jp/turn/__init__.py"):
        (tmp_path / name).write_text("", encoding="utf-8")
    shutil.copy(BENCHMARKS / "mutants.py", tmp_path / "benchmarks")
    runner = (BENCHMARKS / "mutant_tests.py").read_text(encoding="utf-8")
    # What it imports beforehand only saves time, and only with many mutants.
    runner = runner.replace("for name in LIBRARIES:", "for name in ():")
    (tmp_path / "benchmarks" / "mutant_tests.py").write_text(runner, encoding="utf-8")
    for part in ("compaction", "conversation", "workspace", "tool", "provider"):
        (tmp_path / "src/jp" / part).mkdir()
    for part in ("tool/consent", "tool/coordinator", "tool/rules"):
        (tmp_path / f"src/jp/{part}.py").write_text("", encoding="utf-8")
    for vendor in ("anthropic", "chat", "google", "ollama", "openai"):
        (tmp_path / "src/jp/provider" / vendor).mkdir()
        (tmp_path / "src/jp/provider" / vendor / "response.py").write_text("", encoding="utf-8")
    (tmp_path / "src/jp/turn/sign.py").write_text(SIGN, encoding="utf-8")
    (tmp_path / "tests/unit/test_sign.py").write_text(NOTICED, encoding="utf-8")
    return tmp_path


def mutants(tree: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, tree / "benchmarks" / "mutants.py", "--jobs", "1", *more]
    # Plugins of pytest take longer to import than all that is done here.
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False, encoding="utf-8"
    )


def test_what_a_test_notices_is_counted_and_what_survives_is_listed_with_its_reason(tree: Path) -> None:
    (tree / "tests" / "accepted-mutants.txt").write_text(f"{AT_ZERO} # zero has no sign\n", encoding="utf-8")
    found = mutants(tree, "--seed", "3", "--count", "7")

    assert found.stdout.startswith("seed 3: 7 of 7 mutants\n"), found.stderr
    assert f"survived: zero has no sign\n  {AT_ZERO}\n" in found.stdout
    assert f"survived: not accepted\n  {BELOW_ONE}\n" in found.stdout
    assert "71.4% of 7 mutants are noticed" in found.stdout
    assert found.returncode == 1
    assert (tree / "src/jp/turn/sign.py").read_text(encoding="utf-8") == SIGN


def test_tests_that_do_not_run_to_their_end_are_an_error_and_no_survivors(tree: Path) -> None:
    (tree / "tests/unit/test_early.py").write_text(PREVENTED, encoding="utf-8")
    found = mutants(tree)

    assert found.returncode == 1
    assert "could not be recorded" in found.stderr
    assert "ended with 7" in found.stderr
    assert "survived" not in found.stdout
