from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from jp.tool.files import edits
from jp.tool.files.edits import Edit, LineMatcher, Match, matches_of
from jp.tool.files.grep_files import installed_ripgrep
from jp.tool.files.search_dialect import expression_of
from jp.tool.files.territory import FileAccessError

HOPELESS = "a" * 40 + "b\n"
"""What `(a+)+$` does not match, which takes `re` longer than anybody lives."""


def found(old: str, text: str, seconds: float = 20) -> list[Match]:
    async def find() -> list[Match]:
        return list(await matches_of(Edit(number=1, old=old, new=""), text, seconds=seconds))

    return anyio.run(find)


def test_every_match_is_told_with_its_groups() -> None:
    assert found(r"^(?P<key>\w+)=(\d)?", "a=1\nü=\n") == [
        Match(0, 3, {"0": "a=1", "1": "a", "2": "1", "key": "a"}),
        Match(4, 6, {"0": "ü=", "1": "ü", "2": None, "key": "ü"}),
    ]


@pytest.mark.parametrize("old", ["(", "a{99999999999}", "(?P<a>x)(?P<a>y)"])
def test_a_malformed_expression_is_told(old: str) -> None:
    with pytest.raises(FileAccessError, match="pattern 1: the expression 'old' is malformed: "):
        found(old, "text")


def test_an_expression_that_matches_too_often_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "MOST_MATCHES", 3)

    assert len(found("a", "aaa")) == 3
    with pytest.raises(FileAccessError, match="matches more than 3 times"):
        found("a", "aaaa")


def test_an_expression_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(FileAccessError, match=r"the expression took longer than 0\.05 seconds, so it was stopped"):
        found("(a+)+$", HOPELESS, seconds=0.05)


def test_a_search_that_takes_too_long_is_stopped() -> None:
    matcher = LineMatcher(expression_of("(a+)+$"), ripgrep=None, seconds=0.05)

    with pytest.raises(FileAccessError, match="so it was stopped; make it simpler"):
        anyio.run(matcher.lines, HOPELESS)


def test_a_search_can_be_cancelled() -> None:
    async def cancel() -> bool:
        with anyio.move_on_after(0.05) as scope:
            await LineMatcher(expression_of("(a+)+$"), ripgrep=None).lines(HOPELESS)
        return scope.cancelled_caught

    assert anyio.run(cancel)


def test_a_search_ends_where_nobody_is_left_to_stop_it() -> None:
    request = json.dumps({"mode": "lines", "pattern": "(a+)+$", "seconds": 0.05})
    program = Path(edits.__file__).with_name("matching_process.py")

    ended = subprocess.run([sys.executable, "-I", "-S", program], input=f"{request}\n{HOPELESS}".encode(), check=False)

    assert ended.returncode == -signal.SIGALRM


def test_ripgrep_is_only_taken_from_an_absolute_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "rg"
    program.touch()
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)

    monkeypatch.setenv("PATH", ".:")
    assert installed_ripgrep() is None
    monkeypatch.setenv("PATH", f".:{tmp_path}")
    assert installed_ripgrep() == str(program)
