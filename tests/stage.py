"""A workspace for commands under test: the `script` provider, a scenario, and ways to look at what was stored."""

from __future__ import annotations

import shutil
from pathlib import Path

from jp.conversation.entries import AnyEntry, decode
from running import home_beside

ECHO = """
[[reply]]
text = "You said: {{user}}"
"""


def make_workspace(root: Path, scenario: str = ECHO, *, settings: str = "") -> Path:
    """A workspace at `root` whose model plays `scenario`; `settings` is more TOML for its configuration."""
    scenarios = root / ".jp" / "scenarios"
    scenarios.mkdir(parents=True)
    (scenarios / "test.toml").write_text(scenario, encoding="utf-8")
    config = f'[assistant.model]\nid = "script/test"\n{settings}\n'
    (root / ".jp" / "config.toml").write_text(config, encoding="utf-8")
    return root


def copied(prepared: Path, root: Path) -> Path:
    """A copy at `root` of a workspace, with what its user has outside of it: one that many tests begin with.

    What names it by its absolute path, as an attached file does, still names `prepared`.
    """
    shutil.copytree(home_beside(prepared), home_beside(root), dirs_exist_ok=True)
    return shutil.copytree(prepared, root)


def logs(root: Path) -> list[Path]:
    """The logs of the workspace's conversations, oldest first."""
    return sorted((root / ".jp" / "conversations").glob("*/events.jsonl"))


def entries_of(log: Path) -> list[AnyEntry]:
    """The entries of a log, as they are stored."""
    return [decode(line) for line in log.read_bytes().splitlines()]


def only_log(root: Path) -> list[AnyEntry]:
    """The entries of the workspace's only conversation."""
    found = logs(root)
    assert len(found) == 1
    return entries_of(found[0])
