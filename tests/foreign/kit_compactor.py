"""jp as a compactor of compaction-conformance-kit, whose interpreter runs this; jp is run as a command.

The first round asks the kit's session turn by turn. Every round compacts that conversation and gives what the model is
shown of it: the log keeps what left, so that no round reads the output of the one before it.
"""

# Only that environment has the kit, and its types are not ours.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Protocol

from compaction_kit.compacted import CompactedContext

JP = os.environ["JP_KIT_COMMAND"]
OPTIONS = os.environ["JP_KIT_OPTIONS"].split()


class Turn(Protocol):
    """A message of the kit."""

    role: str
    text: str


class JpCompactor:
    """A workspace with one conversation."""

    name = "jp"

    def __init__(self) -> None:
        self.home = Path(mkdtemp(prefix="jp-kit-"))
        self.scenario = self.home / ".jp" / "scenarios" / "kit.toml"
        self.environ = {**os.environ, "HOME": str(self.home), "XDG_DATA_HOME": str(self.home / "data")}
        self.jp("init", ".", "--model", "script/kit")
        self.scenario.parent.mkdir(exist_ok=True)

    def compact(self, turns: Sequence[Turn], round_num: int = 1) -> CompactedContext:
        """Compact once, and return the view."""
        if round_num == 1:
            self.ask(turns)
        self.jp("conversation", "compact", *OPTIONS, "last", statuses=(0, 12))
        view = self.jp("conversation", "print", "--compacted", "--full", "last")
        return CompactedContext(text=view, compactor_name=self.name, round_num=round_num)

    def ask(self, turns: Sequence[Turn]) -> None:
        """Ask whatever is not the assistant's; the model answers what the assistant said next."""
        asked: list[str] = []
        target = "--new"
        for number, turn in enumerate(turns):
            if turn.role != "assistant":
                asked.append(turn.text)
            if turn.role == "assistant" or number == len(turns) - 1:
                answer = turn.text if turn.role == "assistant" else "Noted."
                self.scenario.write_text(f"[[reply]]\ntext = '''{answer}'''\n", encoding="utf-8")
                self.jp("query", target, "\n".join(asked) or "Go on.")
                asked, target = [], "--id=last"

    def jp(self, *arguments: str, statuses: Sequence[int] = (0,)) -> str:
        """Run jp in the workspace and return its output."""
        done = subprocess.run(
            [JP, *arguments],
            cwd=self.home,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode not in statuses:
            raise RuntimeError(f"jp {' '.join(arguments)}: {done.stderr.decode()}")
        return done.stdout.decode()
