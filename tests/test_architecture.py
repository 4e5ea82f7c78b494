"""Limits that fail the build: written rules alone do not stop a file from growing."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "jp"
MODULES = sorted(SOURCE.rglob("*.py"))
LIMIT = 400

BANNED_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "core", "misc", "base_classes"}
BANNED_WORDS = {
    "chat session": "conversation",
    "chat history": "stream",
    "project root": "workspace root",
}


def relative(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_module_fits_its_budget(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())

    assert lines <= LIMIT, f"{path.name} has {lines} lines; split it by responsibility"


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_module_is_named_after_its_responsibility(path: Path) -> None:
    words = set(path.stem.strip("_").split("_"))

    assert not words & BANNED_NAMES


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_module_uses_the_glossarys_words(path: Path) -> None:
    text = path.read_text(encoding="utf-8").lower()

    found = [f"{word!r}: say {better!r}" for word, better in BANNED_WORDS.items() if word in text]
    assert not found


@pytest.mark.parametrize("path", [path for path in MODULES if path.name == "__init__.py"], ids=relative)
def test_a_package_is_a_docstring(path: Path) -> None:
    body = ast.parse(path.read_text(encoding="utf-8")).body

    allowed = (ast.Expr, ast.ImportFrom) if path.parent != SOURCE else (ast.Expr, ast.ImportFrom, ast.Assign)
    assert all(isinstance(node, allowed) for node in body)
    assert all(node.module == "__future__" for node in body if isinstance(node, ast.ImportFrom))


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_no_module_asks_whether_it_is_tested(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert not re.search(r"pytest|unittest|PYTEST_", text)


def test_a_suppression_has_its_reason_on_the_same_line() -> None:
    pattern = re.compile(r"# (?:noqa|type: ignore|pyright: ignore|pragma: no cover)(.*)$")
    bare: list[str] = []
    for path in [*MODULES, *sorted((ROOT / "tests").rglob("*.py"))]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = pattern.search(line)
            if found and len(re.sub(r"[:\[\]A-Za-z0-9,]+", "", found[1], count=1).strip()) == 0:
                bare.append(f"{path.relative_to(ROOT)}:{number}")

    assert not bare
