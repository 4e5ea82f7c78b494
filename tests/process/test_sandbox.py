"""What a confined command tries in order to get out, through jp: as who runs the tests, and without privileges."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

import running
import sandboxes
import unprivileged
import without_bubblewrap
from forked import Started, run_jp, start_jp
from jp.conversation.entries import ToolCallResponse
from jp.process.sandbox.launcher import confined
from jp.process.sandbox.policy import Confinement
from mcp_connections import SERVER
from running import Result, home_beside
from stage import make_workspace, only_log
from terminal import jp_at_terminal

PATIENCE_SECS = 20.0


@pytest.fixture(params=[None, unprivileged.SCRIPT], ids=["as-started", "unprivileged"])
def script(request: pytest.FixtureRequest) -> Path | None:
    program = sandboxes.require_bubblewrap().program
    if request.param is not None and os.geteuid() == 0:
        probe = [program, "--unshare-all", "--ro-bind", "/", "/", "/bin/sh", "-c", ":"]
        tried = subprocess.run(probe, user=unprivileged.NOBODY, group=unprivileged.NOBODY, extra_groups=[], check=False)
        if tried.returncode != 0:
            pytest.skip("bubblewrap does not work for users without privileges")
    return request.param


@pytest.fixture
def place() -> Generator[Path]:
    """A directory that every user reaches."""
    directory = Path(tempfile.mkdtemp(prefix="jp-sandbox-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def root(place: Path) -> Path:
    workspace = make_workspace(place / "work")
    (workspace / ".git" / "hooks").mkdir(parents=True)
    return workspace


def command(root: Path, text: str, *flags: str, script: Path | None = None, **environment: str) -> Result:
    """What comes of `run_command` with this command, let run without asking."""
    if script == unprivileged.SCRIPT:
        unprivileged.give_to_nobody([root, home_beside(root)])
    arguments = ("--yes", "--hide-tools", "--arguments", json.dumps({"command": text}))
    return run_jp("tool", "run", "run_command", *arguments, *flags, cwd=root, env=environment, script=script)


ENVIRONMENTS = "cat /proc/$PPID/environ /proc/*/environ | tr '\\0' '\\n'; true"


def by_itself(root: Path, text: str, *, script: Path | None, **environment: str) -> Result:
    """The same in a process that is started with a secret in its environment, not forked."""
    if script == unprivileged.SCRIPT:
        unprivileged.give_to_nobody([root, home_beside(root)])
    return running.run_jp(
        *("tool", "run", "run_command", "--yes", "--hide-tools", "--arguments", json.dumps({"command": text})),
        cwd=root,
        env={"ANTHROPIC_API_KEY": "planted-secret", **environment},
        program=running.JP if script is None else (sys.executable, str(script)),
    )


def python(code: str) -> str:
    """A command that runs `code`, by a Python that every user may run."""
    return f"{_python()} -ISc '{code}'"


@cache
def _python() -> str:
    found = shutil.which("python3", path="/usr/bin:/bin")
    return found or sys.executable


def cfg(key: str, value: str) -> tuple[str, str]:
    return ("--cfg", f"conversation.tools.run_command.sandbox.{key}={value}")


# Files


def test_the_workspace_and_a_temporary_directory_can_be_changed(root: Path, script: Path | None) -> None:
    text = 'echo a > file && mkdir -p d/e && mv file d/e && echo b > "$TMPDIR/x" && cat d/e/file "$TMPDIR/x" && mktemp'
    done = command(root, text, script=script)

    assert (done.code, done.stderr) == (0, "")
    assert (root / "d" / "e" / "file").read_text(encoding="utf-8") == "a\n"
    place = done.stdout.splitlines()[-2]
    assert not Path(place).exists()


@pytest.mark.parametrize(
    "text",
    [
        "echo x > /usr/jp-escape",
        "mkdir /usr/jp-escape",
        "ln -s /usr u && echo x > u/jp-escape",
        "cd / && echo x > usr/jp-escape",
        "echo x > /proc/self/root/usr/jp-escape",
        "ln /etc/passwd passwd && echo x >> passwd",
        "chmod 777 /etc/passwd",
        "touch /etc/passwd",
        "mount -o remount,rw / && echo x > /usr/jp-escape",
        "umount -l /usr || unshare -Urm sh -c 'mount -o remount,rw /usr && echo x > /usr/jp-escape'",
        "mknod disk b 8 0 && head -c 1 disk",
    ],
)
def test_nothing_is_changed_outside(root: Path, script: Path | None, text: str) -> None:
    before = Path("/etc/passwd").stat()
    done = command(root, text, script=script)

    after = Path("/etc/passwd").stat()
    assert done.code == 1
    assert not Path("/usr/jp-escape").exists()
    assert (before.st_mode, before.st_mtime_ns, before.st_nlink) == (after.st_mode, after.st_mtime_ns, after.st_nlink)


@pytest.mark.parametrize(
    "text",
    [
        "echo x > .git/hooks/pre-commit",
        "echo x >> .jp/config.toml",
        "mv .git old",
        "rm -rf .jp",
        "mkdir -p .git/x",
        "ln -s .git g; echo x > g/config",
        'mv "$PWD" ../other',
        "umount .git; echo x > .git/config",
        "rm -f .jp/config.toml && cp /etc/passwd .jp/config.toml",
    ],
)
def test_what_decides_what_git_and_jp_run_is_not_changed(root: Path, script: Path | None, text: str) -> None:
    before = (root / ".jp" / "config.toml").read_bytes()
    done = command(root, text, script=script)

    assert done.code == 1
    assert (root / ".jp" / "config.toml").read_bytes() == before
    assert [path.name for path in (root / ".git").rglob("*")] == ["hooks"]


@pytest.mark.parametrize("text", ["mkdir .git", "echo 'gitdir: x' > .git", "ln -s x .git", "rm -rf .git; mkdir .git/x"])
def test_a_repository_is_not_planted_and_nothing_is_left_behind(place: Path, script: Path | None, text: str) -> None:
    root = make_workspace(place / "work")
    done = command(root, f"{text}; echo x > .git/config", script=script)

    assert done.code == 1
    assert sorted(path.name for path in root.iterdir()) == [".jp"]


def test_a_command_that_is_stopped_leaves_no_place_behind_that_was_held(place: Path) -> None:
    sandboxes.require_bubblewrap()
    root = make_workspace(place / "work")
    confinement = Confinement(mode="workspace-write", root=os.path.realpath(root))

    def stopped() -> None:
        with confined(("/bin/true",), {}, directory=str(root), confinement=confinement):
            (root / ".git").mkdir()  # as bubblewrap makes it to mount on
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert sorted(path.name for path in root.iterdir()) == [".jp"]


def test_a_place_that_is_held_is_not_taken_away_under_another_command(root: Path) -> None:
    sandboxes.require_bubblewrap()
    (root / ".git" / "hooks").rmdir()
    (root / ".git").rmdir()
    processes: list[Started] = []
    for number in (0, 1):
        os.mkfifo(root / f"begun{number}")
        os.mkfifo(root / f"go{number}")
        text = f"echo > begun{number}; read x < go{number}; echo x > .git/config"
        arguments = ("--yes", "--hide-tools", "--arguments", json.dumps({"command": text}))
        processes.append(start_jp("tool", "run", "run_command", *arguments, cwd=root))
        (root / f"begun{number}").read_bytes()
    said: list[bytes] = []
    for number, process in enumerate(processes):
        (root / f"go{number}").write_text("go\n", encoding="utf-8")
        said.append(process.communicate(PATIENCE_SECS)[0])

    assert [b"Read-only file system" in text for text in said] == [True, True]
    assert not (root / ".git").exists()


def test_in_a_home_directory_nothing_is_changed_and_no_secret_is_read(place: Path, script: Path | None) -> None:
    root = make_workspace(place / "home")
    secrets = (".ssh/id", ".aws/credentials", ".netrc", ".bash_history", ".config/gh/hosts.yml", "dotfiles/kube/config")
    for name in secrets:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("planted-secret", encoding="utf-8")
    (root / ".kube").symlink_to("dotfiles/kube")
    (root / "note").write_text("readable", encoding="utf-8")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(root / "agent.sock"))
    listening.listen()

    everything = f"cat {' '.join(secrets)} .kube/config; grep -r planted- .; cat note; echo x > new"
    done = command(root, everything, script=script, HOME=str(root))
    connect = python('import socket; socket.socket(socket.AF_UNIX).connect("agent.sock")')
    asked = command(root, connect, script=script, HOME=str(root))
    listening.close()

    assert "readable" in done.stdout
    assert "planted-secret" not in done.stdout
    assert done.code == 1
    assert not (root / "new").exists()
    assert "because the home directory lies in it" in done.stdout
    assert asked.code == 1
    assert "ConnectionRefused" in asked.stdout or "Permission" in asked.stdout


def test_what_jp_keeps_for_itself_is_not_read(root: Path, script: Path | None) -> None:
    for name in ("data", "config"):
        (root / name).mkdir()
    (root / "data" / "keys.json").write_text("planted-secret", encoding="utf-8")
    (root / "config" / "config.toml").write_text("", encoding="utf-8")
    places = {"JP_USER_DATA_DIR": str(root / "data"), "JP_GLOBAL_CONFIG_DIR": str(root / "config")}

    done = command(root, "cat data/keys.json; echo x > config/x; echo x > data/x; ls data", script=script, **places)

    assert "planted-secret" not in done.stdout
    assert not (root / "config" / "x").exists()
    assert not (root / "data" / "x").exists()


def test_a_further_directory_can_be_changed_where_the_user_says_so(root: Path, script: Path | None) -> None:
    other = root.parent / "other"
    other.mkdir(mode=0o777)
    other.chmod(0o777)
    done = command(root, "echo x > ../other/file", "--cfg", f"{cfg('writable', '../other')[1]}", script=script)

    assert done.code == 0
    assert (other / "file").exists()


def test_read_only_changes_nothing_but_a_temporary_directory(root: Path, script: Path | None) -> None:
    text = 'echo x > "$TMPDIR/x" && cat "$TMPDIR/x"; echo x > file'
    done = command(root, text, *cfg("mode", "read-only"), *cfg("network", "true"), script=script)

    assert "x\n" in done.stdout
    assert not (root / "file").exists()
    assert "it can change nothing; no network" in done.stdout


def test_off_confines_nothing(root: Path) -> None:
    done = command(root, "echo x > ../file", *cfg("mode", "off"))

    assert done.code == 0
    assert (root.parent / "file").exists()


def test_a_workspace_that_nobody_trusts_does_not_loosen_the_sandbox(place: Path) -> None:
    call = (
        '[[reply]]\nwhen = { contains = "go" }\n'
        'calls = [{ name = "run_command", arguments = { command = "echo x > ../file" } }]\n\n[[reply]]\ntext = "done"\n'
    )
    off = '[conversation.tools.run_command]\nenable = true\nsandbox.mode = "off"\n'
    root = make_workspace(place / "work", call, settings=off)
    done = run_jp("query", "--approve-all", "--tool=run_command", "go", cwd=root)

    assert (done.code, done.stdout) == (0, "done\n")
    assert "ignored until trusted: conversation.tools.run_command.sandbox.mode = 'off'" in done.stderr
    assert not (place / "file").exists()


# Processes


def test_the_environment_of_jp_is_out_of_reach(root: Path, script: Path | None) -> None:
    done = by_itself(root, ENVIRONMENTS, script=script)

    assert done.code == 0
    assert "HOME=" in done.stdout
    assert "planted-secret" not in done.stdout


def test_other_processes_are_out_of_reach(root: Path, script: Path | None) -> None:
    code = (
        "import ctypes, os\n"
        f"for pid in ({os.getpid()}, {os.getppid()}):\n"
        "    assert ctypes.CDLL(None).ptrace(16, pid, 0, 0) == -1\n"
        '    assert not os.path.exists(f"/proc/{pid}/mem")\n'
        "    try: os.kill(pid, 0)\n"
        "    except ProcessLookupError: pass\n"
        "    else: raise SystemExit(3)\n"
    )
    done = command(root, python(code), script=script)

    assert done.code == 0, done


@contextmanager
def held_open(fifo: Path) -> Generator[int]:
    """The reading end of a new pipe, which is at its end once nobody holds the other one any more."""
    os.mkfifo(fifo)
    descriptor = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    yield descriptor
    os.close(descriptor)


def rest_of(descriptor: int) -> bytes:
    """What comes until nobody holds the pipe any more; fails where somebody goes on to."""
    said = b""
    while True:
        assert select.select([descriptor], [], [], PATIENCE_SECS)[0], "somebody still holds it"
        chunk = os.read(descriptor, 100)
        if not chunk:
            return said
        said += chunk


ESCAPING = (
    "setsid sh -c 'exec 3> alive; printf x >&3; (setsid sleep 1000 &) ; sleep 1000' > /dev/null 2>&1 < /dev/null &"
)


def test_what_a_command_leaves_behind_ends_with_it(root: Path, script: Path | None) -> None:
    with held_open(root / "alive") as descriptor:
        done = command(root, f"{ESCAPING} sleep 0.2", script=script)

        assert done.code == 0
        rest_of(descriptor)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_command_has_started_ends_with_jp(root: Path, number: int) -> None:
    sandboxes.require_bubblewrap()
    arguments = ("--yes", "--hide-tools", "--arguments", json.dumps({"command": f"{ESCAPING} sleep 1000"}))
    with held_open(root / "alive") as descriptor:
        process = start_jp("tool", "run", "run_command", *arguments, cwd=root)
        assert select.select([descriptor], [], [], PATIENCE_SECS)[0]
        process.send_signal(number)
        process.communicate(PATIENCE_SECS)

        assert rest_of(descriptor) == b"x"


# The network


@pytest.mark.parametrize("network", [False, True])
def test_the_network_is_there_only_where_it_is_allowed(root: Path, script: Path | None, *, network: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(0)
        code = (
            "import socket\n"
            f'socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {udp.getsockname()[1]}))\n'
            f'socket.create_connection(("127.0.0.1", {tcp.getsockname()[1]})).close()\n'
        )
        done = command(root, python(code), *cfg("network", str(network).lower()), script=script)
        arrived = bool(select.select([udp], [], [], 0)[0])

    assert (done.code == 0, arrived) == (network, network), done
    assert ("no network" in done.stdout) is not network


def test_without_the_network_abstract_sockets_are_out_of_reach(root: Path, script: Path | None) -> None:
    name = f"jp-{os.getpid()}-{root.name}-{script is None}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        code = f'import socket; socket.socket(socket.AF_UNIX).connect("\\0{name}")'
        done = command(root, python(code), script=script)

    assert done.code == 1
    assert "ConnectionRefused" in done.stdout


def test_who_was_not_asked_gives_no_network(root: Path) -> None:
    sandboxes.require_bubblewrap()
    scenario = make_workspace(
        root.parent / "asked",
        '[[reply]]\nwhen = { contains = "go" }\n'
        'calls = [{ name = "run_command", arguments = { command = "cat /proc/net/dev" } }]\n\n'
        '[[reply]]\ntext = "done"\n',
    )
    run_jp("query", "--tool=run_command", "--approve", "run_command", "go", cwd=scenario)
    (response,) = [entry for entry in only_log(scenario) if isinstance(entry, ToolCallResponse)]

    with jp_at_terminal("query", "--new", "--tool=run_command", "go", cwd=root.parent / "asked") as terminal:
        terminal.question(
            r"sandbox: it can change files only in the workspace, (.|\n)*; *\n?it can use the network\nRun run_command"
        )
        terminal.type("y\n")
        assert terminal.finish() == 0

    assert re.findall(r"(\S+): ", str(response.content)) == ["lo"]


# What is said


def test_a_denied_write_reads_as_such_and_the_person_hears_which_setting_allows_it(root: Path) -> None:
    sandboxes.require_bubblewrap()
    arguments = ("--arguments", json.dumps({"command": "echo x > /usr/x"}))
    written = run_jp("tool", "run", "run_command", "--yes", *arguments, cwd=root)
    arguments = ("--arguments", json.dumps({"command": "false"}))
    failed = run_jp("tool", "run", "run_command", "--yes", *arguments, cwd=root)
    arguments = ("--arguments", json.dumps({"command": "echo 'Could not resolve host: x' >&2 | true"}))
    piped = run_jp("tool", "run", "run_command", "--yes", *arguments, cwd=root)

    assert "The sandbox may be the reason: this ran in a sandbox, where it can change files only" in written.stdout
    assert "`conversation.tools.run_command.sandbox.writable` allows more directories" in written.stderr
    assert "sandbox" not in failed.stdout + failed.stderr
    assert "The sandbox may be the reason" in piped.stdout
    assert "`conversation.tools.run_command.sandbox.network=true` allows it" in piped.stderr


def test_what_is_in_force_is_shown(root: Path) -> None:
    shown = run_jp("tool", "show", "run_command", cwd=root)
    off = run_jp("tool", "show", "run_command", *cfg("mode", "off"), cwd=root)
    in_file = run_jp("tool", "show", "fs_read_file", cwd=root)

    said = sandboxes.limits(network=True).text.removeprefix("sandbox: ")
    assert f"sandbox       {said}" in shown.stdout
    assert "sandbox       not confined: the configuration turns the sandbox off  (--cfg " in off.stdout
    assert "sandbox" not in in_file.stdout


def test_a_sandbox_for_a_tool_that_starts_nothing_is_an_error(root: Path) -> None:
    setting = "conversation.tools.fs_read_file.sandbox.mode=read-only"
    asked = run_jp("query", "--cfg", setting, "hello", cwd=root)
    by_hand = run_jp("tool", "run", "fs_read_file", "--yes", "-a", '{"path": "x"}', "--cfg", setting, cwd=root)

    for result in (asked, by_hand):
        assert result.code == 3
        assert "the tool 'fs_read_file' acts in jp's own process, where no sandbox confines it" in result.stderr


@pytest.mark.parametrize("landlock", ["0", "1"])
def test_where_there_is_no_bubblewrap_the_question_says_so(root: Path, landlock: str) -> None:
    sandboxes.require_landlock()
    environment = {"JP_TEST_LANDLOCK": landlock}
    shown = run_jp("tool", "show", "run_command", cwd=root, env=environment, script=without_bubblewrap.SCRIPT)
    listed = run_jp("tool", "ls", cwd=root, env=environment, script=without_bubblewrap.SCRIPT)
    required = command(
        root, "echo x > made", *cfg("required", "true"), script=without_bubblewrap.SCRIPT, JP_TEST_LANDLOCK=landlock
    )
    ran = command(root, "echo x > made", script=without_bubblewrap.SCRIPT, JP_TEST_LANDLOCK=landlock)

    said = "not held (bwrap is not installed): '.git' and '.jp'" if landlock == "1" else "not confined: bwrap is not"
    assert said in shown.stdout
    row = next(line for line in listed.stdout.splitlines() if line.startswith("run_command")).split()
    assert row[4] == ("partly" if landlock == "1" else "none")
    assert required.code == 1
    assert "it must not run unless it is confined, and it cannot be: bwrap is not installed" in required.stdout
    assert ran.code == 0
    held = said.partition(":")[0] if landlock == "1" else said
    assert "note: 'run_command' ran: " in ran.stderr
    assert held in ran.stderr


def test_what_landlock_does_not_hold_is_not_said_to_be_held(root: Path) -> None:
    sandboxes.require_landlock()
    text = "echo x > .git/hooks/pre-commit; echo x > /usr/jp-escape"
    done = command(root, text, script=without_bubblewrap.SCRIPT)

    assert done.code == 1
    assert "without '.git'" not in done.stdout + done.stderr
    assert "it can change files only in the workspace; no network; not held" in done.stderr


def test_a_bubblewrap_of_the_workspace_is_not_used_and_one_that_fails_neither(root: Path) -> None:
    mechanism = sandboxes.require_bubblewrap()
    programs = root / "bin"
    programs.mkdir()
    elsewhere = root.parent / "bin"
    elsewhere.mkdir()
    for place, text in ((programs, f"touch {root}/used"), (elsewhere, "echo 'setting up uid map: denied' >&2; exit 1")):
        (place / "bwrap").write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (place / "bwrap").chmod(0o755)
    path = f"{programs}:bin:{elsewhere}:{Path(mechanism.program).parent}:{os.environ['PATH']}"
    done = command(root, "echo x > /usr/jp-escape", PATH=path)

    assert done.code == 1
    assert "Read-only file system" in done.stdout
    assert not (root / "used").exists()


# Landlock


def test_landlock_holds_what_an_allow_list_can(root: Path) -> None:
    sandboxes.require_landlock()
    home = home_beside(root)
    (root.parent / "other").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        connect = python(f'import socket; socket.create_connection(("127.0.0.1", {tcp.getsockname()[1]}))')
        text = (
            'echo in > file && echo t > "$TMPDIR/t" && cat file "$TMPDIR/t"; echo x > ../other/x; '
            f"{connect}; ln /etc/passwd p; rm -f file && test ! -e file && echo gone"
        )
        done = command(root, text, script=without_bubblewrap.SCRIPT)

    assert "in\nt\ngone\n" in done.stdout
    assert "PermissionError" in done.stdout
    assert list((root.parent / "other").iterdir()) == []
    assert not (root / "p").exists()
    assert [path.name for path in home.glob("jp-*")] == []


def test_landlock_hides_secrets_and_the_environment_of_jp(place: Path) -> None:
    sandboxes.require_landlock()
    root = make_workspace(place / "home")
    (root / ".ssh").mkdir()
    (root / ".ssh" / "id").write_text("planted-secret", encoding="utf-8")
    (root / "link").symlink_to(".ssh/id")
    (root / "note").write_text("readable", encoding="utf-8")
    text = f"cat .ssh/id link note; echo x > new; {ENVIRONMENTS}"
    done = by_itself(root, text, script=without_bubblewrap.SCRIPT, HOME=str(root))

    assert "readable" in done.stdout
    assert "HOME=" in done.stdout
    assert "planted-secret" not in done.stdout
    assert not (root / "new").exists()


# MCP servers


ECHO = ("tool", "run", "said", "--yes", "--hide-tools", "-a", '{"text": "hello"}')


def with_server(root: Path, declared: str) -> None:
    """Have the user declare a server, which lies in the workspace, and one of its tools."""
    (root / "server.py").write_bytes(Path(SERVER).read_bytes())
    words = f'command = "{_python()}"\narguments = ["-S", "-I", "server.py"]\nenvironment.MCP_TRACE = "{root}/trace"\n'
    directory = home_beside(root) / "config"
    directory.mkdir(exist_ok=True)
    text = f"[providers.mcp.demo]\n{'' if 'url' in declared else words}{declared}\n"
    (directory / "config.toml").write_text(
        f'{text}[conversation.tools.said]\nsource = "mcp.demo.echo"\n', encoding="utf-8"
    )


def test_a_server_is_confined_where_the_user_says_so(root: Path) -> None:
    sandboxes.require_bubblewrap()
    with_server(root, 'sandbox.mode = "workspace-write"')
    allowed = run_jp(*ECHO, cwd=root)
    shown = run_jp("tool", "show", "said", cwd=root)
    (root / "trace").unlink()
    with_server(root, 'sandbox.mode = "read-only"')
    run_jp(*ECHO, cwd=root)

    assert (allowed.code, allowed.stdout) == (0, "hello\n")
    assert "sandbox       it can change files only in the workspace" in shown.stdout
    assert not (root / "trace").exists()


def test_a_server_that_must_be_confined_does_not_start_where_nothing_confines_it(root: Path) -> None:
    nothing = {"JP_TEST_LANDLOCK": "0"}
    with_server(root, 'sandbox = { mode = "read-only", required = true }')
    refused = run_jp(*ECHO, cwd=root, script=without_bubblewrap.SCRIPT, env=nothing)
    has_started = (root / "trace").exists()
    with_server(root, 'sandbox = { mode = "read-only" }')
    noted = run_jp(*ECHO, cwd=root, script=without_bubblewrap.SCRIPT, env=nothing)

    assert refused.code == 1
    assert "it must not run unless it is confined, and it cannot be: bwrap is not installed" in refused.stderr
    assert not has_started
    assert (noted.code, noted.stdout) == (0, "hello\n")
    assert "the MCP server 'demo': not confined: bwrap is not installed" in noted.stderr


def test_a_server_at_an_address_has_no_sandbox(root: Path) -> None:
    with_server(root, 'url = "http://127.0.0.1:9"\nsandbox.mode = "read-only"')
    done = run_jp(*ECHO, cwd=root)

    assert "the MCP server 'demo' is at an address, where no sandbox confines it" in done.stderr
