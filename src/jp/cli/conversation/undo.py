"""`jp conversation undo` and `jp conversation redo`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.cli.targets import TARGET_HELP
from jp.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jp.cli.held import HeldConversation
    from jp.conversation.entries import AnyEntry, JsonObject
    from jp.conversation.history import Undoable


def undo(options: GlobalOptions, *, target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".") -> ExitCode:
    """Undo what was done last in a conversation: a turn, a compaction, or a change of its settings.

    It is left out from then on and stays in the log, so `jp conversation redo` brings it back. A second one undoes what
    was done before that. Files that a tool changed stay as they are. The exit code is 12 where there is nothing left
    to undo.

    Examples:
        jp conversation undo
        jp conversation undo last
    """
    from jp.cli.held import hold_conversation
    from jp.conversation.entries import Revert
    from jp.conversation.history import newest_undoable

    require_persistence(options, "jp conversation undo")
    with hold_conversation(options, target) as held:
        found = newest_undoable(held.log.entries)
        if found:
            held.log.append(Revert(entries=tuple(entry.id for entry in found)))
        _say_what_comes_again(options, held, found)
        return _say(options, held, found, "undid", "there is nothing to undo")


def redo(options: GlobalOptions, *, target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".") -> ExitCode:
    """Take the last undo back. Once something new was done, there is nothing to redo any more.

    The exit code is 12 where there is nothing to redo.

    Examples:
        jp conversation redo
    """
    from jp.cli.held import hold_conversation
    from jp.conversation.entries import Revert
    from jp.conversation.history import named_by, newest_undo

    require_persistence(options, "jp conversation redo")
    with hold_conversation(options, target) as held:
        revert = newest_undo(held.log.entries)
        found = () if revert is None else named_by(revert, held.log.entries)
        if revert is not None:
            held.log.append(Revert(entries=(revert.id,)))
        return _say(options, held, found, "brought back", "there is nothing to redo")


def _say_what_comes_again(options: GlobalOptions, held: HeldConversation, found: Sequence[Undoable]) -> None:
    """Name what an undone turn attached and is declared still: the next turn attaches it, unless it is taken out."""
    from jp.attachment.resolution import delivered_in
    from jp.cli.output import notice
    from jp.conversation.reverts import undone
    from jp.conversation.turns import turns_of

    entries = held.log.entries
    gone = undone(entries)
    now = {entry.id for entry in found}
    turns = turns_of(entries)
    delivered = delivered_in(entry for turn in turns if turn.id in now for entry in turn.entries)
    standing = delivered_in(entry for turn in turns if turn.id not in gone for entry in turn.entries)
    declared = held.resolved.config.conversation.attachments
    again = [text for text in declared if text in delivered and text not in standing]
    if again:
        first = repr(again[0]) if len(again) == 1 else f"{again[0]!r} and {len(again) - 1} more"
        notice(options, f"the next query attaches {first} again, unless `jp attachment rm` takes it out")


def _say(
    options: GlobalOptions, held: HeldConversation, found: Sequence[Undoable], verb: str, nothing: str
) -> ExitCode:
    from jp.cli.output import print_result

    said = [_said(entry, held.log.entries) for entry in found]
    print_result(
        options,
        text="\n".join(f"{verb} {text}" for text in said),
        value={"id": held.info.id, "entries": [{"id": entry.id, "type": _type(entry)} for entry in found]},
        nothing=nothing,
    )
    return ExitCode.OK if found else ExitCode.NOTHING_TO_DO


def _type(entry: Undoable) -> str:
    return str(entry.__struct_config__.tag)


def _said(entry: Undoable, entries: Sequence[AnyEntry]) -> str:
    from jp.cli.compacting.report import policies_text, turns_text
    from jp.config.keys import key_text
    from jp.conversation.entries import Compaction, ConfigDelta
    from jp.conversation.turns import turns_of

    match entry:
        case Compaction():
            return f"the compaction of {turns_text(entry.from_turn, entry.to_turn)}: {policies_text(entry)}"
        case ConfigDelta(delta=delta):
            return f"a change of settings: {', '.join(key_text(path) for path in _leaves(delta)) or 'none'}"
        case _:
            number = next((turn.number for turn in turns_of(entries) if turn.id == entry.id), None)
            return "a turn" if number is None else f"turn {number}"


def _leaves(delta: JsonObject, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, below in delta.items():
        if isinstance(below, dict) and below and "strategy" not in below:
            yield from _leaves(cast("JsonObject", below), (*path, name))
        else:
            yield (*path, name)
