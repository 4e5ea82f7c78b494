"""`make size`: size of the sources, their cut into modules, and the part of them that a request runs through."""

from __future__ import annotations

import ast
import itertools
import re
import statistics
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from fixtures import new_workspace, query
from gate import probed
from server import TimingServer

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = "jp"
SHORT_LINES = 120
QUESTION_WORDS = r"(What|How|Who|Whom|Where|When|Which|Why|Whether|Whose)\b"
GERUND = re.compile(r"[a-z]{2,}ing")
NO_GERUNDS = frozenset({"string", "ring", "thing", "king", "pricing", "setting", "nothing", "ping", "listing"})
"""Words that end like one."""


class Module(NamedTuple):
    """A module of `src`, by its dotted name."""

    name: str
    is_package: bool
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """The number of its lines."""
        return len(self.text.splitlines())


def modules(source: Path) -> list[Module]:
    """Return the modules of jp below `source`."""
    found: list[Module] = []
    for path in sorted((source / PACKAGE).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        found.append(Module(name, path.stem == "__init__", text, ast.parse(text)))
    return found


def statements(tree: ast.Module) -> int:
    """Count the statements; imports, documentation and `...` do not count."""
    return sum(
        isinstance(node, ast.stmt) and not isinstance(node, (ast.Import, ast.ImportFrom)) and not _is_constant(node)
        for node in ast.walk(tree)
    )


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings of the module, its classes and its functions."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield text


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def header_lines(module: Module) -> int:
    """Count the lines above the first statement that is no docstring, no import and no `if TYPE_CHECKING:`."""
    for node in module.tree.body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)) and not _is_constant(node) and not _is_for_types(node):
            decorators: list[ast.expr] = getattr(node, "decorator_list", [])
            return min(part.lineno for part in [node, *decorators]) - 1
    return module.lines


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def importers(found: list[Module]) -> Mapping[str, set[str]]:
    """Return the modules that import each module, also within a function."""
    names = {module.name for module in found}
    by: dict[str, set[str]] = defaultdict(set)
    for module in found:
        for name in itertools.chain.from_iterable(_imported(node, names) for node in ast.walk(module.tree)):
            if name in names and name != module.name:
                by[name].add(module.name)
    return by


def _imported(node: ast.AST, modules: set[str]) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(name), names=names):
            below = [f"{name}.{alias.name}" for alias in names]
            return [inner if inner in modules else name for inner in below]
        case _:
            return []


def request_path() -> tuple[int, int]:
    """Return the number of loaded modules and of stack frames of jp when a query sends its first byte.

    Frames are those of the calls and of the coroutines that wait for each other, up to the first task.
    """
    with tempfile.TemporaryDirectory() as scratch, closing(TimingServer()) as server:
        home = Path(scratch)
        new_workspace(home)
        counts = probed(home, query(server.url, "--new", "hello"), until="request")
    return counts["modules of jp"], counts["frames of jp"]


def rows(source: Path = SOURCE) -> list[tuple[str, int]]:
    """Return each figure with its name."""
    found = modules(source)
    by = importers(found)
    classes = Counter(
        name
        for module in found
        for name in {node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}
        if not name.startswith("_")
    )
    texts = [text for module in found for text in docstrings(module.tree)]
    return [
        ("modules", len(found)),
        ("lines", sum(module.lines for module in found)),
        ("statements without imports and docstrings", sum(statements(module.tree) for module in found)),
        ("AST nodes", sum(1 for module in found for _ in ast.walk(module.tree))),
        ("lines of a module, median", int(statistics.median(module.lines for module in found))),
        (
            f"modules under {SHORT_LINES} lines",
            sum(module.lines < SHORT_LINES and not module.is_package for module in found),
        ),
        ("modules with a single importer", sum(len(by.get(module.name, ())) == 1 for module in found)),
        ("lines of module headers", sum(header_lines(module) for module in found)),
        ("modules named by a gerund", sum(_is_gerund(module.name) for module in found)),
        ("public class names in several modules", sum(count > 1 for count in classes.values())),
        ("docstrings that begin with a question word", sum(bool(re.match(QUESTION_WORDS, text)) for text in texts)),
    ]


def _is_gerund(name: str) -> bool:
    last = name.rpartition(".")[2]
    return any(GERUND.fullmatch(word) and word not in NO_GERUNDS for word in last.split("_"))


def main() -> None:
    """Print all figures."""
    loaded, frames = request_path()
    measured = [("modules of jp loaded at the first byte of a request", loaded), ("stack frames of jp there", frames)]
    for name, count in [*rows(), *measured]:
        print(f"{count:>9,}  {name}")


if __name__ == "__main__":
    main()
