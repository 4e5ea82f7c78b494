"""What happened, computed from what tools recorded: files that were read and changed, commands and how they ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from jp.context.excerpt import without_secrets
from jp.context.groups import index_groups, opens_round
from jp.context.summary_schema import shortened
from jp.context.types import Facts, Message

MOST_FILES = 80
MOST_COMMANDS = 15
LONGEST_COMMAND = 200
LONGEST_OUTCOME = 240
LONGEST_PATH = 240

READING = frozenset({"read"})
CHANGING = frozenset({"write", "edit", "patch", "delete", "move"})
RUNNING = frozenset({"terminal", "test"})
"""What `facts.kind` says of a tool. Kinds in none of these leave nothing in a ledger."""

_CLOSED_PIPE = 141


class _Arguments(msgspec.Struct, frozen=True):
    """Where tools that run something have it."""

    command: str | tuple[str, ...] = ""
    cmd: str | tuple[str, ...] = ""
    script: str = ""
    code: str = ""


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A command as it was given, and how it ended."""

    command: str
    outcome: str = ""


class Ledger(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The newest of each, in the order in which they were last touched or run."""

    modified: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()


def ledger_of(messages: Sequence[Message], known: dict[str, str] | None = None) -> Ledger:
    """What the tools in `messages` did, by their `facts`; nothing is read out of their output.

    `known` is what `jp.context.redaction.redacted` remembers.
    """
    known = {} if known is None else known
    read: list[str] = []
    modified: list[str] = []
    commands: list[tuple[str, Message, Facts]] = []
    for arguments, message, facts in _results(messages):
        if facts.kind in RUNNING:
            commands.append((arguments, message, facts))
        elif facts.path and not message.is_error:
            path = shortened(without_secrets(facts.path, known), LONGEST_PATH)
            if facts.kind in CHANGING:
                modified.append(path)
            elif facts.kind in READING:
                read.append(path)
    newest = tuple(
        Command(command=command_in(arguments, known), outcome=_outcome(message, facts))
        for arguments, message, facts in commands[-MOST_COMMANDS:]
    )
    return _bounded(Ledger(modified=tuple(modified), read=tuple(read), commands=newest))


def merge_ledgers(*ledgers: Ledger) -> Ledger:
    """What all of them have, oldest first; where that is too much, the newest."""
    return _bounded(
        Ledger(
            modified=tuple(path for ledger in ledgers for path in ledger.modified),
            read=tuple(path for ledger in ledgers for path in ledger.read),
            commands=tuple(command for ledger in ledgers for command in ledger.commands),
        )
    )


def command_in(arguments: str, known: dict[str, str] | None = None) -> str:
    """The command in the `arguments` of a call, redacted and shortened; where none can be told, the arguments.

    `known` is what `jp.context.redaction.redacted` remembers.
    """
    try:
        found = msgspec.json.decode(arguments, type=_Arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        found = _Arguments()
    command = found.command or found.cmd or found.script or found.code or arguments
    text = command if isinstance(command, str) else " ".join(command)
    return shortened(without_secrets(text, known), LONGEST_COMMAND)


def runs_command(arguments: Mapping[str, object] | str) -> bool:
    """Return whether a call with these `arguments` has something run."""
    if isinstance(arguments, str):
        return False
    return any(isinstance(arguments.get(name), str | list) and arguments.get(name) for name in ("command", "cmd"))


def _results(messages: Sequence[Message]) -> Iterator[tuple[str, Message, Facts]]:
    """Each result that has facts, with the arguments of its call."""
    for group in index_groups(messages).groups:
        first = messages[group.start]
        calls = {call.id: call.arguments for call in first.calls} if opens_round(first) else {}
        for message in messages[group.start : group.end]:
            if message.role == "tool" and message.meta.facts is not None:
                yield calls.get(message.call_id, ""), message, message.meta.facts


def _outcome(message: Message, facts: Facts) -> str:
    """How a command ended. One that wrote to a pipe that nobody reads any more did what it should."""
    if facts.exit_code in {0, _CLOSED_PIPE}:
        return "succeeded"
    failed = f"exit {facts.exit_code}" if facts.exit_code is not None else "failed" if message.is_error else "ended"
    said = without_secrets(facts.first_error) if facts.first_error else ""
    return shortened(f"{failed}: {said}" if said else failed, LONGEST_OUTCOME)


def _bounded(ledger: Ledger) -> Ledger:
    modified = _newest(ledger.modified)
    known = frozenset(modified)
    read = _newest([path for path in ledger.read if path not in known])
    return Ledger(modified=modified, read=read, commands=ledger.commands[-MOST_COMMANDS:])


def _newest(paths: Sequence[str]) -> tuple[str, ...]:
    """The last `MOST_FILES` of `paths`, each where it stands last."""
    found = dict.fromkeys(reversed(paths))
    return tuple(reversed(list(found)[:MOST_FILES]))
