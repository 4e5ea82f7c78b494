from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from file_calls import call, failure, invocation, text
from jp.config.entries import FileRuleConfig
from jp.conversation.entries import Facts
from jp.tool.base import ToolOutput
from jp.tool.files import read_tools
from jp.tool.files.read_tools import GrepFiles
from jp.tool.files.territory import MAX_BYTES, Territory, Use
from plain_names import PlainNames

Search = Callable[..., ToolOutput]


@pytest.fixture
def search(tmp_path: Path) -> Search:
    tool = GrepFiles(PlainNames(ignored=["build"]))
    for name, data in {
        "src/a.py": b"import os\n\ndef one():\n    return 1\n",
        "src/b.py": b"\xef\xbb\xbfdef two():\r\n    return 2\r\n",
        "docs/page.md": "One über alles\nend".encode(),
        "build/out.py": b"def built(): pass\n",
        ".hidden.py": b"def hidden(): pass\n",
        "src/data.bin": b"def \x00 one",
        "src/latin.py": b"def caf\xe9(): pass\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)

    def run(**arguments: object) -> ToolOutput:
        return call(tool, tmp_path, **arguments)

    return run


LEFT_OUT = "\n… 1 files were not searched: too large, not UTF-8, or not readable"


@pytest.mark.parametrize(
    ("arguments", "expected", "matches"),
    [
        ({"pattern": r"^def \w+\(\):$"}, f"src/a.py:3:def one():\nsrc/b.py:1:def two():{LEFT_OUT}", 2),
        (
            {"pattern": "(?i)one|ÜBER", "paths": ["docs", "src/a.py"]},
            "docs/page.md:1:One über alles\nsrc/a.py:3:def one():",
            2,
        ),
        ({"pattern": "end$", "paths": ["docs/page.md"]}, "docs/page.md:2:end", 1),
        ({"pattern": "^$", "paths": ["docs/page.md", "src/a.py"]}, "src/a.py:2:", 1),
        (
            {"pattern": "def", "paths": ["build", ".hidden.py"]},
            "build/out.py:1:def built(): pass\n.hidden.py:1:def hidden(): pass",
            2,
        ),
        ({"pattern": "def", "extensions": ["md"]}, "No matches found.", 0),
        (
            {"pattern": "one", "paths": ["src/a.py", "src/a.py"], "context": 1},
            "src/a.py-2-\nsrc/a.py:3:def one():\nsrc/a.py-4-    return 1",
            1,
        ),
    ],
)
def test_lines_are_found(search: Search, arguments: dict[str, object], expected: str, matches: int) -> None:
    output = search(**arguments)

    assert text(output) == expected
    assert output.facts is not None
    assert output.facts.matches == matches


def test_facts_say_where_was_searched(search: Search) -> None:
    assert search(pattern="one", paths=["src"]).facts == Facts(kind="search", path="src", matches=1)
    assert search(pattern="nothing").facts == Facts(kind="search", matches=0)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "(a"}, "'pattern' cannot be searched for"),
        ({"pattern": "a", "paths": ["missing"]}, "there is no file 'missing'"),
        (
            {"pattern": "a", "paths": ["src/**/*.py"]},
            "there is no file 'src/**/*.py'; globs are not read, but 'extensions' are",
        ),
        ({"pattern": "a", "paths": ["../x"]}, "'../x' is outside of"),
        ({"pattern": "a", "paths": [".jp/conversations"]}, "'.jp/conversations' belongs to jp's conversations"),
        ({"pattern": "a", "context": -1}, "context is -1, but it is a number of lines"),
    ],
)
def test_what_cannot_be_searched_is_an_error(search: Search, arguments: dict[str, object], expected: str) -> None:
    assert failure(search(**arguments)).startswith(expected)


def test_files_that_are_too_large_or_gone_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    (tmp_path / "gone").touch()
    allows = Territory.allows

    def allows_then_gone(territory: Territory, path: str, use: Use) -> bool:
        if path.endswith("gone"):
            Path(path).unlink()
        return allows(territory, path, use)

    monkeypatch.setattr(Territory, "allows", allows_then_gone)

    output = call(GrepFiles(PlainNames()), tmp_path, pattern="a")

    assert text(output) == ("No matches found.\n… 2 files were not searched: too large, not UTF-8, or not readable")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    output = call(GrepFiles(PlainNames()), tmp_path, pattern="a", paths=["pipe"])

    assert failure(output) == "'pipe' is not a regular file"


def test_files_are_searched_in_portions(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = search(pattern="e", context=2)

    monkeypatch.setattr(read_tools, "_FILES_AT_ONCE", 1)

    assert search(pattern="e", context=2) == whole


def test_a_search_ends_where_there_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_tools, "_FILES_AT_ONCE", 1)
    for name in ("a", "b"):
        (tmp_path / name).write_text("x\n" * 5001, encoding="utf-8")

    output = call(GrepFiles(PlainNames()), tmp_path, pattern="x")

    assert "of more than 5,000 matching lines" in text(output)
    assert output.facts == Facts(kind="search", matches=5001)


def test_only_what_may_be_read_is_searched(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("x\n", encoding="utf-8")
    tool = GrepFiles(PlainNames())
    rules = [FileRuleConfig(path="a", read=True)]

    assert text(anyio.run(tool.run, invocation(tmp_path, {"pattern": "x"}, access=rules))) == "a:1:x"
    refused = anyio.run(tool.run, invocation(tmp_path, {"pattern": "x", "paths": ["b"]}, access=rules))
    assert failure(refused).endswith("the configuration does not let this tool do it")
