from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile

import msgspec
import pytest

import forked
from jp import __version__
from running import JP, Result, home_beside, isolated_environment, run_jp
from stage import make_workspace
from terminal import jp_at_terminal
from trial import TRIAL

SHELL = ("/bin/sh", "-c")
TRIAL_SCRIPT = Path(TRIAL[1])


def through_shell(redirection: str, *command: str) -> tuple[str, ...]:
    """A program that runs `command` with its streams as a shell redirects them."""
    return (*SHELL, f'exec "$@" {redirection}', "sh", *command)


def started_trial(*arguments: str, cwd: Path, stdin: int = -1, stdout: int = -1, stderr: int = -1) -> forked.Forked:
    """The trial where these descriptors are its streams; without one, what is said leads nowhere."""
    with Path(os.devnull).open("r+b") as nothing:
        streams = [nothing.fileno() if stream < 0 else stream for stream in (stdin, stdout, stderr)]
        environment = isolated_environment(home_beside(cwd))
        return forked.Forked(forked.fork(*arguments, cwd=cwd, env=environment, streams=streams, script=TRIAL_SCRIPT))


def run_trial(*arguments: str, cwd: Path, stdin: int = -1, stdout: int = -1) -> Result:
    """What came of it; what goes to a descriptor `stdout` is not looked at."""
    with TemporaryFile() as out, TemporaryFile() as err:
        there = out.fileno() if stdout < 0 else stdout
        code = started_trial(*arguments, cwd=cwd, stdin=stdin, stdout=there, stderr=err.fileno()).wait()
        out.seek(0)
        err.seek(0)
        return Result(code, out.read().decode(), err.read().decode())


def read_line(process: forked.Started) -> str:
    return process.stdout.readline().decode()


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["--version", "-q"]])
def test_the_version(arguments: list[str], tmp_path: Path) -> None:
    assert forked.run_jp(*arguments, cwd=tmp_path) == (0, f"jp {__version__}\n", "")


def test_the_installed_script_and_the_module_are_the_same_program() -> None:
    script = (str(Path(sys.executable).with_name("jp")),)

    assert run_jp("--help", program=script) == run_jp("--help")


def test_a_script_beside_the_command_is_not_taken_for_the_package(tmp_path: Path) -> None:
    (tmp_path / "jp.py").write_text("raise SystemExit('another program')", encoding="utf-8")
    script = tmp_path / "jp"
    script.write_bytes(Path(sys.executable).with_name("jp").read_bytes())

    assert run_jp("--version", program=(sys.executable, str(script))) == (0, f"jp {__version__}\n", "")


def test_help_fits_any_terminal_and_the_newcomer(tmp_path: Path) -> None:
    result = forked.run_jp("--help", env={"COLUMNS": "40"}, cwd=tmp_path)

    assert (result.code, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert 'jp query "' in result.stdout


def test_an_unknown_command_names_the_nearest(tmp_path: Path) -> None:
    assert forked.run_jp("qurey", "hi", cwd=tmp_path) == (
        2,
        "",
        "error: jp has no command 'qurey'\nhint: did you mean 'jp query'? jp --help lists the commands\n",
    )


def test_an_error_is_json_where_json_is_wanted(tmp_path: Path) -> None:
    result = forked.run_jp("qurey", "--format", "json", cwd=tmp_path)

    assert (result.code, result.stdout) == (2, "")
    assert msgspec.json.decode(result.stderr) == {
        "schema": 1,
        "error": {
            "kind": "usage",
            "message": "jp has no command 'qurey'",
            "hint": "did you mean 'jp query'? jp --help lists the commands",
            "exit_code": 2,
        },
    }


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def test_another_command_is_an_executable_on_the_path(tmp_path: Path) -> None:
    executable(tmp_path / "bin" / "jp-other", '#!/bin/sh\nprintf "<%s>" "$@"\ncat\nexit 42\n')
    search_path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"

    result = forked.run_jp(
        "-q", "other", "a b", "--help", "--", "-x", env={"PATH": search_path}, stdin="piped", cwd=tmp_path
    )

    assert result == (42, "<-q><a b><--help><--><-x>piped", "")


def test_another_command_dies_of_a_broken_pipe_as_usual(tmp_path: Path) -> None:
    executable(tmp_path / "bin" / "jp-other", "#!/bin/sh\nexec yes\n")
    search_path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    process = forked.start_jp("other", cwd=tmp_path, env={"PATH": search_path})
    read_line(process)
    process.stdout.close()
    process.communicate()

    assert process.returncode == -signal.SIGPIPE


@pytest.mark.parametrize("name", ["query", "q", "conversation", "config"])
def test_a_command_of_jp_is_never_shadowed(name: str, tmp_path: Path) -> None:
    executable(tmp_path / "bin" / f"jp-{name}", "#!/bin/sh\necho shadow\n")
    search_path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"

    assert "shadow" not in forked.run_jp(name, "--help", env={"PATH": search_path}, cwd=tmp_path).stdout


def test_another_command_is_not_looked_for_below_a_group(tmp_path: Path) -> None:
    executable(tmp_path / "bin" / "jp-other", "#!/bin/sh\necho shadow\n")
    search_path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"

    assert forked.run_jp("config", "other", env={"PATH": search_path}, cwd=tmp_path).code == 2


def test_a_reader_that_leaves_ends_the_run_silently(tmp_path: Path) -> None:
    process = forked.start_jp("flood", cwd=tmp_path, script=TRIAL_SCRIPT)
    read_line(process)
    process.stdout.close()
    _, said = process.communicate()

    assert (process.returncode, said) == (141, b"")


def test_a_slow_reader_loses_nothing_where_stdout_came_non_blocking(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    out, err = os.pipe()
    process = started_trial("flood", cwd=tmp_path, stdout=writer, stderr=err)
    os.close(err)
    while process.poll() is None and select.select([], [writer], [], 0)[1]:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.01)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        content = stream.read(500_000)
    with os.fdopen(out, "rb") as stream:
        said = stream.read()
    process.wait()

    assert content == b"more\n" * 100_000
    assert (process.returncode, said) == (141, b"")


def test_a_reader_that_left_before_help_ends_the_run_silently(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "jp", "--help"],
        cwd=tmp_path,
        env=isolated_environment(home_beside(tmp_path)),
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)

    assert (done.returncode, done.stderr) == (141, b"")


