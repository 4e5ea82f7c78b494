"""The worked example of a scheme that another package brings, installed as a user would and attached."""

from __future__ import annotations

import shutil
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from failures import check_failure
from installed import install, run_jp_beside
from jp.conversation.entries import ChatRequest
from running import Result
from stage import make_workspace, only_log

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "jp-sqlite"
SCHEMA = """\
CREATE TABLE books (title TEXT, copies INTEGER, cover BLOB);
-- 2 rows
"""
BROKEN = """
class Handler:
    def canonical(self, uri, context):
        return uri
    async def resolve(self, declaration, context, *, excludes=()):
        if declaration.uri == "broken:text":
            return "text"
        raise KeyError(declaration.uri)
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with a database; beside it, a directory in which the example and a broken package are installed."""
    site = tmp_path / "site"
    site.mkdir()
    with (EXAMPLE / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    shutil.copy(EXAMPLE / "jp_sqlite.py", site)
    install(site, project["name"], "jp.attachments", project["entry-points"]["jp.attachments"])
    (site / "broken.py").write_text(BROKEN, encoding="utf-8")
    install(site, "jp-broken", "jp.attachments", {"broken": "broken:Handler"})
    root = make_workspace(tmp_path / "work")
    with closing(sqlite3.connect(root / "loans.db")) as database:
        database.execute("CREATE TABLE books (title TEXT, copies INTEGER, cover BLOB)")
        database.executemany("INSERT INTO books VALUES (?, ?, ?)", [("Solaris, 2nd", 3, b"\x00"), ("Höhle", 1, None)])
        database.commit()
    return root


def jp(work: Path, *arguments: str) -> Result:
    return run_jp_beside(work.parent / "site", *arguments, cwd=work)


def test_an_installed_scheme_is_attached_and_recorded(work: Path) -> None:
    result = jp(work, "query", "-a", "sqlite:./loans.db", "-a", "sqlite:loans.db?table=books&limit=1", "which?")

    assert result == (0, "You said: which?\n", "")
    request = next(entry for entry in only_log(work) if isinstance(entry, ChatRequest))
    assert request.attachments == ("sqlite:loans.db", "sqlite:loans.db?table=books&limit=1")
    assert [(resource.name, resource.mime_type, resource.text) for resource in request.resources] == [
        ("loans.db", "application/sql", SCHEMA),
        ("loans.db books", "text/csv", 'title,copies,cover\n"Solaris, 2nd",3,(1 bytes)\n'),
    ]


def test_an_installed_scheme_is_declared_printed_and_removed(work: Path) -> None:
    jp(work, "query", "hello")

    added = jp(work, "attachment", "add", "sqlite:loans.db", "!sqlite:loans.db?table=books")
    printed = jp(work, "attachment", "print")
    removed = jp(work, "attachment", "rm", "sqlite:./loans.db", "!sqlite:loans.db?table=books")

    assert added.stdout == "sqlite:loans.db\n!sqlite:loans.db?table=books&limit=100\n"
    assert printed.stdout == f"── loans.db ({len(SCHEMA)} bytes, application/sql)\n{SCHEMA}"
    assert removed.stdout == ""


def test_the_errors_of_an_installed_scheme_are_as_clear_as_jps_own(work: Path) -> None:
    (work / "no.db").write_text("this is no database, it only is called so", encoding="utf-8")

    check_failure(jp(work, "query", "-a", "sqlite:missing.db", "x"), 10, "there is no database 'sqlite:missing.db'")
    check_failure(jp(work, "query", "-a", "sqlite:x?y=z", "x"), 10, "'sqlite:x?y=z' is not understood", "hint: Write")
    failed = jp(work, "attachment", "print", "sqlite:no.db")
    assert (failed.code, failed.stderr) == (10, "error: 'sqlite:no.db' cannot be read: file is not a database\n")
    (work / ".jp.toml").write_text('[conversation]\nattachments = ["sqlite:../out.db"]\n', encoding="utf-8")
    check_failure(jp(work, "query", "x"), 3, "conversation.attachments = 'sqlite:../out.db'")
    jp(work, "workspace", "trust", "--yes")
    leading_out = jp(work, "query", "x")
    assert (leading_out.code, leading_out.stderr.partition("\n")[0]) == (
        10,
        "error: 'sqlite:../out.db' leads out of the workspace",
    )


def test_the_defects_of_an_installed_scheme_name_it_and_its_package(work: Path) -> None:
    source = "the attachment scheme 'broken', 'broken:Handler' of the package 'jp-broken',"

    check_failure(jp(work, "query", "-a", "broken:x", "x"), 10, f"'broken:x': {source} failed: KeyError: 'broken:x'")
    check_failure(jp(work, "query", "-a", "broken:text", "x"), 10, f"{source} gave 'str' where a Resolution has to be")


def test_the_page_shows_the_example_as_it_is() -> None:
    page = (ROOT / "docs" / "third-party-schemes.md").read_text(encoding="utf-8")
    shown = [block.partition("\n```")[0] for block in page.split("```python\n")[1:]]
    module = (EXAMPLE / "jp_sqlite.py").read_text(encoding="utf-8")

    assert len(shown) == 1
    assert shown[0] in module
    assert 'sqlite = "jp_sqlite:SqliteHandler"' in (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
