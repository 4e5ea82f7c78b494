"""The man pages that a wheel installs: one for each command, with all that its help has."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from pathlib import Path

import pytest

import man_pages
from jp.cli.command_line.commands import ROOT, Group
from running import TIMEOUT_SECS, run_jp

SOURCES = Path(__file__).parents[2]


@cache
def pages() -> dict[str, str]:
    return dict(man_pages.pages())


def names(group: Group, *above: str) -> list[str]:
    """The names of the pages of a group and of all below it."""
    path = (*above, group.name)
    own = ["-".join(path)]
    for child in group.commands:
        own += names(child, *path) if isinstance(child, Group) else ["-".join((*path, child.name))]
    return own


def plain(text: str) -> str:
    """Return the words of a page, without what only lays them out."""
    without_requests = re.sub(r"^\.[A-Za-z]* ?", "", text, flags=re.MULTILINE)
    unescaped = re.sub(r"\\f[A-Z]|\\f\[[A-Z]*\]|\\&|\\%", "", without_requests)
    for escape, character in (
        ("\\-", "-"),
        ("\\(aq", "'"),
        ("\\(dq", '"'),
        ("\\(ga", "`"),
        ("\\(bs", "\\"),
        ("\\e", "\\"),
    ):
        unescaped = unescaped.replace(escape, character)
    return " ".join(unescaped.split())


def test_every_command_and_group_has_a_page() -> None:
    assert list(pages()) == names(ROOT)


@pytest.mark.parametrize("name", ["jp", "jp-query", "jp-conversation-compact", "jp-hook", "jp-hook-install"])
def test_a_page_has_all_that_the_help_has(name: str) -> None:
    help_text = run_jp(*name.split("-")[1:], "--help").stdout
    page = plain(pages()[name]).replace(" ", "").replace("-", "").lower()

    for block in help_text.split("\n\n"):
        for line in block.splitlines():
            words = line.removeprefix("Usage:").rstrip(":").replace("-", "").replace(" ", "").lower()
            assert words in page, line


@pytest.mark.skipif(shutil.which("man") is None, reason="no man here")
def test_man_shows_every_page_without_a_warning(tmp_path: Path) -> None:
    for path in man_pages.write(tmp_path):
        done = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-l", str(path)],
            capture_output=True,
            encoding="utf-8",
            timeout=TIMEOUT_SECS,
            check=True,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANPAGER": "cat"},
        )
        assert done.stderr == ""
        assert path.stem.replace("-", " ") in re.sub(r"-\n *", "-", done.stdout).replace("\u2010", "-")


def test_a_wheel_installs_them(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(SOURCES)],
        check=True,
        capture_output=True,
        timeout=TIMEOUT_SECS,
    )
    (wheel,) = tmp_path.glob("*.whl")

    with zipfile.ZipFile(wheel) as archive:
        installed = {
            Path(name).stem: archive.read(name).decode() for name in archive.namelist() if "/share/man/man1/" in name
        }
        assert any(name.endswith("jp/cli/completion/jp.zsh") for name in archive.namelist())
        assert any(name.endswith("jp/cli/hook-start.sh") for name in archive.namelist())
    assert installed == pages()


def test_building_needs_no_more_than_is_declared() -> None:
    declared = tomllib.loads((SOURCES / "pyproject.toml").read_text(encoding="utf-8"))
    hook = declared["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    of_typer_and_anyio = {"annotated_doc", "shellingham", "sniffio", "typing_extensions", "idna"}
    allowed = (
        {re.split("[<>=]", text)[0] for text in hook["dependencies"]} | of_typer_and_anyio | {"hatchling", "pathspec"}
    )
    script = """
import sys; before = set(sys.modules); import man_pages; list(man_pages.pages())
roots = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*(n for n in roots if "site-packages" in (getattr(sys.modules.get(n), "__file__", "") or "")))
"""

    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=SOURCES / "benchmarks",
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_SECS,
        check=True,
    )

    assert set(done.stdout.split()) - allowed == set()
