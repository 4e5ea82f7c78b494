"""A small command tree that exercises what `jp.cli` gives to commands, in a process of its own or in the test's."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from jp.app.values import read_piped, stdin_source
from jp.cli.app import run
from jp.cli.command_line.commands import Command, Group
from jp.cli.command_line.loading import bound_value, optional_value
from jp.cli.options import GlobalOptions
from jp.cli.output import print_result
from jp.cli.terminal.exit import end_on_signals
from jp.cli.terminal.signals import interruptions
from jp.cli.terminal.streams import write_stdout
from jp.errors import AuthenticationError, ExitCode

TRIAL = (sys.executable, __file__)


def show(
    options: GlobalOptions,
    *,
    targets: Annotated[list[str], typer.Argument(metavar="TARGET", help="What to show.")],
    limit: Annotated[int, typer.Option("-n", "--limit", metavar="N", min=1, max=99, help="At most N.")] = 10,
    labels: Annotated[list[str] | None, typer.Option("--label", metavar="K=V", help="Repeatable.")] = None,
    temporary: Annotated[
        str | None, optional_value("-t", "--tmp", bare="1d", metavar="DURATION", help_text="Expire.", reads=None)
    ] = None,
    since: Annotated[str | None, bound_value("--from", bare="last", help_text="Where to begin.")] = None,
) -> None:
    """Show what was understood.

    A second paragraph that is long enough to be wrapped, because help has to be readable in eighty columns and not
    in more than that.

    Examples:
        jp show here
        jp show here --limit 3
    """
    options.notice("a notice")
    options.log("a detail")
    understood = {
        "targets": targets,
        "limit": limit,
        "labels": labels,
        "tmp": temporary,
        "from": since,
        "options": repr(options),
    }
    print_result(options, text=" ".join(f"{name}={value}" for name, value in understood.items()), value=understood)


def style(
    options: GlobalOptions,
    *,
    ratio: Annotated[float | None, typer.Option("--ratio", metavar="X", help="A number.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="As it is stored.")] = False,
    mode: Annotated[Literal["a", "b"], typer.Option("--mode", metavar="MODE", help="How.")] = "a",
) -> None:
    """Show what was understood of other kinds of options."""
    print_result(options, text=f"{ratio} {raw} {mode}", value={"ratio": ratio})


def fail(options: GlobalOptions, *, how: Annotated[str, typer.Argument(metavar="HOW")]) -> ExitCode:
    """Fail in one of many ways."""
    match how:
        case "told":
            raise AuthenticationError("no key in 'SOME_VARIABLE'", hint="export SOME_VARIABLE=…")
        case "secret":
            raise AuthenticationError(f"the key {os.environ['TRIAL_API_KEY']!r} is \x1b[31mwrong")
        case "defect":
            raise ZeroDivisionError("by nothing")
        case "file":
            Path("no such file").read_bytes()
        case "group":
            raise ExceptionGroup("tasks", [ValueError("x"), ExceptionGroup("more", [AuthenticationError("told")])])
        case "elsewhere":
            raise BrokenPipeError(32, "Broken pipe")
        case "hang-up":
            sys.exit(7)
        case _:
            return ExitCode.NOTHING_TO_DO
    return ExitCode.OK


def flood(options: GlobalOptions) -> None:
    """Print without end."""
    while True:
        write_stdout("more\n" * 1000)


def work(
    options: GlobalOptions,
    *,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="SECS")] = None,
    stuck: Annotated[bool, typer.Option("--stuck")] = False,
) -> ExitCode | None:
    """Wait for ever in an event loop, and say what was kept."""
    import anyio

    async def tear_down() -> None:
        write_stdout("kept\n")
        if stuck:
            with anyio.CancelScope(shield=True):
                await anyio.sleep_forever()

    async def wait() -> ExitCode | None:
        with interruptions(timeout_secs=timeout) as interruption:
            try:
                write_stdout("working\n")
                await anyio.sleep_forever()
            finally:
                await tear_down()
        return interruption.exit_code

    return anyio.run(wait)


def wait_synchronously(options: GlobalOptions) -> None:
    """Wait for ever without an event loop."""
    import signal

    try:
        write_stdout("working\n")
        signal.pause()
    finally:
        write_stdout("kept\n")


def read(
    options: GlobalOptions,
    *,
    words: Annotated[list[str] | None, typer.Argument(metavar="WORD")] = None,
    no_stdin: Annotated[bool, typer.Option("--no-stdin")] = False,
) -> None:
    """Say what is piped in."""
    import anyio

    source = stdin_source(asked="-" in (words or ()), refused=no_stdin)
    piped = anyio.run(lambda: read_piped(source, on_idle=lambda: options.notice("waiting")))
    print_result(options, text=f"{source}: {piped}", value={"source": source})


ROOT = Group(
    "jp",
    "A trial.",
    (
        Command("show", "trial:show", "Show what was understood", aliases=("s",)),
        Command("style", "trial:style", "Show other kinds"),
        Command("fail", "trial:fail", "Fail"),
        Command("flood", "trial:flood", "Print without end"),
        Command("read", "trial:read", "Say what is piped in"),
        Group(
            "wait",
            "Waiting, in two ways",
            (
                Command("work", "trial:work", "Wait in an event loop"),
                Command("sync", "trial:wait_synchronously", "Wait without one"),
            ),
            aliases=("w",),
        ),
    ),
)

if __name__ == "__main__":
    end_on_signals()
    os._exit(run(sys.argv[1:], ROOT))
