"""A directory with packages, as pip leaves them there, and jp where Python finds them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from forked import run_jp
from running import Result

_BESIDE = """
import sys
sys.path.append({site!r})
from jp.__main__ import main
main()
"""


def install(site: Path, name: str, group: str, entry_points: Mapping[str, str]) -> None:
    """What pip leaves of a package beside its modules."""
    package = site / f"{name.replace('-', '_')}-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    entries = "".join(f"{entry} = {value}\n" for entry, value in entry_points.items())
    (package / "entry_points.txt").write_text(f"[{group}]\n{entries}", encoding="utf-8")


def run_jp_beside(site: Path, *arguments: str, cwd: Path) -> Result:
    """What jp does where the directory is one of those in which Python finds packages."""
    script = site.with_name(f"jp_beside_{site.name}.py")
    script.write_text(_BESIDE.format(site=str(site)), encoding="utf-8")
    return run_jp(*arguments, cwd=cwd, script=script)
