"""A workspace for commands under test: the `script` provider, a scenario, and ways to look at what was stored."""

from __future__ import annotations

from pathlib import Path

from jp.conversation.codec import decode
from jp.conversation.entries import AnyEntry

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
