"""Limits that fail the build: written rules alone do not stop a file from growing."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import jp

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "jp"
LIMIT = 600

BANNED_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "core", "misc", "base_classes"}
BANNED_WORDS = {
    "chat session": "conversation",
    "chat history": "stream",
    "project root": "workspace root",
}


SUPPRESSION = re.compile(
    r"# (?:noqa|type: ignore|pyright: ignore|pragma: no cover)"
    r"(?:: ?[A-Z]+[0-9]+(?:, ?[A-Z]+[0-9]+)*|\[[\w, -]+\])?[ \t-]*(?P<reason>.*)$",
    re.MULTILINE,
)

TEXTS = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
"""The modules."""

MODULES = {
    ".".join(("jp", *Path(name).with_suffix("").parts)).removesuffix(".__init__"): text for name, text in TEXTS.items()
}
"""Their texts by the names that are imported."""


def test_a_module_fits_its_budget() -> None:
    lengths = {name: len(text.splitlines()) for name, text in TEXTS.items()}

    assert {name: length for name, length in lengths.items() if length > LIMIT} == {}, "split by responsibility"


def test_a_module_is_named_after_its_responsibility() -> None:
    words = {name: set(Path(name).stem.strip("_").split("_")) for name in TEXTS}

    assert [name for name in TEXTS if words[name] & BANNED_NAMES] == []


@pytest.mark.parametrize(("word", "better"), BANNED_WORDS.items())
def test_a_module_uses_the_glossarys_words(word: str, better: str) -> None:
    assert [name for name, text in TEXTS.items() if word in text.lower()] == [], f"say {better!r}"


def test_a_package_is_a_docstring() -> None:
    packages = {name: text for name, text in TEXTS.items() if name.endswith("__init__.py")}
    imports = "from __future__ import annotations"
    beyond = {
        name: [ast.unparse(node) for node in ast.parse(text).body[1:] if ast.unparse(node) != imports]
        for name, text in packages.items()
    }

    assert all(ast.get_docstring(ast.parse(text)) for text in packages.values())
    assert beyond.pop("__init__.py") == [f"__version__ = {jp.__version__!r}"]
    assert {name: nodes for name, nodes in beyond.items() if nodes} == {}


def test_no_module_asks_whether_it_is_tested() -> None:
    assert [name for name, text in TEXTS.items() if re.search(r"pytest|unittest|PYTEST_", text)] == []


@cache
def imported_by(name: str) -> frozenset[str]:
    """The modules of jp that `name` imports anywhere, also inside of functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[name])):
        if isinstance(node, ast.Import):
            found.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return frozenset(found & MODULES.keys())


def reached_from(package: str) -> set[str]:
    """The modules that `package` imports, and those that they import; its own modules are there, too."""
    waiting = [name for name in MODULES if f"{name}.".startswith(f"{package}.")]
    reached = set(waiting)
    while waiting:
        new = imported_by(waiting.pop()) - reached
        reached |= new
        waiting += new
    return reached


@pytest.mark.parametrize("package", ["jp.context", "jp.compaction"])
def test_each_module_that_decides_what_leaves_a_context_is_reached_by_the_command_line(package: str) -> None:
    own = {name for name in MODULES if name.startswith(f"{package}.")}

    assert own
    assert own - reached_from("jp.cli") == set(), "wire it in, or delete it: tests and benchmarks are no users"


def test_a_module_that_nothing_imports_is_not_reached() -> None:
    assert "jp.compaction.budgeting" in reached_from("jp.cli")
    assert "jp.compaction.budgeting" not in reached_from("jp.conversation")


@pytest.mark.parametrize("line", ["x  # noqa: X1", "x  # noqa: X1, X2 -", "x  # noqa", "x  # type: ignore[a-b]  "])
def test_a_bare_suppression_is_seen(line: str) -> None:
    assert bare_in(f"y\n{line}\nz") == [line.removeprefix("x  ")]
    assert bare_in(f"{line}  the reason") == []


def test_a_suppression_has_its_reason_on_the_same_line() -> None:
    files = sorted([*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")])

    assert [
        f"{path.relative_to(ROOT)}: {line}"
        for path in files
        if path != Path(__file__)
        for line in bare_in(path.read_text(encoding="utf-8"))
    ] == []


def bare_in(text: str) -> list[str]:
    """The suppressions without a reason."""
    return [found[0] for found in SUPPRESSION.finditer(text) if not found["reason"]]
