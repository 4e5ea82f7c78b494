from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from jp.attachment.base import AttachmentError, Resolution, ResolveContext
from jp.attachment.command import AT_ONCE, CommandHandler, CommandLine
from jp.attachment.registry import AttachmentRegistry
from jp.cli.terminal.wording import worded
from jp.conversation.resource import Resource
from jp.process import guardian
from jp.process.guardian import CapturedOutput, OutputLimits, ProcessLimits, ProcessResult, Program

PATIENCE = 20.0
QUICK = ProcessLimits(timeout_secs=PATIENCE, grace_secs=0.05)


def resolution(
    text: str, context: ResolveContext, *, limits: ProcessLimits = QUICK, exclude: str = "", max_bytes: int = 10**7
) -> Resolution:
    registry = AttachmentRegistry()
    declaration = registry.declare(text, context, confined=False)
    excludes = [registry.declare(exclude, context, confined=False)] if exclude else []
    bounded = ResolveContext(root=context.root, cwd=context.cwd, max_bytes=max_bytes)

    async def resolve() -> Resolution:
        with anyio.fail_after(PATIENCE):
            return await CommandHandler(limits).resolve(declaration, bounded, excludes=excludes)

    return anyio.run(resolve)


def failure(
    text: str, context: ResolveContext, *, limits: ProcessLimits = QUICK, max_bytes: int = 10**7
) -> AttachmentError:
    with pytest.raises(AttachmentError) as raised:
        resolution(text, context, limits=limits, max_bytes=max_bytes)
    assert raised.value.exit_code == 10
    assert raised.value.hint
    return raised.value


def shell(script: str) -> str:
    return CommandLine(program="sh", arguments=("-c", script)).uri


def text_of(text: str, context: ResolveContext) -> str:
    (resource,) = resolution(text, context).resources
    assert resource.text is not None
    return resource.text


@contextmanager
def fifo(path: Path) -> Generator[int]:
    """A pipe with a name; it is at its end once nobody has it open for writing any more."""
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def wait_for_byte(descriptor: int) -> bytes:
    """What comes next through a pipe; empty at its end."""
    os.set_blocking(descriptor, True)
    return os.read(descriptor, 1)


def test_what_a_command_prints_is_attached(context: ResolveContext) -> None:
    result = resolution("cmd:printf 'a\\nb\\n'?description=Two letters", context)

    assert result.notices == ()
    assert result.resources == (
        Resource(
            uri="cmd://printf?arg=a%5Cnb%5Cn",
            name="printf 'a\\nb\\n'",
            description="Two letters",
            mime_type="text/plain",
            text="<command>printf 'a\\nb\\n'</command>\n<exit_code>0</exit_code>\n<stdout>\na\nb\n</stdout>\n",
        ),
    )


def test_an_exit_code_is_content(context: ResolveContext) -> None:
    result = resolution(shell("echo out; printf err >&2; exit 3"), context)
    (resource,) = result.resources

    assert resource.text is not None
    assert resource.text.endswith("<exit_code>3</exit_code>\n<stdout>\nout\n</stdout>\n<stderr>\nerr\n</stderr>\n")
    assert "ended with exit code 3" in result.notices[0]


def test_a_signal_is_content(context: ResolveContext) -> None:
    assert "<exit_code>143 (SIGTERM)</exit_code>" in text_of(shell("kill -TERM $$"), context)
    number = signal.SIGRTMIN + 1 if hasattr(signal, "SIGRTMIN") else signal.SIGUSR1
    assert f"<exit_code>{128 + number} (" in text_of(shell(f"kill -{int(number)} $$"), context)


def test_a_command_that_prints_nothing_says_so(context: ResolveContext) -> None:
    assert text_of("cmd:true", context) == "<command>true</command>\n<exit_code>0</exit_code>\n"


