"""`jp conversation ls`, `path` and `use`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jp.app.targets import TARGET_HELP, label_text
from jp.app.values import ago
from jp.cli.options import GlobalOptions, require_persistence
from jp.workspace.files import seconds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jp.app.management import ListedConversation
    from jp.render.tables import Table


def _marks(item: ListedConversation, *, now: float) -> str:
    """Return what sets a conversation apart: `local, expires in 5 h, area=lexer`. Pinned ones expire never."""
    words = [
        word
        for word, is_so in (
            ("local", item.local),
            ("pinned", item.pinned_at is not None),
            ("archived", item.archived_at is not None),
        )
        if is_so
    ]
    if item.expires_at is not None and item.pinned_at is None:
        words.append(expiry_text(item.expires_at, now=now))
    return ", ".join([*words, *(label_text(name, item.labels[name]) for name in sorted(item.labels))])


def expiry_text(expires_at: str, *, now: float) -> str:
    """Return when a conversation expires; `now` in seconds since the Unix epoch."""
    end = seconds_of(expires_at)
    if end is None:
        return f"expires at {expires_at}"
    return "expired" if end <= now else f"expires in {ago(end - now)}"


_MOST_DRAWN = 100
"""The most rows that are listed on a terminal without `--limit`: drawing costs 0.3 ms a row."""


def ls(
    options: GlobalOptions,
    *,
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", metavar="N", min=1, help="Only the N most recently used")
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--label", metavar="K=V", help="Only those with this label; K alone matches any value; repeatable"
        ),
    ] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Only pinned ones")] = False,
    archived: Annotated[
        bool, typer.Option("--archived", help="Only archived ones, which are omitted otherwise")
    ] = False,
) -> None:
    """List conversations, most recent last. `*` marks this terminal's active one.

    On a terminal, at most the 100 most recent ones are listed unless --limit says otherwise.

    Examples:
        jp conversation ls
        jp conversation ls --limit 10
        jp conversation ls --label area=parser --pinned
        jp conversation ls --format json
    """
    from jp.app.management import list_conversations
    from jp.cli.output import is_drawn, print_result

    most = limit or (_MOST_DRAWN if is_drawn(options) else None)
    found = list_conversations(options, labels=labels or (), pinned=pinned, archived=archived, limit=most)
    shown = found.conversations
    if limit is None and len(shown) < found.matching:
        of = f"{found.matching:,} conversations; `--limit {found.matching}` shows all"
        options.notice(f"the {most} most recent of {of}")
    nothing = "there are no such conversations here" if found.total else "there are no conversations here yet"
    text = [_table(shown)] if shown and options.format != "json" else ""
    print_result(options, text=text, value={"conversations": shown}, nothing=nothing)


def _table(found: Sequence[ListedConversation]) -> Table:
    from time import time

    from jp.render.tables import Table

    now = time()
    rows = [
        (
            "*" if item.active else "",
            item.id,
            ago(now - (seconds_of(item.last_activity) or 0)),
            _marks(item, now=now),
            item.name,
        )
        for item in found
    ]
    return Table(head=("", "id", "used", "", "title"), rows=rows, keys=frozenset({1}))


def path(
    options: GlobalOptions,
    *,
    target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".",
    log: Annotated[bool, typer.Option("--log", help="The file that holds the entries")] = False,
) -> None:
    """Print the directory of a conversation.

    Examples:
        ls "$(jp conversation path)"
        tail -1 "$(jp conversation path last --log)"
    """
    from jp.app.management import find_conversation
    from jp.cli.output import print_result
    from jp.workspace.layout import EVENTS, ORIGINAL_EVENTS

    found = find_conversation(options, target)
    place = Path(found.path)
    if log:
        is_originals = (place / ORIGINAL_EVENTS).exists() and not (place / EVENTS).exists()
        place = place / (ORIGINAL_EVENTS if is_originals else EVENTS)
    print_result(options, text=str(place), value={"id": found.id, "path": str(place)}, paths={str(place): place})


def use(options: GlobalOptions, *, target: Annotated[str | None, typer.Argument(help=TARGET_HELP)] = None) -> None:
    """Make a conversation this terminal's active one: `jp query` continues it.

    Without a target, it is the previously active one; if there is none, you pick one from a list.

    Examples:
        jp conversation use jp-c17800836875
        jp conversation use last
        jp conversation use '?'
    """
    from jp.app.management import activate
    from jp.cli.output import print_result

    require_persistence(options, "jp conversation use")
    active = activate(options, target)
    print_result(options, text=f"{active.id}  {active.name}", value={"id": active.id, "title": active.title})
