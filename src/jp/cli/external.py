"""Commands that are not jp's: `jp other` runs the executable `jp-other`, and what is no command gets a suggestion."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from jp.cli.tree import Group, walk
from jp.errors import JpError, UsageError


def locate(name: str, search_path: str) -> str | None:
    """The executable `jp-NAME` in the first directory of `search_path` that has one.

    Only absolute directories count: an entry such as `.` would run whatever a cloned repository has lying around.
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


def unknown_command(word: str, path: tuple[str, ...], group: Group) -> UsageError:
    """What is said about `word`, which names nothing in `group`: with what was perhaps meant."""
    name = " ".join(path)
    if any(character.isspace() for character in word):
        return UsageError(f"{name} has no command {word!r}", hint="to ask something: jp query QUESTION")
    nearest = _nearest(word, path, group)
    suggestion = f"did you mean {nearest}? " if nearest else ""
    return UsageError(f"{name} has no command {word!r}", hint=f"{suggestion}{name} --help lists the commands")


def _nearest(word: str, path: tuple[str, ...], group: Group) -> str:
    """The commands below the group that have exactly this name, else one of the group with a similar name."""
    from jp.likeness import nearest

    found = [" ".join((*path, *below)) for below, _ in walk(group) if below[-1] == word]
    if not found:
        names = [name for node in group.commands for name in (node.name, *node.aliases)]
        found = [" ".join((*path, name)) for name in nearest(word, names)]
    return " or ".join(f"'{command}'" for command in found)
