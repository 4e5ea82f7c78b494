"""`jp config fmt`: one layout, nothing lost, nothing half-done."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from failures import check_failure
from forked import run_jp
from running import home_beside

UNTIDY = """\
# my settings

user.name="Ada"   # me
[style]
markdown.wrap_width=80
[assistant]
# who answers
model={id="script/test"}
"""
TIDY = """\
# my settings

user.name = "Ada"  # me

[style]
markdown.wrap_width = 80

[assistant]
# who answers
model = {id="script/test"}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "work" / ".jp" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(UNTIDY, encoding="utf-8")
    path.chmod(0o640)
    return path


def test_all_files_that_are_read_are_formatted_once(file: Path) -> None:
    root = file.parents[1]
    own = home_beside(root) / "config" / "config.toml"
    own.parent.mkdir()
    own.write_text('extends=["more/*.toml"]\n', encoding="utf-8")
    (own.parent / "more").mkdir()
    more = own.parent / "more" / "a.toml"
    more.write_text('user={name="B"}', encoding="utf-8")

    checked = run_jp("config", "fmt", "--check", cwd=root)
    untouched = file.read_text(encoding="utf-8")
    done = run_jp("config", "fmt", cwd=root)
    again = run_jp("config", "fmt", cwd=root)
    data = json.loads(run_jp("config", "fmt", "--check", "-F", "json", cwd=root).stdout)

    files = [str(more), str(own), str(file)]
    assert checked == (1, "".join(f"would format {path}\n" for path in files), "")
    assert untouched == UNTIDY
    assert done == (0, "".join(f"formatted {path}\n" for path in files), "")
    assert file.read_text(encoding="utf-8") == TIDY
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert own.read_text(encoding="utf-8") == 'extends = ["more/*.toml"]\n'
    assert more.read_text(encoding="utf-8") == 'user = {name="B"}\n'
    assert again == (0, "", "")
    assert data == {"schema": 1, "check": True, "changed": [], "files": files}


def test_a_file_elsewhere_is_formatted_only_by_its_name(file: Path, tmp_path: Path) -> None:
    outside = tmp_path / "out.toml"
    outside.write_text("user={}\nstyle={markdown={wrap_width=1}}", encoding="utf-8")
    file.write_text('extends = ["../../out.toml"]\n', encoding="utf-8")
    root = file.parents[1]

    left = run_jp("config", "fmt", cwd=root)
    named = run_jp("config", "fmt", "../out.toml", cwd=root)

    assert left.stdout == ""
    assert (
        left.stderr == f"note: '{file.parent}/../../out.toml' lies elsewhere and is left alone: name it to format it\n"
    )
    assert named == (0, f"formatted {root}/../out.toml\n", "")
    assert outside.read_text(encoding="utf-8") == "user = {}\nstyle = {markdown={wrap_width=1}}\n"


def test_nothing_is_written_where_one_file_is_invalid(file: Path) -> None:
    root = file.parents[1]
    bad = root / "bad.toml"
    bad.write_text("user.nmae = 1\n", encoding="utf-8")

    done = run_jp("config", "fmt", ".jp/config.toml", "bad.toml", cwd=root)

    check_failure(done, 3, "bad.toml', line 1, column 1: unknown key 'user.nmae'")
    assert file.read_text(encoding="utf-8") == UNTIDY
    assert bad.read_text(encoding="utf-8") == "user.nmae = 1\n"


def test_what_is_no_file_is_said(file: Path) -> None:
    root = file.parents[1]

    check_failure(run_jp("config", "fmt", "missing.toml", cwd=root), 3, "there is no file")
    check_failure(run_jp("config", "fmt", ".jp", cwd=root), 3, "is no file")
    check_failure(run_jp("config", "fmt", "--no-persist", cwd=root), 2, "--no-persist")
    assert run_jp("config", "fmt", "--check", "--no-persist", cwd=root).code == 1


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.toml"
    file.rename(target)
    file.symlink_to(target)

    assert run_jp("config", "fmt", str(file), cwd=tmp_path).code == 0
    assert file.is_symlink()
    assert target.read_text(encoding="utf-8") == TIDY


def test_outside_a_workspace_without_files_there_is_nothing_to_format(tmp_path: Path) -> None:
    assert run_jp("config", "fmt", "--check", cwd=tmp_path) == (0, "", "")
