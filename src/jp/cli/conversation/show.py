"""`jp conversation show`, `undo` and `redo`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from jp.app.targets import TARGET_HELP
from jp.cli.options import GlobalOptions, require_persistence
from jp.errors import ExitCode

if TYPE_CHECKING:
    from jp.app.management import RevertReport
    from jp.config.model import AppConfig
    from jp.conversation.entries import AnyEntry
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
    from jp.app.management import undo as undo_last

    require_persistence(options, "jp conversation undo")
    return _print_reverted(options, undo_last(options, target), "undid", "there is nothing to undo")


def redo(options: GlobalOptions, *, target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".") -> ExitCode:
    """Revert the last undo. After a new turn or change there is nothing to redo.

    The exit code is 12 if there is nothing to redo.

    Examples:
        jp conversation redo
    """
    from jp.app.management import redo as redo_last

    require_persistence(options, "jp conversation redo")
    return _print_reverted(options, redo_last(options, target), "brought back", "there is nothing to redo")


def _print_reverted(options: GlobalOptions, report: RevertReport, verb: str, nothing: str) -> ExitCode:
    from jp.cli.output import print_result

    text = "\n".join(f"{verb} {text}" for text in report.texts)
    print_result(options, text=text, value={"id": report.id, "entries": report.entries}, nothing=nothing)
    return ExitCode.OK if report.entries else ExitCode.NOTHING_TO_DO