def test_a_connection_that_breaks_elsewhere_is_an_error(tmp_path: Path) -> None:
    result = forked.run_jp("fail", "elsewhere", script=TRIAL_SCRIPT, cwd=tmp_path)

    assert (result.code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: Broken pipe\n")


ROOM = "hint: look where the output goes: there has to be room\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["show", "a", "-q"]])
def test_a_full_disk_under_stdout_is_an_error(arguments: list[str], tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        result = run_trial(*arguments, cwd=tmp_path, stdout=full.fileno())

    assert result == (1, "", f"error: cannot write to stdout: No space left on device\n{ROOM}")


@pytest.mark.parametrize(
    ("program", "arguments"), [(JP, ["--help"]), (JP, ["--version"]), (TRIAL, ["show", "a", "-q"])]
)
def test_a_closed_stdout_is_an_error(program: tuple[str, ...], arguments: list[str]) -> None:
    result = run_jp(*arguments, program=through_shell(">&-", *program))

    assert result == (1, "", f"error: cannot write to stdout: Bad file descriptor\n{ROOM}")


def test_a_failure_has_its_own_code_where_stdout_is_closed_too() -> None:
    assert run_jp("fail", "told", program=through_shell(">&-", *TRIAL)).code == 4


def test_a_closed_stderr_swallows_what_is_said() -> None:
    result = run_jp("show", "a", program=through_shell("2>&-", *TRIAL))

    assert (result.code, result.stderr) == (0, "")
    assert result.stdout.startswith("targets=['a']")


def test_secrets_and_control_sequences_of_an_error_are_not_shown(tmp_path: Path) -> None:
    result = forked.run_jp("fail", "secret", script=TRIAL_SCRIPT, env={"TRIAL_API_KEY": "sk-0123456789"}, cwd=tmp_path)

    assert result == (4, "", "error: the key '***' is wrong\n")


def test_a_traceback_keeps_secrets_too(tmp_path: Path) -> None:
    given = {"TRIAL_API_KEY": "sk-0123456789"}
    result = forked.run_jp("fail", "secret", "-vv", script=TRIAL_SCRIPT, env=given, cwd=tmp_path)

    assert "Traceback" in result.stderr
    assert "sk-0123456789" not in result.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
@pytest.mark.parametrize("way", ["work", "sync"])
def test_a_signal_stops_and_keeps_what_came(way: str, number: int, code: int, tmp_path: Path) -> None:
    process = forked.start_jp("wait", way, cwd=tmp_path, script=TRIAL_SCRIPT)
    assert read_line(process) == "working\n"
    process.send_signal(number)
    out, err = process.communicate()

    assert (process.returncode, out, err) == (code, b"kept\n", b"")


INTERRUPTED_EARLY = """
import os
import sys

class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), 2)
            except KeyboardInterrupt:
                sys.exit("an exception was raised")

sys.meta_path.insert(0, Interrupter())
import jp.__main__
if not {module!r}:
    os.kill(os.getpid(), 2)
jp.__main__.main()
"""


@pytest.mark.parametrize("module", ["", "jp.cli.app", "jp.cli.terminal.exit"])
def test_a_ctrl_c_while_jp_is_being_loaded_ends_it_without_an_exception(module: str) -> None:
    program = (sys.executable, "-c", INTERRUPTED_EARLY.format(module=module))

    assert run_jp("conversation", "ls", program=program) == (130, "", "")


def test_a_ctrl_c_that_the_caller_ignores_is_ignored_from_the_start() -> None:
    ignored = (*SHELL, "trap '' INT; exec \"$@\"", "sh", sys.executable, "-c", INTERRUPTED_EARLY.format(module=""))

    result = run_jp("conversation", "--help", program=ignored)

    assert (result.code, result.stderr) == (0, "")


def test_a_second_ctrl_c_ends_a_teardown_that_hangs(tmp_path: Path) -> None:
    process = forked.start_jp("wait", "work", "--stuck", cwd=tmp_path, script=TRIAL_SCRIPT)
    assert read_line(process) == "working\n"
    process.send_signal(signal.SIGINT)
    assert read_line(process) == "kept\n"
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.05)

    assert process.returncode == 130
    process.communicate()


IGNORES_HANG_UPS = """
import runpy, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_a_hang_up_that_the_caller_ignores_is_ignored(tmp_path: Path) -> None:
    caller = tmp_path / "caller.py"
    caller.write_text(IGNORES_HANG_UPS, encoding="utf-8")
    process = forked.start_jp(TRIAL[1], "wait", "work", cwd=tmp_path, script=caller)
    assert read_line(process) == "working\n"
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    process.communicate()

    assert process.returncode == 130


def test_a_deadline_stops_and_keeps_what_came(tmp_path: Path) -> None:
    assert forked.run_jp("wait", "work", "--timeout", "0.01", script=TRIAL_SCRIPT, cwd=tmp_path) == (
        124,
        "working\nkept\n",
        "",
    )


@pytest.mark.parametrize(("piped", "said"), [("text\n", "pipe: PipedText(text='text'"), ("", "pipe: None")])
def test_stdin_is_read_where_somebody_pipes_into_it(piped: str, said: str, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as stream:
        stream.write(piped.encode())
    result = run_trial("read", cwd=tmp_path, stdin=reader)
    os.close(reader)

    assert (result.code, result.stderr) == (0, "")
    assert result.stdout.startswith(said)


@pytest.mark.parametrize(("name", "said"), [(os.devnull, "none: None"), ("file", "file: PipedText(text='of a file'")])
def test_a_file_is_read_but_not_the_one_without_content(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of a file\n", encoding="utf-8")
    with (tmp_path / name).open("rb") as file:
        result = run_trial("read", cwd=tmp_path, stdin=file.fileno())

    assert (result.code, result.stderr) == (0, "")
    assert result.stdout.startswith(said)


def test_a_closed_stdin_is_none() -> None:
    assert run_jp("read", program=through_shell("<&-", *TRIAL)) == (0, "none: None\n", "")


def test_stdin_can_be_left_alone(tmp_path: Path) -> None:
    assert forked.run_jp("read", "--no-stdin", script=TRIAL_SCRIPT, stdin="text", cwd=tmp_path) == (
        0,
        "none: None\n",
        "",
    )


def read_terminal(descriptor: int) -> str:
    """Everything that is written to a terminal until its last user has left, which Linux reports as an error."""
    content = b""
    while True:
        try:
            piece = os.read(descriptor, 4096)
        except OSError:
            piece = b""
        if not piece:
            return content.decode()
        content += piece


def test_a_terminal_is_not_read(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    result = run_trial("read", cwd=tmp_path, stdin=theirs)
    os.close(ours)
    os.close(theirs)

    assert result == (0, "none: None\n", "")


def test_a_terminal_gets_the_pretty_format(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = started_trial("show", "a", cwd=tmp_path, stdout=theirs)
    os.close(theirs)
    shown = read_terminal(ours)
    process.wait()
    os.close(ours)

    assert "format='pretty'" in shown


def test_text_is_utf_8_in_any_locale() -> None:
    result = run_jp("show", "caf\u00e9", program=TRIAL, env={"LC_ALL": "POSIX", "PYTHONUTF8": "0"})

    assert result.code == 0
    assert result.stdout.startswith("targets=['caf\u00e9']")


def test_words_that_the_configuration_took_at_a_terminal_name_the_way_to_go_on(tmp_path: Path) -> None:
    make_workspace(tmp_path / "work")
    with jp_at_terminal("query", "-c", "and more", cwd=tmp_path / "work") as terminal:
        assert terminal.finish() == 3

    assert "hint: -c is --cfg, a value of the configuration; `jp query` continues" in terminal.stays
