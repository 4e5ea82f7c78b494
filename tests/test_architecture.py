"""Limits that fail the build: written rules alone do not stop a file from growing."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import jp
from jp.provider.registry import PROVIDERS

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


VENDOR_NAMES_ELSEWHERE = {
    "cli/help.py": "the example of first use",
    "cli/keys.py": "the example of an argument",
    "cli/query/wiring.py": "the example in a hint",
    "config/accounts.py": "the settings of the vendors' accounts",
    "config/model.py": "a field for the account of each vendor",
    "process/sandbox/policy.py": "directories in which other programs keep credentials",
    "provider/models.py": "what a cloud puts before a model's name",
    "provider/registry.py": "a line for each vendor",
}
"""Modules outside of a vendor's folder that name vendors, and why."""


def test_a_vendor_is_named_in_its_folder_and_in_the_registry_only() -> None:
    found = {
        name
        for name, text in TEXTS.items()
        for vendor in PROVIDERS
        if vendor != "script" and not re.match(r"provider/\w+/", name) and _names(text, vendor)
    }

    assert found <= {*VENDOR_NAMES_ELSEWHERE}
    assert {*VENDOR_NAMES_ELSEWHERE} <= found, "take out what is no exception any more"


def _names(text: str, vendor: str) -> bool:
    """Whether code names a vendor: in an identifier, an import or a text, docstrings aside."""
    word = re.compile(rf"(?<![\w.-]){vendor}(?![\w.-])")
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(value)) if id(node) not in docstrings and word.search(value):
                return True
            case ast.Attribute(attr=name) | ast.Name(id=name) if name == vendor:
                return True
            case ast.ImportFrom(module=str(name)) if vendor in name.split("."):
                return True
            case ast.AnnAssign(target=ast.Name(id=name)) if name == vendor:
                return True
            case _:
                continue
    return False
