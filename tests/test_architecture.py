"""Limits that fail the build: written rules alone do not stop a file from growing."""

from __future__ import annotations

import ast
import itertools
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import jp
from jp.attachment.registry import BUILT_IN
from jp.cli.command_line.commands import ROOT as COMMANDS
from jp.cli.command_line.commands import walk
from jp.provider.registry import PROVIDERS
from parsed import parsed

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


SMALL = 120
SMALL_MODULES = {
    "provider.corrections": "not on the path of a query, as parameters.py is",
    "__main__": "the entry point",
    "attachment.mcp": "a scheme",
    "cli.completion.command": "imports Typer, which takes too long for the candidates beside it",
    "provider.cerebras.request": "a vendor's request",
    "provider.cerebras.vendor": "a vendor",
    "provider.chat.vendor": "a vendor",
    "provider.llamacpp.request": "a vendor's request",
    "provider.llamacpp.vendor": "a vendor",
    "provider.openrouter.vendor": "a vendor",
    "provider.script.vendor": "a vendor",
    "render.page": "the page beside its template, style and script",
    "tool.web_fetch": "a tool",
}
"""Modules of fewer lines with a single importer, each with the reason why it is one."""


def importers() -> dict[str, set[str]]:
    """Return for each module the modules that import it, or something of it, anywhere in their text."""
    names = {name: "jp." + name.removesuffix(".py").replace("/", ".") for name in TEXTS}
    found: dict[str, set[str]] = {module: set() for module in names.values()}
    for name, text in TEXTS.items():
        nodes = (node for node in parsed(text).imports if isinstance(node, ast.ImportFrom))
        for imported in (
            f"{node.module}{more}" for node in nodes for more in ("", *(f".{a.name}" for a in node.names))
        ):
            found.get(imported, set()).add(names[name])
    return found


def test_a_small_module_has_two_importers_or_a_reason() -> None:
    found = importers()
    small = {
        name.removesuffix(".py").replace("/", ".")
        for name, text in TEXTS.items()
        if not name.endswith("__init__.py") and len(text.splitlines()) < SMALL
    }

    schemes = {value.partition(":")[0] for value in BUILT_IN.values()}
    alone = {name for name in small if len(found[f"jp.{name}"]) < 2 and f"jp.{name}" not in schemes}
    assert alone - set(SMALL_MODULES) == set(), "join it with the module that imports it, or give the reason"
    assert set(SMALL_MODULES) - alone == set(), "the reason is not needed any more"
    assert len(SMALL_MODULES) <= 20


