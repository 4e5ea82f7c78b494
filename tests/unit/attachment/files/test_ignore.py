from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jp.attachment.file_walk import IgnoreRules

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is the oracle")


def git(directory: Path, *arguments: str) -> str:
    environment = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": os.environ["PATH"]}
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    command = ["git", *identity, *arguments]
    return subprocess.run(
        command, cwd=directory, env=environment, check=True, capture_output=True, encoding="utf-8"
    ).stdout


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def kept(base: Path, root: Path) -> set[str]:
    """The files that a walk of `base` keeps, relative to `root`, `.git` aside."""
    rules = IgnoreRules.around(str(base), str(root))
    found: set[str] = set()
    for directory, names, files in os.walk(base):
        names[:] = [n for n in names if n != ".git" and not rules.ignores(directory, n, is_directory=True)]
        found |= {
            str(Path(directory, n).relative_to(root))
            for n in files
            if not rules.ignores(directory, n, is_directory=False)
        }
    return found


TREE = dict.fromkeys(
    [
        "a.o",
        "keep.o",
        "foo/x",
        "foo/keep/y",
        "foo/deep/foo/z",
        "src/a.o",
        "src/foo",
        "src/bar/foo/x",
        "src/bar/b.txt",
        "build/out",
        "docs/build/out",
        "docs/a b.txt",
        "docs/#x",
        "docs/!x",
        "target/debug/x",
        "x/target",
        "ü/ü.txt",
        "[x]/7.txt",
        "dir/sub/one.log",
        "dir/sub/two.txt",
    ],
    "",
)

RULES = [
    "*.o",
    "*.o\n!keep.o",
    "foo",
    "foo/",
    "/foo",
    "/foo/",
    "foo/*\n!foo/keep",
    "foo/**\n!foo/keep/",
    "**/foo",
    "src/**/foo",
    "build/",
    "/build",
    "docs/build",
    "a b.txt",
    "a\\ b.txt",
    "\\#x",
    "\\!x",
    "# a comment\n\n   \ntarget/",
    "target",
    "*",
    "*\n!*/\n!*.txt",
    "/*\n!/src",
    "*/",
    "**/",
    "**",
    "*/**",
    "/*/*.o",
    "[a-c].*",
    "[!a]*",
    "???????",
    "ü.txt",
    "[[:upper:][:digit:]]*",
    "[[]x]",
    "[&&~~|]",
    "[+--]x",
    "[[:nonsense:]]",
    "dir/sub/*\n!*.txt",
    "dir/\n!dir/sub/two.txt",
    "*.log\n*.txt\n!two.txt\n!b.txt",
    "src/bar/\n!src/bar/",
    "foo/deep/**/z",
    "!",
    "x\\",
    "trailing  \nbuild  ",
    "/",
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("repository")
    write(directory, TREE)
    git(directory, "init", "-q")
    return directory


@needs_git
@pytest.mark.parametrize("rules", RULES)
def test_a_walk_of_a_repository_keeps_what_git_keeps(rules: str, repository: Path) -> None:
    write(repository, {".gitignore": rules})

    expected = git(repository, "ls-files", "-z", "--others", "--exclude-standard").split("\0")

    assert kept(repository, repository) == {path for path in expected if path}


@needs_git
def test_nested_files_win_over_those_above(tmp_path: Path) -> None:
    write(
        tmp_path,
        TREE
        | {
            ".gitignore": "*.o\nout\n/dir/sub/two.txt",
            "src/.gitignore": "!*.o\n/foo",
            "docs/build/.gitignore": "!out",
            "dir/.gitignore": "sub/one.log",
        },
    )
    git(tmp_path, "init", "-q")
    write(tmp_path, {".git/info/exclude": "keep.o\nfoo/keep\n"})

    expected = git(tmp_path, "ls-files", "-z", "--others", "--exclude-standard").split("\0")

    assert kept(tmp_path, tmp_path) == {path for path in expected if path}


def test_a_directory_of_its_own_is_walked_though_a_rule_names_it(tmp_path: Path) -> None:
    files = ["target/x", "target/x.o", "target/foo", "target/sub/y", "target/sub/foo/z"]
    write(tmp_path, {".gitignore": "target/\n*.o\nfoo"} | dict.fromkeys(files, ""))

    assert kept(tmp_path / "target", tmp_path) == {"target/x", "target/sub/y"}


def test_rules_above_the_base_hold_up_to_the_root(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "x", "root/.gitignore": "y", "root/a/x": "", "root/a/y": "", "root/a/z": ""})

    assert kept(tmp_path / "root" / "a", tmp_path / "root") == {"a/x", "a/z"}


def test_rules_hold_up_to_the_repository_where_that_is_larger(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "x", ".git/info/exclude": "y", "root/a/x": "", "root/a/y": "", "root/a/z": ""})

    assert kept(tmp_path / "root" / "a", tmp_path / "root") == {"a/z"}


def test_outside_of_the_root_the_repository_around_counts(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "x", "repo/.gitignore": "y", "repo/.git/HEAD": "", "repo/a/x": "", "repo/a/y": ""})
    root = tmp_path / "root"

    assert IgnoreRules.around(str(tmp_path / "repo" / "a"), str(root)).ignores(
        str(tmp_path / "repo" / "a"), "y", is_directory=False
    )
    assert not IgnoreRules.around(str(tmp_path / "repo" / "a"), str(root)).ignores(
        str(tmp_path / "repo" / "a"), "x", is_directory=False
    )


def test_an_ignore_file_wins_over_every_gitignore(tmp_path: Path) -> None:
    write(tmp_path, {".ignore": "!x\nz", "a/.gitignore": "x\ny\n!z", "a/x": "", "a/y": "", "a/z": ""})

    assert kept(tmp_path / "a", tmp_path) == {"a/.gitignore", "a/x"}


@needs_git
def test_a_linked_worktree_shares_the_excludes_of_its_repository(tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(tree))
    write(main, {".git/info/exclude": "x\n"})
    write(tree, {"x": "", "y": ""})

    assert kept(tree, tree) == {".git", "y"}


def test_a_mark_at_the_start_and_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    write(tmp_path, {"x": "", "y": ""})
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbfx\r\ncaf\xe9\n")

    assert kept(tmp_path, tmp_path) == {".gitignore", "y"}


def test_a_range_that_ends_before_it_begins_does_nothing(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "[z-a]\nx", "x": "", "y": ""})

    assert kept(tmp_path, tmp_path) == {".gitignore", "y"}


def test_an_ignore_file_that_is_no_file_says_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"x": "", "rules": "x", "a/x": ""})
    (tmp_path / ".gitignore").symlink_to("rules")
    os.mkfifo(tmp_path / ".ignore")
    (tmp_path / "a" / ".ignore").mkdir()

    assert {"x", "a/x"} <= kept(tmp_path, tmp_path)


def test_the_root_of_the_file_system_can_be_asked(tmp_path: Path) -> None:
    assert not IgnoreRules.around("/", "/").ignores("/", "etc", is_directory=True)