def test_arguments_arrive_as_they_are(context: ResolveContext) -> None:
    (context.root / "a.txt").touch()

    assert "\n$HOME * ~ a;b  c\n" in text_of("cmd:printf %s '$HOME * ~ a;b  c'", context)
    assert "\n*\n" in text_of("cmd:echo *", context)


def test_a_command_runs_in_the_root_with_nothing_to_read_and_no_terminal(root: Path, tmp_path: Path) -> None:
    context = ResolveContext(root=root, cwd=tmp_path)

    assert f"\n{root.resolve()}\n" in text_of("cmd:pwd -P", context)
    assert text_of("cmd:cat", context).endswith("<exit_code>0</exit_code>\n")
    assert "no terminal" in text_of(shell("(: </dev/tty) 2>/dev/null || echo no terminal"), context)


def test_a_command_gets_no_secrets(context: ResolveContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("LC_TIME", "C")
    text = text_of("cmd:env", context)

    assert "sk-secret" not in text
    assert "LC_TIME=C\n" in text
    assert f"PWD={context.root}\n" in text
    assert "GIT_OPTIONAL_LOCKS=0\n" in text


def test_a_hook_of_git_is_about_the_same_repository_from_the_root(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index.lock")
    monkeypatch.setenv("GIT_DIR", "/elsewhere/.git")
    text = text_of("cmd:env", ResolveContext(root=root, cwd=tmp_path))

    assert f"GIT_INDEX_FILE={tmp_path}/.git/index.lock\n" in text
    assert "GIT_DIR=/elsewhere/.git\n" in text


def test_output_that_is_not_utf_8_is_replaced_and_said(context: ResolveContext) -> None:
    result = resolution(shell("printf 'f\\374r'"), context)

    assert result.resources[0].text is not None
    assert "f\ufffdr" in result.resources[0].text
    assert "not valid UTF-8" in result.notices[0]


@pytest.mark.parametrize("stream", ["1", "2"])
def test_output_that_is_no_text_is_refused(stream: str, context: ResolveContext) -> None:
    error = failure(shell(f"printf 'a\\0b' >&{stream}"), context)

    assert "prints binary data" in error.message


def test_an_excluded_command_is_not_run(context: ResolveContext) -> None:
    result = resolution("cmd:touch ran?description=x", context, exclude="!cmd:touch ran")

    assert result.resources == ()
    assert "is not run" in result.notices[0]
    assert not (context.root / "ran").exists()


# What cannot be run


@pytest.fixture
def programs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    (root / "own-script").write_text("#!/bin/sh\n", encoding="utf-8")
    (root / "garbage").write_bytes(b"\x01\x02")
    (root / "garbage").chmod(0o755)
    (root / "directory").mkdir()


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("cmd:no-such-program-x", "there is no command 'no-such-program-x'", "aliases"),
        ("cmd:./missing", "there is no command './missing'", "root"),
        ("cmd:~/missing", "there is no command '~/missing'", "'~' is not expanded"),
        ("cmd:own-script", "there is no command 'own-script'", "'./own-script'"),
        ("cmd:./own-script", "cannot run './own-script': Permission denied", "chmod +x"),
        ("cmd:./garbage", "cannot run './garbage': Exec format error", "shell"),
        ("cmd:./directory", "'./directory' is a directory", "name a program in it"),
    ],
)
@pytest.mark.usefixtures("programs")
def test_what_cannot_be_run_is_an_error(text: str, said: str, hint: str, context: ResolveContext) -> None:
    error = failure(text, context)

    assert said in error.message
    assert hint in error.hint


