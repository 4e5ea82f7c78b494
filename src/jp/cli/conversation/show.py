"""`jp conversation show`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from jp.cli.options import GlobalOptions
from jp.cli.targets import TARGET_HELP

if TYPE_CHECKING:
    from jp.config.model import AppConfig
    from jp.conversation.entries import AnyEntry
    from jp.turn.spending import Spending
    from jp.workspace.listing import ConversationInfo


def show(options: GlobalOptions, *, target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".") -> None:
    """Show facts about a conversation: how long it is, what it attaches, which model it uses, what it cost.

    Compactions are numbered as `jp conversation compact --reset=N` counts them.

    A `-` stands for what is not there, or is not known: the tokens of the original JP. In a fork, what was copied
    counts too. A title that jp asked a model for is not counted. `jp conversation usage` says more of costs.

    Examples:
        jp conversation show
        jp conversation show last --format json
    """
    from jp.cli.compacting.report import overlay_text, overlay_value
    from jp.cli.held import read_conversation
    from jp.cli.output import print_result
    from jp.compaction.overlays import compactions_in_force

    read = read_conversation(options, target, lenient=True)
    if read.info is None:
        return
    spending = _spending(read.entries, read.resolved.config)
    facts = _facts(read.info, read.entries, spending)
    facts["model"] = read.resolved.config.assistant.model.id
    facts["attachments"] = [_shown(text) for text in read.resolved.config.conversation.attachments]
    shown = {name.removesuffix("_usd"): value for name, value in facts.items() if name != "turns_undone"}
    shown |= _in_words(read.info, facts, spending)
    overlays = compactions_in_force(read.entries)
    shown |= {f"compaction {number}": overlay_text(overlay) for number, overlay in enumerate(overlays, start=1)}
    facts["overlays"] = [overlay_value(overlay) for overlay in overlays]
    lines = [f"{name.replace('_', ' '):<14} {_text(value)}".rstrip() for name, value in shown.items()]
    print_result(options, text="\n".join(lines), value=facts)


def _facts(info: ConversationInfo, entries: Sequence[AnyEntry], spending: Spending) -> dict[str, object]:
    from msgspec import to_builtins

    from jp.conversation.entries import Compaction, Header, ToolCallRequest
    from jp.conversation.reverts import undone
    from jp.conversation.turns import turns_of
    from jp.conversation.usage import prompt_tokens
    from jp.workspace.stamp import timestamp

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


def _in_words(info: ConversationInfo, facts: Mapping[str, object], spending: Spending) -> dict[str, object]:
    """What a person reads in place of fields with parts."""
    from jp.cli.labels import label_text
    from jp.cli.money import cost_sentence

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
    """A declaration without the password of an address."""
    from jp.attachment.declaration import scheme_of

    if scheme_of(declaration.removeprefix("!")) not in {"http", "https"}:
        return declaration
    from jp.attachment.web.address import without_credentials

    return without_credentials(declaration)


def _spending(entries: Sequence[AnyEntry], config: AppConfig) -> Spending:
    """What all requests took and cost."""
    from jp.cli.pricing import pricing
    from jp.conversation.usage import usage_by_turn
    from jp.turn.spending import by_cycle, total_of

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
