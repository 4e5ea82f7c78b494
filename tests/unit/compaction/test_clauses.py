"""The table of clauses: every row names a test that is there, or says what is not done."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "compaction-clauses.md").read_text(encoding="utf-8")
TEST = re.compile(r"`(tests/[a-z0-9_/]+\.py)::(test_[a-z0-9_]+)`")


def rows(page: str) -> list[tuple[str, str, str]]:
    """The rows of the tables: the clause, what jp does, and the tests."""
    lines = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| clause |")]
    found: list[tuple[str, str, str]] = []
    for line in lines:
        clause, does, tests = (cell.strip() for cell in line.strip("|").split(" | "))
        found.append((clause, does, tests))
    return found


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def missing(page: str) -> list[str]:
    """The clauses whose row names no test that is there, though it is done."""
    lacking: list[str] = []
    for clause, does, tests in rows(page):
        named = TEST.findall(tests)
        is_open = does.startswith("not done: ") and tests == "-"
        if not is_open and not (
            named and all((ROOT / path).is_file() and test in names_in(path) for path, test in named)
        ):
            lacking.append(clause)
    return lacking


def test_every_clause_has_a_test_that_is_there_or_says_that_it_is_not_done() -> None:
    assert missing(PAGE) == []


def test_all_three_designs_are_in_the_table() -> None:
    counts = [len(rows(section)) for section in PAGE.split("\n## ")[1:]]

    assert [title.splitlines()[0] for title in PAGE.split("\n## ")[1:]] == [
        "RFD 064",
        "RFD D17",
        "The compression plan",
    ]
    assert min(counts) >= 15


@pytest.mark.parametrize(
    "row",
    [
        "| a | Done | `tests/unit/compaction/test_clauses.py::test_that_is_not_there` |",
        "| a | Done | `tests/unit/compaction/test_nowhere.py::test_x` |",
        "| a | Done | - |",
        "| a | not done: later | |",
    ],
)
def test_a_row_without_its_test_is_noticed(row: str) -> None:
    assert missing(row) == ["a"]
