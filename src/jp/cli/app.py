"""One run of jp: read the words, find the command, run it, end with an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from jp import __version__
from jp.cli.command_line.argv import CommandMatch, Settings, extract, find, scan_options
from jp.cli.command_line.commands import QUERY, ROOT, Command, Group
from jp.cli.terminal import streams
from jp.cli.terminal.exit import flush_stdout, guard
from jp.errors import ConfigurationError, ExitCode, JpError, UsageError


def find_executable(name: str, search_path: str) -> str | None:
    """Return the executable `jp-NAME` in the first directory of `search_path` that has one.

    Only absolute directories count: an entry such as `.` would run files of a cloned repository.
    """
    if not name or name.startswith("-") or os.sep in name:
        return None
    for directory in search_path.split(os.pathsep):
        program = f"{directory}{os.sep}jp-{name}"
        if directory.startswith(os.sep) and os.access(program, os.X_OK) and not Path(program).is_dir():
            return program
    return None


def replace_process(program: str, arguments: Sequence[str]) -> int:
    """Become `program`. It does not return.

    Raises:
        JpError: the system cannot run it.
    """
    import signal

    sys.stdout.flush()
    sys.stderr.flush()
    ours = signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and what is ignored is inherited
    try:
        os.execv(program, [program, *arguments])  # noqa: S606 - the words go to it as they are
    except OSError as error:
        signal.signal(signal.SIGPIPE, ours)
        hint = f"see with `head -1 {program}` what it is to be run with, and with `ls -l` whether it may be"
        raise JpError(f"cannot run {program!r}: {error.strerror}", hint=hint) from error


def run(words: Sequence[str], root: Group = ROOT) -> int:
    """Run jp with the command line `words`, without the program's name; its exit code. Raises nothing."""
    streams.prepare()
    as_json, verbosity = scan_options(words)
    code = guard(lambda: _dispatch(words, root), as_json=as_json, verbosity=verbosity)
    return flush_stdout(code, as_json=as_json)


def _dispatch(words: Sequence[str], root: Group) -> int:
    found = find(words, root)
    if isinstance(found.node, Command):
        return _run_command(found, found.node)
    if _asks("--version", found.settings):
        return _print_version(found.settings)
    if found.unknown is not None:
        return _run_external(found, found.unknown, words, found.node)
    return _print_group(found, found.node)


def _run_command(found: CommandMatch, command: Command) -> int:
    from jp.cli.command_line.loading import LoadedCommand
    from jp.cli.options import read_options

    loaded = LoadedCommand(command, found.path)
    rest = [_as_text(word) for word in found.rest]
    more, arguments = extract(rest, loaded.options(), command=loaded.name)
    settings = (*((name, _as_text(value)) for name, value in found.settings), *more)
    if _asks("--version", settings):
        return _print_version(settings)
    if _asks("--help", settings):
        return _print(loaded.page().render())
    options = read_options(settings, stdout_is_terminal=os.isatty(1))

    def invoke() -> int:
        try:
            return loaded.invoke(arguments, options)
        except (UsageError, ConfigurationError) as error:
            if command.name == QUERY:
                from jp.cli.command_line.advice import explain
                from jp.cli.command_line.argv import option_values

                explain(error, option_values(rest, loaded.options()))
            raise

    return guard(invoke, as_json=options.format == "json", verbosity=options.verbosity)


def _run_external(found: CommandMatch, name: str, words: Sequence[str], group: Group) -> int:
    """Become `jp-NAME`, which gets the other words, or say that there is no such command."""
    program = find_executable(name, os.environ.get("PATH", os.defpath)) if len(found.path) == 1 else None
    if program is None:
        from jp.cli.command_line.advice import unknown_command

        raise unknown_command(name, found.path, group)
    before = words[: len(words) - len(found.rest) - 1]
    return replace_process(program, [*before, *found.rest])


def _print_group(found: CommandMatch, group: Group) -> int:
    """Help of a group: what was asked for on stdout, or with exit code 2 what is missing on stderr."""
    from jp.cli.command_line.help import group_page, root_page

    page = root_page(group) if len(found.path) == 1 else group_page(group, found.path)
    if _asks("--help", found.settings):
        return _print(page.render())
    if ("--format", "json") in found.settings:
        name = " ".join(found.path)
        raise UsageError(f"{name} needs a command", hint=f"{name} --help lists the commands")
    if len(found.path) == 1 and found.settings:
        from jp.cli.command_line.advice import missing_command

        if (error := missing_command([(name, _as_text(value)) for name, value in found.settings])) is not None:
            raise error
    streams.write_stderr(page.render())
    return ExitCode.USAGE


def _asks(name: str, settings: Settings) -> bool:
    return (name, "") in settings


def _print_version(settings: Settings) -> int:
    if not any(name == "--format" for name, _ in settings):
        return _print(f"jp {__version__}\n")
    from jp.cli.options import read_options
    from jp.cli.output import print_result

    options = read_options(settings, stdout_is_terminal=os.isatty(1))
    print_result(options, text=f"jp {__version__}", value={"version": __version__})
    return ExitCode.OK


def _print(text: str) -> int:
    if not os.isatty(1):
        streams.write_stdout(text)
        return ExitCode.OK
    from jp.cli.terminal.pager import write_paged

    write_paged(text)
    return ExitCode.OK


def _as_text(word: str) -> str:
    """Return `word` as UTF-8, even if Python decoded it with another encoding.

    Raises:
        UsageError: it is not UTF-8.
    """
    if word.isascii():
        return word
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return _decoded(os.fsencode(word))
    return word


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"this argument is not UTF-8: {content!r}", hint="jp reads and stores text as UTF-8"
        ) from error
