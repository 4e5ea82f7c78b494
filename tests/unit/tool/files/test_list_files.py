from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from file_calls import call, failure, invocation, text
from jp.config.entries import FileRuleConfig
from jp.conversation.entries import Facts
from jp.tool.files import territory
from jp.tool.files.read_tools import MOST_LISTED, ListFiles
from plain_names import Ignoring, PlainNames

FILES = (
    ".github/ci.yml",
    ".hidden",
    ".jp/config.toml",
    "README.md",
    "build/out.js",
    "src/a.py",
    "src/a/b.py",
    "src/a/c.js",
    "src/ab.py",
    "src/z.py",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).touch()
    return tmp_path / "root"


def listed(root: Path, **arguments: list[str]) -> list[str]:
    return text(call(ListFiles(PlainNames(ignored=["build"])), root, **arguments)).split("\n")


def test_every_file_is_listed_by_its_path_but_for_what_is_hidden_or_ignored(root: Path) -> None:
    assert listed(root) == ["README.md", "src/a/b.py", "src/a/c.js", "src/a.py", "src/ab.py", "src/z.py"]


@pytest.mark.parametrize(
    ("prefixes", "expected"),
    [
        (["src/a"], ["src/a/b.py", "src/a/c.js"]),
        (["src/ab", "src/z", "src/z"], ["src/ab.py", "src/z.py"]),
        (["src/", "./src"], ["src/a/b.py", "src/a/c.js", "src/a.py", "src/ab.py", "src/z.py"]),
        (["{root}/src/a/"], ["src/a/b.py", "src/a/c.js"]),
        (["build"], ["build/out.js"]),
        ([".github"], [".github/ci.yml"]),
        ([".gi"], [".github/ci.yml"]),
        (["REA", ".hid"], [".hidden", "README.md"]),
        ([".jp"], [".jp/config.toml"]),
        (["src/a.py"], ["src/a.py"]),
        (["src/nothing", "nowhere/x", "src/ab/"], ["No files found."]),
        (["src/*.py"], ["No files found. Globs are not read: give a directory as a prefix, and extensions."]),
        ([""], ["README.md", "src/a/b.py", "src/a/c.js", "src/a.py", "src/ab.py", "src/z.py"]),
    ],
)
def test_prefixes_are_directories_or_beginnings_of_paths(root: Path, prefixes: list[str], expected: list[str]) -> None:
    assert listed(root, prefixes=[prefix.format(root=root) for prefix in prefixes]) == expected


def test_extensions_narrow_it(root: Path) -> None:
    assert listed(root, extensions=["js", ".md"]) == ["README.md", "src/a/c.js"]
    assert listed(root, prefixes=["src/a.py"], extensions=["js"]) == ["No files found."]


def test_facts_say_how_many_and_below_what(root: Path) -> None:
    tool = ListFiles(PlainNames())

    assert call(tool, root, prefixes=["src"]).facts == Facts(kind="list", path="src", matches=5)
    assert call(tool, root, prefixes=["src", "build"]).facts == Facts(kind="list", matches=6)


def test_links_are_not_followed(root: Path) -> None:
    (root / "src" / "loop").symlink_to("..")
    (root / "src" / "link.py").symlink_to("a.py")

    assert listed(root, prefixes=["src/l"]) == ["No files found."]
    assert listed(root, prefixes=["src/loop/src/z"]) == ["src/z.py"]


def test_only_what_may_be_read_is_listed(root: Path) -> None:
    outside = root.parent / "shared"
    outside.mkdir()
    (outside / "x.py").touch()
    rules = (FileRuleConfig(path="src/a", read=True), FileRuleConfig(path=str(outside), read=True))
    tool = ListFiles(PlainNames())

    def run(**arguments: list[str]) -> str:
        return text(anyio.run(tool.run, invocation(root, dict(arguments), access=rules)))

    assert run() == "src/a/b.py\nsrc/a/c.js"
    assert run(prefixes=[str(outside)]) == str(outside / "x.py")
    assert run(prefixes=["src/a.py"]).endswith("the configuration does not let this tool do it")


@pytest.mark.parametrize("prefix", ["..", "/etc", "src/../../x"])
def test_what_is_outside_is_not_listed(root: Path, prefix: str) -> None:
    assert "is outside of" in failure(call(ListFiles(PlainNames()), root, prefixes=[prefix]))


def test_many_files_are_counted(root: Path) -> None:
    (root / "many").mkdir()
    for number in range(MOST_LISTED + 2):
        (root / "many" / str(number)).touch()

    output = call(ListFiles(PlainNames()), root, prefixes=["many"])

    lines = text(output).split("\n")
    assert len(lines) == MOST_LISTED + 1
    assert lines[-1] == "… and 2 more files; narrow it with prefixes or extensions"
    assert output.facts == Facts(kind="list", path="many", matches=MOST_LISTED + 2)


def test_a_walk_has_an_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(territory, "MAX_ENTRIES", 3)

    assert failure(call(ListFiles(PlainNames()), root)) == (
        "there are more than 3 files and directories; name a smaller directory"
    )


class Swapping(PlainNames):
    """Puts a link to `outside` where a directory was, once that has been judged."""

    def __init__(self, directory: Path, outside: Path) -> None:
        super().__init__()
        self._directory = directory
        self._outside = outside

    def ignored(self, base: str, root: str) -> Ignoring:
        self._directory.rename(self._outside / "moved")
        self._directory.symlink_to(self._outside)
        return super().ignored(base, root)


@pytest.mark.parametrize(
    ("swapped", "expected"),
    [("src/a", "src/a.py\nsrc/ab.py\nsrc/z.py"), ("src", "cannot list 'src': Not a directory")],
)
def test_a_directory_that_becomes_a_link_while_it_is_walked_is_not_followed(
    root: Path, swapped: str, expected: str
) -> None:
    outside = root.parent / "shared"
    outside.mkdir()
    (outside / "secret.py").touch()

    assert text(call(ListFiles(Swapping(root / swapped, outside)), root, prefixes=["src"])) == expected


def test_a_name_with_a_line_feed_stays_on_one_line(root: Path) -> None:
    (root / "src" / "a" / "d\ne").touch()

    assert "src/a/d\\ne" in listed(root, prefixes=["src/a"])
