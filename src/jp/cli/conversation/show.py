"""`jp conversation show`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from jp.cli.options import GlobalOptions
from jp.cli.targets import TARGET_HELP

if TYPE_CHECKING:
    from jp.conversation.entries import AnyEntry, Usage
    from jp.workspace.listing import ConversationInfo


def show(options: GlobalOptions, *, target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".") -> None:
    """Show facts about a conversation: how long it is, what it attaches, which model it uses, what it cost.

    Examples:
        jp conversation show
        jp conversation show last --format json
    """
    from jp.cli.held import read_conversation
    from jp.cli.output import print_result

    read = read_conversation(options, target)
    if read.info is None:
        return
    facts = _facts(read.info, read.entries)
    facts["model"] = read.resolved.config.assistant.model.id
    facts["attachments"] = list(read.resolved.config.conversation.attachments)
    shown = facts | _in_words(read.info)
    lines = [f"{name.replace('_', ' '):<14} {_text(value)}".rstrip() for name, value in shown.items()]
    print_result(options, text="\n".join(lines), value=facts)


def _facts(info: ConversationInfo, entries: Sequence[AnyEntry]) -> dict[str, object]:
    from msgspec import to_builtins

    from jp.conversation.entries import Compaction, Header, ToolCallRequest
    from jp.conversation.turns import turns_of
    from jp.workspace.stamp import timestamp

    header = entries[0] if entries and isinstance(entries[0], Header) else None
    usage = _usage(entries)
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
        "parent": None if parent is None else to_builtins(parent),
        "created": None if header is None else header.created_at,
        "last_activity": timestamp(int(info.last_activity * 1000)),
        "turns": len(turns_of(entries)),
        "entries": len(entries),
        "tool_calls": sum(isinstance(entry, ToolCallRequest) for entry in entries),
        "compactions": sum(isinstance(entry, Compaction) for entry in entries),
        "tokens_in": usage.input + usage.cache_read + usage.cache_write,
        "tokens_cached": usage.cache_read,
        "tokens_out": usage.output,
    }


def _in_words(info: ConversationInfo) -> dict[str, object]:
    """What a person reads in place of fields with parts."""
    from jp.cli.labels import label_text

    parent = info.metadata.parent
    labels = [label_text(name, info.metadata.labels[name]) for name in sorted(info.metadata.labels)]
    origin = None if parent is None else f"{parent.conversation}, turns {parent.from_turn} to {parent.to_turn}"
    return {"labels": labels, "parent": origin}


def _usage(entries: Sequence[AnyEntry]) -> Usage:
    from jp.conversation.entries import CycleEnd, Usage, add_usage

    total = Usage()
    for entry in entries:
        if isinstance(entry, CycleEnd):
            total = add_usage(total, entry.usage)
    return total


def _text(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case list():
            return ", ".join(map(str, cast("list[object]", value))) or "-"
        case _:
            from jp.render.sanitise import one_line

            return one_line(str(value))