def test_a_program_of_the_workspace_is_run_by_its_path_only(
    context: ResolveContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    monkeypatch.chdir(context.root)
    program = context.root / "true"
    program.write_text("#!/bin/sh\necho mine\n", encoding="utf-8")
    program.chmod(0o755)

    assert "mine" not in text_of("cmd:true", context)
    assert "\nmine\n" in text_of("cmd:./true", context)
    assert "\nmine\n" in text_of(CommandLine(program=str(program)).uri, context)


# Bounds


def test_a_command_that_prints_without_end_is_stopped(context: ResolveContext) -> None:
    error = failure("cmd:yes", context, max_bytes=100_000)

    assert error.message == "'yes' prints more than 97.7 KiB, and was stopped"
    assert "max_attachment_bytes" in error.hint


def test_both_streams_count_together(context: ResolveContext) -> None:
    script = shell("printf 12345; printf 12345 >&2")

    assert "12345" in text_of(script, context)
    assert resolution(script, context, max_bytes=10).resources
    assert "more than 9 bytes" in failure(script, context, max_bytes=9).message


def test_a_command_that_does_not_end_is_stopped(context: ResolveContext) -> None:
    error = failure("cmd:sleep 1000", context, limits=ProcessLimits(timeout_secs=0.05, grace_secs=PATIENCE))

    assert error.message == "'sleep 1000' did not end within 0.05 s, and was stopped"
    assert "jp query" in worded(error.hint)


def test_what_a_command_leaves_behind_is_not_waited_for(context: ResolveContext, tmp_path: Path) -> None:
    with fifo(tmp_path / "alive") as alive:
        text = text_of(shell(f"exec 3>{tmp_path}/alive; sleep 1000 & echo done"), context)

        assert "<exit_code>0</exit_code>\n<stdout>\ndone\n</stdout>" in text
        assert wait_for_byte(alive) == b""


def leave(script: str, alive: int, context: ResolveContext, *, grace_secs: float) -> None:
    """Cancel a command as soon as a byte comes from it."""
    declaration = AttachmentRegistry().declare(shell(script), context, confined=False)
    handler = CommandHandler(ProcessLimits(grace_secs=grace_secs))

    async def run() -> None:
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(handler.resolve, declaration, context)
                await anyio.wait_readable(alive)
                tasks.cancel_scope.cancel()

    anyio.run(run)
    assert os.read(alive, 10) == b"x"


def test_a_command_that_nobody_waits_for_is_stopped_with_all_that_it_started(
    context: ResolveContext, tmp_path: Path
) -> None:
    with fifo(tmp_path / "alive") as alive:
        script = f"exec 3>{tmp_path}/alive; sleep 1000 & printf x >&3; sleep 1000"
        leave(script, alive, context, grace_secs=PATIENCE)

        assert wait_for_byte(alive) == b""


def test_a_command_that_does_not_heed_is_killed(context: ResolveContext, tmp_path: Path) -> None:
    with fifo(tmp_path / "alive") as alive:
        script = f"trap '' TERM; exec 3>{tmp_path}/alive; printf x >&3; while :; do sleep 1000; done"
        leave(script, alive, context, grace_secs=0.05)

        assert wait_for_byte(alive) == b""


def test_a_command_that_heeds_may_clean_up(context: ResolveContext, root: Path) -> None:
    with fifo(root / "alive") as alive:
        script = "trap 'touch cleaned; exit 0' TERM; sleep 1000 & printf x >alive; wait"
        leave(script, alive, context, grace_secs=PATIENCE)

    assert (root / "cleaned").exists()


def test_several_commands_run_at_once_but_not_all(context: ResolveContext, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    active = 0

    async def run(program: Program, *, output: OutputLimits, limits: ProcessLimits) -> ProcessResult:
        nonlocal active
        active += 1
        counts.append(active)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        active -= 1
        return ProcessResult(exit_code=0, stdout=CapturedOutput(head=b""), stderr=CapturedOutput(head=b""))

    monkeypatch.setattr(guardian, "run", run)

    async def resolve() -> None:
        registry = AttachmentRegistry()
        async with anyio.create_task_group() as tasks:
            for number in range(AT_ONCE * 2):
                declaration = registry.declare(f"cmd:echo {number}", context, confined=False)
                tasks.start_soon(registry.handler(declaration.uri).resolve, declaration, context)

    anyio.run(resolve)

    assert len(counts) == AT_ONCE * 2
    assert max(counts) == AT_ONCE
