"""`jp conversation edit`, `label`, `archive` and `unarchive`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.app.targets import TARGET_HELP
from jp.cli.options import GlobalOptions, require_persistence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jp.app.management import EditReport, EditRequest, ListedConversation


Target = Annotated[str, typer.Option("-i", "--id", metavar="TARGET", help=TARGET_HELP)]


def add(
    options: GlobalOptions,
    *,
    labels: Annotated[list[str], typer.Argument(help="Labels; K alone has no value", metavar="K=V")],
    target: Target = ".",
) -> None:
    """Add labels to a conversation, or change their values.

    Examples:
        jp conversation label add area=parser urgent
        jp conversation ls --label area=parser
    """
    from jp.app.management import EditRequest
    from jp.app.targets import parse_labels

    parse_labels(labels, option="a label")
    _change(options, target, EditRequest(labels=tuple(labels)))


def remove(
    options: GlobalOptions,
    *,
    names: Annotated[list[str] | None, typer.Argument(help="Names of labels", metavar="K")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all labels")] = False,
    target: Target = ".",
) -> None:
    """Remove labels from a conversation.

    Examples:
        jp conversation label rm urgent
        jp conversation label rm --all --id last
    """
    from jp.app.management import EditRequest
    from jp.errors import UsageError

    if bool(names) == everything:
        raise UsageError("name the labels to take away, or use --all", hint="list them with `jp conversation label ls`")

    _change(options, target, EditRequest(removed_labels=tuple(names or ()), clear_labels=everything))


def ls(options: GlobalOptions, *, target: Target = ".") -> None:
    """List the labels of a conversation.

    Examples:
        jp conversation label ls --id last
    """
    from jp.app.management import find_conversation

    _print(options, find_conversation(options, target))


def _change(options: GlobalOptions, target: str, request: EditRequest) -> None:
    from jp.app.management import edit as edit_conversation

    require_persistence(options, "jp conversation label")
    _print(options, edit_conversation(options, target, request).after)


def _print(options: GlobalOptions, found: ListedConversation) -> None:
    from jp.app.targets import label_text
    from jp.cli.output import print_result

    lines = [label_text(name, found.labels[name]) for name in sorted(found.labels)]
    print_result(options, text="\n".join(lines), value={"id": found.id, "labels": found.labels}, nothing="no labels")


Targets = Annotated[list[str], typer.Argument(help=TARGET_HELP, metavar="TARGET")]


def archive(options: GlobalOptions, *, targets: Targets) -> None:
    """Archive conversations: `jp conversation ls` hides them, and no terminal continues them.

    They can be printed and forked; `jp conversation unarchive` restores one.

    Examples:
        jp conversation archive .
        jp conversation ls --archived
    """
    from jp.app.management import archive as archive_conversations

    require_persistence(options, "jp conversation archive")
    _print_archived(options, "archived", archive_conversations(options, targets))


def unarchive(options: GlobalOptions, *, targets: Targets) -> None:
    """Restore archived conversations. Titles and labels are looked up among the archived ones.

    Examples:
        jp conversation unarchive jp-c17800836875
        jp conversation unarchive '?'
    """
    from jp.app.management import unarchive as unarchive_conversations

    require_persistence(options, "jp conversation unarchive")
    _print_archived(options, "unarchived", unarchive_conversations(options, targets))


def _print_archived(options: GlobalOptions, word: str, found: Sequence[ListedConversation]) -> None:
    from jp.cli.output import print_result

    text = "\n".join(f"{word} {item.id} ({item.name})" for item in found)
    print_result(options, text=text, value={word: [item.id for item in found]})


def edit(
    options: GlobalOptions,
    *,
    target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".",
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Its title")] = None,
    no_title: Annotated[bool, typer.Option("--no-title", help="Remove its title; jp does not create another")] = False,
    labels: Annotated[list[str] | None, typer.Option("--label", metavar="K=V", help="A label; repeatable")] = None,
    no_labels: Annotated[
        list[str] | None, typer.Option("--no-label", metavar="K", help="Remove a label; repeatable")
    ] = None,
    pin: Annotated[bool, typer.Option("--pin", help="Pin it: it never expires")] = False,
    unpin: Annotated[bool, typer.Option("--unpin", help="Unpin it")] = False,
    local: Annotated[bool, typer.Option("--local", help="Move it out of the workspace, to your own data")] = False,
    no_local: Annotated[bool, typer.Option("--no-local", help="Move it into the workspace")] = False,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="DURATION|never", help="Delete it after this time, such as 12h"),
    ] = None,
) -> None:
    """Change the title, labels, pin, expiry or place of a conversation. Its messages stay unchanged.

    A later command deletes an expired conversation, unless it is pinned, active in a terminal, or stored by JP (Rust).

    Examples:
        jp conversation edit --title "The lexer" --label area=parser
        jp conversation edit last --pin
        jp conversation edit --local
        jp conversation edit --expires never
    """
    from msgspec import to_builtins

    from jp.app.management import EditRequest
    from jp.app.management import edit as edit_conversation
    from jp.app.targets import check_name
    from jp.cli.output import print_result
    from jp.errors import UsageError

    require_persistence(options, "jp conversation edit")
    for one, other, both in (
        ("--title", "--no-title", title is not None and no_title),
        ("--pin", "--unpin", pin and unpin),
        ("--local", "--no-local", local and no_local),
    ):
        if both:
            raise UsageError(f"{one} and {other} exclude each other", hint="remove one of them")
    request = EditRequest(
        title=title,
        untitle=no_title,
        labels=tuple(labels or ()),
        removed_labels=tuple(sorted({check_name(name, option="--no-label") for name in no_labels or ()})),
        pinned=True if pin else False if unpin else None,
        local=True if local else False if no_local else None,
        expires=expires,
    )
    if request == EditRequest():
        raise UsageError("nothing says what to change", hint="add an option, such as --title TEXT; see --help")
    report = edit_conversation(options, target, request)
    text = f"{report.after.id}  {report.after.name}{_changes_text(report)}"
    print_result(options, text=text, value=to_builtins(report.after))


def _changes_text(report: EditReport) -> str:
    """Return the changes of a conversation, one line for each, as `labels: a → b`."""
    from time import time

    from jp.app.targets import label_text
    from jp.cli.conversation.ls import expiry_text
    from jp.render.sanitize import one_line

    def said(item: ListedConversation) -> dict[str, str]:
        return {
            "title": one_line(item.title or ""),
            "labels": ", ".join(label_text(name, item.labels[name]) for name in sorted(item.labels)),
            "pinned": "yes" if item.pinned_at else "no",
            "expiry": "never" if item.expires_at is None else expiry_text(item.expires_at, now=time()),
            "place": "your own data" if item.local else "the workspace",
        }

    old, new = said(report.before), said(report.after)
    changed = [f"\n  {name}: {old[name] or 'none'} → {new[name] or 'none'}" for name in new if old[name] != new[name]]
    return "".join(changed) or "\n  nothing changed"
