from __future__ import annotations

import sys
from pathlib import Path

import pytest

from running import run_jp

ENTRY = "from jp.__main__ import main; main()"
TRIAL = "import sys; from jp.cli.app import run; from trial import ROOT; run(sys.argv[1:], ROOT)"
HEAVY = {
    "anyio",
    "asyncio",
    "click",
    "email",
    "http",
    "httpx2",
    "importlib.metadata",
    "logging",
    "markdown_it",
    "pathspec",
    "platformdirs",
    "pydantic",
    "pydantic_core",
    "pygments",
    "rich",
    "ssl",
    "tempfile",
    "tomlkit",
    "tomllib",
}
"""What no command may import before it needs it."""


def imported(code: str, *arguments: str) -> set[str]:
    """The modules that a run imports, by their full names."""
    program = (sys.executable, "-X", "importtime", "-c", code)
    result = run_jp(*arguments, program=program, env={"PYTHONPATH": str(Path(__file__).parents[1])})
    return {line.rpartition("|")[2].strip() for line in result.stderr.splitlines() if line.startswith("import time:")}


def heavy(modules: set[str]) -> set[str]:
    return {name for name in modules if name in HEAVY or name.partition(".")[0] in HEAVY}


def test_the_version_is_printed_before_anything_of_jp_is_imported() -> None:
    modules = imported(ENTRY, "--version")

    assert {name for name in modules if name.partition(".")[0] == "jp"} == {"jp", "jp.__main__"}
    assert modules & {"re", "typing", "typer", "msgspec"} == set()


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], [], ["conversation", "--help"], ["c"], ["config", "-h"]])
def test_help_is_printed_without_typer(arguments: list[str]) -> None:
    modules = imported(ENTRY, *arguments)

    assert "jp.cli.help" in modules
    assert modules & {"typer", "msgspec", "typing", "inspect"} == set()
    assert heavy(modules) == set()


@pytest.mark.parametrize(
    "arguments",
    [["show", "a", "--limit", "3", "--label", "x=y"], ["style", "--ratio", "1.5", "--raw"], ["show", "--help"]],
)
def test_a_command_is_called_without_pydantic_and_rich(arguments: list[str]) -> None:
    modules = imported(TRIAL, *arguments)

    assert {"typer", "jp.cli.lazy"} <= modules
    assert heavy(modules) == set()


@pytest.mark.parametrize(
    "arguments", [["config", "path"], ["workspace", "show"], ["query", "--help"], ["conversation", "use", "--help"]]
)
def test_commands_that_need_little_import_little(arguments: list[str]) -> None:
    modules = imported(ENTRY, *arguments)

    assert "typer" in modules
    assert heavy(modules) == set()


def test_an_unknown_command_imports_no_command() -> None:
    modules = imported(ENTRY, "qurey")

    assert "typer" not in modules
    assert heavy(modules) == set()
