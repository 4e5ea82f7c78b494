"""`jp conversation show`, `undo` and `redo`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from jp.app.targets import TARGET_HELP
from jp.cli.options import GlobalOptions, require_persistence
from jp.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jp.app.conversations import OpenConversation
    from jp.config.model import AppConfig
    from jp.conversation.entries import AnyEntry, JsonObject
    from jp.conversation.turns import Undoable
    from jp.turn.usage import Spending
    from jp.workspace.listing import ConversationInfo


def show(options: GlobalOptions, *, target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".") -> None:
    """Show facts about a conversation: its length, its attachments, its model, its cost.

    Compactions are numbered as in `jp conversation compact --reset=N`.

    A `-` means that a value is missing or unknown, such as tokens of JP (Rust). A fork includes what was copied. The
    request for a title is not included. `jp conversation usage` shows more about costs.

    Examples:
        jp conversation show
        jp conversation show last --format json
    """
    from jp.app.compaction.compact import overlay_text, overlay_value
    from jp.app.conversations import read_conversation
    from jp.cli.output import print_result
    from jp.compaction.overlays import compactions_in_force
    from jp.render.tables import Facts

    read = read_conversation(options, target, lenient=True)
    if read.info is None:
        return
    spending = _spending(read.entries, read.resolved.config)
    facts = _facts(read.info, read.entries, spending)
    facts["model"] = read.resolved.config.assistant.model.id
    facts["attachments"] = [_shown(text) for text in read.resolved.config.conversation.attachments]
    shown = {name.removesuffix("_usd"): value for name, value in facts.items() if name != "turns_undone"}
    shown |= _words(read.info, facts, spending)
    overlays = compactions_in_force(read.entries)
    shown |= {f"compaction {number}": overlay_text(overlay) for number, overlay in enumerate(overlays, start=1)}
    facts["overlays"] = [overlay_value(overlay) for overlay in overlays]
    rows = [(name.replace("_", " "), _text(value)) for name, value in shown.items()]
    title = read.info.metadata.title or str(read.info.id)
    print_result(options, text=[Facts(title=title, rows=rows, widths=(15,))], value=facts)


def _facts(info: ConversationInfo, entries: Sequence[AnyEntry], spending: Spending) -> dict[str, object]:
    from msgspec import to_builtins

    from jp.conversation.entries import Compaction, Header, ToolCallRequest
    from jp.conversation.turns import prompt_tokens, turns_of, undone
    from jp.workspace.files import timestamp

    header = entries[0] if entries and isinstance(entries[0], Header) else None
    gone, turns = undone(entries), turns_of(entries)
    usage = None if spending.untold == spending.cycles > 0 else spending.usage
    metadata = info.metadata
    parent = metadata.parent
    return {
        "id": info.id,
        "title": metadata.title,
        "labels": dict(metadata.labels),
        "path": str(info.directory),
        "local": info.local,
        "pinned_at": metadata.pinned_at,
        "archived_at": metadata.archived_at,
        "expires_at": metadata.expires_at,
        "imported_at": metadata.imported_at,
        "parent": None if parent is None else to_builtins(parent),
        "created": None if header is None else header.created_at,
        "last_activity": timestamp(int(info.last_activity * 1000)),
        "turns": len(turns),
        "turns_undone": sum(turn.id in gone for turn in turns),
        "entries": len(entries),
        "tool_calls": sum(isinstance(entry, ToolCallRequest) for entry in entries),
        "compactions": sum(isinstance(entry, Compaction) and entry.id not in gone for entry in entries),
        "tokens_in": None if usage is None else prompt_tokens(usage),
        "tokens_cached": None if usage is None else usage.cache_read,
        "tokens_out": None if usage is None else usage.output,
        "cost_usd": spending.known_usd,
    }


def _words(info: ConversationInfo, facts: Mapping[str, object], spending: Spending) -> dict[str, object]:
    """Return fields with parts as texts."""
    from jp.app.targets import label_text
    from jp.app.values import cost_sentence

    parent = info.metadata.parent
    labels = [label_text(name, info.metadata.labels[name]) for name in sorted(info.metadata.labels)]
    undone = facts["turns_undone"]
    return {
        "labels": labels,
        "parent": None if parent is None else f"{parent.conversation}, {_turns(parent.from_turn, parent.to_turn)}",
        "turns": f"{facts['turns']:,}, {undone:,} of them undone" if undone else facts["turns"],
        "cost": cost_sentence(spending).removeprefix("cost "),
    }


def _turns(first: int, last: int) -> str:
    return f"turn {first}" if first == last else f"turns {first} to {last}"


def _shown(declaration: str) -> str:
    """Return a declaration without the password of an address."""
    from jp.attachment.base import scheme_of

    if scheme_of(declaration.removeprefix("!")) not in {"http", "https"}:
        return declaration
    from jp.attachment.web_address import without_credentials

    return without_credentials(declaration)


def _spending(entries: Sequence[AnyEntry], config: AppConfig) -> Spending:
    """Return the tokens and cost of all requests."""
    from jp.app.models import pricing
    from jp.conversation.turns import usage_by_turn
    from jp.turn.usage import by_cycle, total_of

    requests = (request for turn in usage_by_turn(entries) for request in turn.requests)
    return total_of(spending for _, spending in by_cycle(requests, pricing(config)))


def _text(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case list():
            return ", ".join(map(_text, cast("list[object]", value))) or "-"
        case _:
            from jp.render.sanitize import one_line

            return one_line(str(value))


def undo(options: GlobalOptions, *, target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".") -> ExitCode:
    """Undo the last change of a conversation: a turn, a compaction, or a setting.

    It is hidden from then on and stays in the log, so `jp conversation redo` restores it. A second undo undoes the
    change before it. Files that a tool changed stay changed. The exit code is 12 if there is nothing left to undo.

    Examples:
        jp conversation undo
        jp conversation undo last
    """
    from jp.app.conversations import open_conversation
    from jp.conversation.entries import Revert
    from jp.conversation.turns import newest_undoable

    require_persistence(options, "jp conversation undo")
    with open_conversation(options, target) as held:
        found = newest_undoable(held.log.entries)
        if found:
            held.log.append(Revert(entries=tuple(entry.id for entry in found)))
        _note_reattached(options, held, found)
        return _print_changes(options, held, found, "undid", "there is nothing to undo")


def redo(options: GlobalOptions, *, target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".") -> ExitCode:
    """Revert the last undo. After a new turn or change there is nothing to redo.

    The exit code is 12 if there is nothing to redo.

    Examples:
        jp conversation redo
    """
    from jp.app.conversations import open_conversation
    from jp.conversation.entries import Revert
    from jp.conversation.turns import named_by, newest_undo

    require_persistence(options, "jp conversation redo")
    with open_conversation(options, target) as held:
        revert = newest_undo(held.log.entries)
        found = () if revert is None else named_by(revert, held.log.entries)
        if revert is not None:
            held.log.append(Revert(entries=(revert.id,)))
        return _print_changes(options, held, found, "brought back", "there is nothing to redo")


def _note_reattached(options: GlobalOptions, held: OpenConversation, found: Sequence[Undoable]) -> None:
    """Name what an undone turn attached and is declared still: the next turn attaches it, unless it is taken out."""
    from jp.attachment.registry import delivered_declarations
    from jp.conversation.turns import turns_of, undone

    entries = held.log.entries
    gone = undone(entries)
    now = {entry.id for entry in found}
    turns = turns_of(entries)
    delivered = delivered_declarations(entry for turn in turns if turn.id in now for entry in turn.entries)
    standing = delivered_declarations(entry for turn in turns if turn.id not in gone for entry in turn.entries)
    declared = held.resolved.config.conversation.attachments
    again = [text for text in declared if text in delivered and text not in standing]
    if again:
        first = repr(again[0]) if len(again) == 1 else f"{again[0]!r} and {len(again) - 1} more"
        options.notice(f"the next query attaches {first} again, unless `jp attachment rm` takes it out")


def _print_changes(
    options: GlobalOptions, held: OpenConversation, found: Sequence[Undoable], verb: str, nothing: str
) -> ExitCode:
    from jp.cli.output import print_result

    said = [_entry_text(entry, held.log.entries) for entry in found]
    print_result(
        options,
        text="\n".join(f"{verb} {text}" for text in said),
        value={"id": held.info.id, "entries": [{"id": entry.id, "type": _type(entry)} for entry in found]},
        nothing=nothing,
    )
    return ExitCode.OK if found else ExitCode.NOTHING_TO_DO


def _type(entry: Undoable) -> str:
    return str(entry.__struct_config__.tag)


def _entry_text(entry: Undoable, entries: Sequence[AnyEntry]) -> str:
    from jp.app.compaction.compact import turns_text
    from jp.app.compaction.order import policies_text
    from jp.config.schema import key_text
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
