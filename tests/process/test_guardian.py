"""Nothing that jp has started outlives it, however jp ends and however the program tries to stay."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType

import pytest

from forked import start_jp
from mcp_connections import PATIENCE, SERVER
from privileges import bound_by_permissions
from running import home_beside, run_jp
from stage import make_workspace
from terminal import CTRL_C, jp_at_terminal

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("setsid") is None, reason="only Linux finds who has left its session"
)

STAYING = "exec sleep 1000"
WAYS = {
    "a child that ignores its input": f"sh -c 'echo x >&9; {STAYING}' &",
    "a session of its own": f"setsid sh -c 'echo x >&9; {STAYING}' &",
    "a double fork": f"(setsid sh -c 'sh -c \"echo x >&9; {STAYING}\" &' &)",
    "nohup": f"nohup sh -c 'echo x >&9; {STAYING}' &",
    "ignored signals": "sh -c 'trap \"\" TERM HUP INT QUIT; echo x >&9; while :; do sleep 9; done' &",
    "an empty environment": f"env -i setsid -f /bin/sh -c 'echo x >&9; {STAYING}'",
    "generations": f'setsid sh -c \'setsid sh -c "setsid sh -c \\"echo x >&9; {STAYING}\\" & wait" & wait\' &',
}
STARTS = "\n".join(f"{{ {way}\n}} >/dev/null 2>&1" for way in WAYS.values())
LEAVE = f"exec 9>alive\n{STARTS}\nread line <go\n"

SETTINGS = """
[conversation.tools.run_command]
enable = true
run = "unattended"
[conversation.tools.own]
enable = true
run = "unattended"
command = "sh leave.sh"
"""
UNCONFINED = f'{SETTINGS}[conversation.tools.run_command.sandbox]\nmode = "off"\n'
SERVER_SETTINGS = f"""
[providers.mcp.notes]
command = "/bin/sh"
arguments = ["-c", ". ./leave.sh; exec {sys.executable} -S -I {SERVER}"]
[conversation.tools.notes]
source = "mcp.notes.*"
enable = true
"""
CALL = """
[[reply]]
when = {{ contains = "go" }}
times = 1
calls = [{{ name = "{name}", arguments = {arguments} }}]
[[reply]]
text = "Done."
"""
SOURCES = {
    "a confined command": (SETTINGS, CALL.format(name="run_command", arguments='{ command = "exec sh leave.sh" }'), ()),
    "run_command": (UNCONFINED, CALL.format(name="run_command", arguments='{ command = "exec sh leave.sh" }'), ()),
    "a local tool": (SETTINGS, CALL.format(name="own", arguments="{}"), ()),
    "an MCP server": (SERVER_SETTINGS, '[[reply]]\ntext = "Done."\n', ()),
    "an attachment": ("", '[[reply]]\ntext = "Done."\n', ("-a", "cmd:sh leave.sh")),
}


class Watch(AbstractContextManager["Watch"]):
    """Two pipes in a workspace: every descendant holds one of them open, and the other one lets the program end."""

    def __init__(self, root: Path) -> None:
        (root / "leave.sh").write_text(LEAVE, encoding="utf-8")
        self._open = ExitStack()
        for name in ("alive", "go"):
            os.mkfifo(root / name)
        self._alive = os.open(root / "alive", os.O_RDONLY | os.O_NONBLOCK)
        self._holder = os.open(root / "alive", os.O_WRONLY)  # until all are there, it must not end
        self._go = os.open(root / "go", os.O_RDWR)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._alive)
        os.close(self._go)

    def wait_for_all(self) -> None:
        """Wait until each of them runs."""
        said = b""
        while len(said) < 2 * len(WAYS):
            said += self._read()
        os.close(self._holder)

    def let_end(self) -> None:
        os.write(self._go, b"\n")

    def wait_for_none(self) -> None:
        """Wait until the last one is gone."""
        assert self._read() == b""

    def _read(self) -> bytes:
        assert select.select([self._alive], [], [], PATIENCE)[0], "they are still there"
        return os.read(self._alive, 100)


def stage(root: Path, source: str) -> tuple[str, ...]:
    """A workspace for a source of programs; the words of the command line."""
    settings, scenario, words = SOURCES[source]
    make_workspace(root, scenario)
    configuration = home_beside(root) / "config" / "config.toml"
    configuration.parent.mkdir(exist_ok=True)
    configuration.write_text(settings, encoding="utf-8")
    return ("query", *words, "go")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, None])
def test_nothing_is_left_of_what_jp_has_started(source: str, number: signal.Signals | None, tmp_path: Path) -> None:
    words = stage(tmp_path / "work", source)

    with Watch(tmp_path / "work") as watch:
        jp = start_jp(*words, cwd=tmp_path / "work")
        jp.stdin.close()
        watch.wait_for_all()
        if number is None:
            watch.let_end()
        else:
            jp.send_signal(number)
        watch.wait_for_none()
        jp.communicate()

    assert jp.returncode == {None: 0, signal.SIGKILL: -9, signal.SIGTERM: 143}[number]


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_is_left_after_ctrl_c(source: str, tmp_path: Path) -> None:
    words = stage(tmp_path / "work", source)

    with Watch(tmp_path / "work") as watch, jp_at_terminal(*words, cwd=tmp_path / "work") as terminal:
        watch.wait_for_all()
        terminal.type(CTRL_C)
        if source not in {"an MCP server", "an attachment"}:  # the first one asks what is to become of the turn
            terminal.expect(r"continue \(c\)")
            terminal.type("s\n")
        watch.wait_for_none()
        assert terminal.finish() == 130


SPY = """
for place in environ mem maps; do
  up=$$
  while [ $up -gt 1 ]; do
    up=$(sed -n "s/^PPid:\t//p" /proc/$up/status)
    grep -aq jp-spied-0123 /proc/$up/$place 2>/dev/null && echo "found in $place of $up"
  done
done
head -c1 /proc/$PPID/environ >/dev/null || echo "environment closed"
head -c1 /proc/$PPID/maps >/dev/null || echo "memory closed"
tr '\\0' '\\n' </proc/$$/environ | grep jp-spied
exit 0
"""


@pytest.mark.parametrize("source", [source for source in SOURCES if source != "a confined command"])
def test_no_program_can_read_the_environment_and_the_memory_of_jp(source: str, tmp_path: Path) -> None:
    root = tmp_path / "work"
    words = stage(root, source)
    (root / "leave.sh").write_text(f"({SPY}) >spied 2>&1\n", encoding="utf-8")
    program = (sys.executable, str(bound_by_permissions()))

    done = run_jp(*words, cwd=root, env={"JP_SPIED": "jp-spied-0123"}, program=program)

    assert done.code == 0, done
    spied = (root / "spied").read_text(encoding="utf-8").splitlines()
    assert [line for line in spied if "Permission denied" not in line] == ["environment closed", "memory closed"]