def test_the_page_about_the_architecture_names_what_there_is() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+\.)+[A-Za-z_]+)`", page)) - {"cycle_end.digests", "request.py", "response.py"}
    packages = {path.name for path in SOURCE.iterdir()}
    there = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in TEXTS}

    def exists(name: str) -> bool:
        return name in there or (name.rpartition(".")[0] in there and name.rpartition(".")[2][0].isupper())

    assert {name for name in named if name.partition(".")[0] in packages and not exists(name)} == set()
    assert {package for package in packages if (SOURCE / package / "__init__.py").exists()} <= set(
        re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE)
    )


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
    for node in parsed(MODULES[name]).imports:
        if isinstance(node, ast.Import):
            found.update(one.name for one in node.names)
        elif node.module is not None:
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


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    declared = {re.split(r"[\s\[<>=;]", requirement)[0].lower() for requirement in requirements}
    providers = packages_distributions()
    undeclared = {
        f"{module}: {name}"
        for module, text in TEXTS.items()
        for name in _imported(text)
        if name not in sys.stdlib_module_names | {"jp"}
        and declared.isdisjoint(distribution.lower().replace("_", "-") for distribution in providers.get(name, [name]))
    }

    assert undeclared == set()


def _imported(text: str) -> Iterator[str]:
    """Yield the top-level name of every package that a module imports."""
    for node in parsed(text).imports:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        else:
            yield (node.module or "").partition(".")[0]


NAMES_ELSEWHERE = {
    "__main__.py": {"--version": "the option that is answered before anything is imported"},
    "attachment/clipboard.py": {
        "--list-types": "an option of wl-paste",
        "--no-newline": "an option of wl-paste",
        "--type": "an option of wl-paste",
    },
    "attachment/command.py": {"--cached": "an option of git"},
    "attachment/github.py": {"diff --git": "a line of a diff"},
    "attachment/github_repository.py": {"--get-regexp": "an option of git", "--hostname": "an option of gh"},
    "process/sandbox/launcher.py": {"--remount-ro": "an option of bwrap", "--tmpfs": "an option of bwrap"},
    "process/sandbox/policy.py": {"--": "options of bwrap"},
    "provider/classification.py": {"--jinja": "an option of llama-server"},
    "provider/llamacpp/vendor.py": {"--ctx-size": "an option of llama-server"},
    "workspace/garbage.py": {
        "--batch": "an option of git",
        "--format": "an option of git",
        "--no-show-signature": "an option of git",
        "--porcelain": "an option of git",
        "--walk-reflogs": "an option of git",
    },
    "tool/context_tools.py": {"jp conversation recall": "a result that is sent to models"},
}
"""Texts outside of `cli` that name an option or a command, by their modules, and the reasons."""


@cache
def _option_or_command() -> re.Pattern[str]:
    commands = "|".join(sorted({path[1] for path, _ in walk(COMMANDS, above=("jp",))}))
    return re.compile(rf"(?<![\w-])--[a-z][\w-]*|\bjp (?:{commands})\b|`(?:{commands}) |(?<![\w/.-])`-[A-Za-z]\b")


def named_outside_of_cli(text: str) -> list[tuple[int, str]]:
    """Return the lines and texts of the literals that name an option, or a command of jp; docstrings apart."""
    return [(line, literal) for line, literal in parsed(text).texts if _option_or_command().search(literal)]


def test_no_text_outside_of_cli_names_an_option_or_a_command() -> None:
    found = {name: named_outside_of_cli(text) for name, text in TEXTS.items() if not name.startswith("cli/")}
    known = [(name, word) for name, words in NAMES_ELSEWHERE.items() for word in words]
    unexpected = [
        f"{name}:{line}: {text}"
        for name, texts in found.items()
        for line, text in texts
        if not any(word in text for word in NAMES_ELSEWHERE.get(name, {}))
    ]

    assert unexpected == [], "carry a remedy of `jp.remedies`"
    assert [one for one in known if not any(one[1] in text for _, text in found[one[0]])] == [], "take it out"


@pytest.mark.parametrize(
    "line",
    [
        'raise E("no", hint="use --model")',
        'x = f"`jp keys set {name}`"',
        'x = {"a": "see `conversation ls `"}',
        'x = "-p: `-p K=V`"',
        'flag("--model", 1)',
    ],
)
def test_a_text_that_names_an_option_or_a_command_is_found(line: str) -> None:
    assert named_outside_of_cli(f'"""See `jp keys set`."""\n{line}\n')
    assert not named_outside_of_cli('"""See --model."""\nx = "a - b, a-b, jp runs, `query` is a word"\n')


VENDOR_NAMES_ELSEWHERE = {
    "cli/command_line/help.py": "the example of first use",
    "cli/keys.py": "the example of an argument",
    "app/query/wiring.py": "the example in a hint",
    "config/entries.py": "the settings of the vendors' accounts",
    "config/model.py": "a field for the account of each vendor",
    "config/original_rules.py": "the variable with the address of a vendor that the original JP reads",
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
        if vendor != "script" and vendor in text and not re.match(r"provider/\w+/", name) and _names(text, vendor)
    }

    assert found <= {*VENDOR_NAMES_ELSEWHERE}
    assert {*VENDOR_NAMES_ELSEWHERE} <= found, "take out what is no exception any more"


def _names(text: str, vendor: str) -> bool:
    """Whether code names a vendor: in an identifier, an import or a text, docstrings aside."""
    word = re.compile(rf"(?<![\w.-]){vendor}(?![\w.-])")
    of = parsed(text)
    imported = {
        part for node in of.imports if isinstance(node, ast.ImportFrom) for part in (node.module or "").split(".")
    }
    return vendor in of.identifiers | imported or any(word.search(literal) for _, literal in of.texts)
