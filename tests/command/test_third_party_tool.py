"""The worked example of a tool that another package brings, installed as a user would and called by a model."""

from __future__ import annotations

import shutil
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from failures import check_failure
from installed import install, run_jp_beside
from jp.conversation.entries import ToolCallResponse
from running import Result
from stage import make_workspace, only_log

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "jp-sqlite-query"
SCENARIO = """
[[reply]]
when = { tool = "sqlite_query" }
text = "It says: {{result}}"

[[reply]]
calls = [{ name = "sqlite_query", arguments = { database = "loans.db", sql = "{{user}}" } }]
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with a database; beside it, a directory in which the example and a broken package are installed."""
    site = tmp_path / "site"
    site.mkdir()
    with (EXAMPLE / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    shutil.copy(EXAMPLE / "jp_sqlite_query.py", site)
    install(site, project["name"], "jp.tools", project["entry-points"]["jp.tools"])
    install(site, "jp-broken", "jp.tools", {"broken": "no_such_module:Tool"})
    root = make_workspace(tmp_path / "work", SCENARIO)
    with closing(sqlite3.connect(root / "loans.db")) as database:
        database.execute("CREATE TABLE books (title TEXT, copies INTEGER)")
        database.executemany("INSERT INTO books VALUES (?, ?)", [("Solaris, 2nd", 3), ("Höhle", 1)])
        database.commit()
    return root


def jp(work: Path, *arguments: str) -> Result:
    return run_jp_beside(work.parent / "site", *arguments, cwd=work)


def test_a_model_calls_an_installed_tool(work: Path) -> None:
    result = jp(work, "query", "--tool=sqlite_query", "--approve", "sqlite_query", "SELECT * FROM books")

    assert (result.code, result.stdout) == (0, 'It says: title,copies\n"Solaris, 2nd",3\nHöhle,1\n')
    response = next(entry for entry in only_log(work) if isinstance(entry, ToolCallResponse))
    assert response.facts is not None
    assert (response.facts.kind, response.facts.path, response.facts.matches) == ("search", "loans.db", 2)


def test_an_installed_tool_is_run_by_hand_and_its_failure_is_told(work: Path) -> None:
    attach = '{"database": "loans.db", "sql": "ATTACH \'/etc/passwd\' AS other"}'

    denied = jp(work, "tool", "run", "sqlite_query", "--yes", "--hide-tools", "-a", attach)

    assert denied == (1, "'loans.db' cannot be asked that: not authorized\n", "")


def test_a_tool_that_does_not_load_is_an_error_that_names_its_package(work: Path) -> None:
    failed = jp(work, "query", "--tool=broken", "x")

    check_failure(failed, 3, "the tool 'broken' comes from 'no_such_module:Tool' of the package 'jp-broken'", "hint: ")


def test_the_page_shows_the_example_as_it_is() -> None:
    page = (ROOT / "docs" / "third-party-tools.md").read_text(encoding="utf-8")
    shown = [block.partition("\n```")[0] for block in page.split("```python\n")[1:]]
    module = (EXAMPLE / "jp_sqlite_query.py").read_text(encoding="utf-8")

    assert len(shown) == 1
    assert shown[0] in module
    assert 'sqlite_query = "jp_sqlite_query:SqliteQuery"' in (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")


def test_the_names_that_are_for_packages_exist() -> None:
    page = (ROOT / "docs" / "third-party-tools.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `jp.")]
    for module, names in rows:
        found = __import__(module.strip(" `"), fromlist=["x"])
        assert [name for name in names.split("`")[1::2] if not hasattr(found, name)] == []
    assert len(rows) == 6
