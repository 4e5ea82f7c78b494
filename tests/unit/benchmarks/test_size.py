from __future__ import annotations

from pathlib import Path

from size import PACKAGE, SOURCE, request_path, rows

FIRST = '''"""What is first."""

from jp.second import Thing

if TYPE_CHECKING:
    import os


@cached
def meet() -> Thing:
    """Return it."""
    from jp.asking import THING

    value = THING
    """Which it is."""
    return value


class Thing: ...
'''


def test_imports_and_documentation_are_no_statements_and_a_header_ends_above_the_first_definition(
    tmp_path: Path,
) -> None:
    package = tmp_path / "jp"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "first.py").write_text(FIRST, encoding="utf-8")
    (package / "second.py").write_text("class Thing(list[int]):\n    size = 1\n" * 60, encoding="utf-8")
    (package / "asking.py").write_text("from jp import first, second\nTHING = second.Thing()\n", encoding="utf-8")

    assert dict(rows(tmp_path)) | {"AST nodes": 0} == {
        "modules": 4,
        "lines": 141,
        "statements without imports and docstrings": 5 + 120 + 1,
        "AST nodes": 0,
        "lines of a module, median": 10,
        "modules under 120 lines": 2,
        "modules with a single importer": 2,
        "lines of module headers": 8 + 1,
        "modules named by a gerund": 1,
        "public class names in several modules": 1,
        "docstrings that begin with a question word": 1,
    }


def test_a_request_runs_through_a_part_of_the_modules() -> None:
    loaded, frames = request_path()

    assert 10 < frames < loaded < len(list((SOURCE / PACKAGE).rglob("*.py")))
