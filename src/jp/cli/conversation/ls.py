"""`jp conversation ls`, `path` and `use`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.app.targets import TARGET_HELP, label_text
from jp.app.values import ago
from jp.cli.options import GlobalOptions, require_persistence
from jp.conversation.ids import ConversationId
from jp.workspace.files import seconds_of, timestamp
from jp.workspace.listing import ConversationInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jp.render.tables import Table


def marks(info: ConversationInfo, *, now: float) -> str:
    """Whatever sets a conversation apart from others: `local, expires in 5 h, area=lexer`. Pinned ones expire never."""
    metadata = info.metadata
    words = [
        word
        for word, is_so in (
            ("local", info.local),
            ("pinned", metadata.pinned_at is not None),
            ("archived", metadata.archived_at is not None),
        )
        if is_so
    ]
    if metadata.expires_at is not None and metadata.pinned_at is None:
        words.append(expiry_text(metadata.expires_at, now=now))
    return ", ".join([*words, *(label_text(name, metadata.labels[name]) for name in sorted(metadata.labels))])


def expiry_text(expires_at: str, *, now: float) -> str:
    """Return when a conversation expires; `now` in seconds since the Unix epoch."""
    end = seconds_of(expires_at)
    if end is None:
        return f"expires at {expires_at}"
    return "expired" if end <= now else f"expires in {ago(end - now)}"


def as_value(info: ConversationInfo, active: ConversationId | None) -> dict[str, object]:
    """Return the fields of a conversation for `--format json`."""
    metadata = info.metadata
    parent = metadata.parent
    return {
        "id": info.id,
        "title": metadata.title,
        "first_words": metadata.first_words,
        "active": info.id == active,
        "local": info.local,
        "last_activity": timestamp(int(info.last_activity * 1000)),
        "path": str(info.directory),
        "labels": dict(metadata.labels),
        "pinned_at": metadata.pinned_at,
        "archived_at": metadata.archived_at,
        "expires_at": metadata.expires_at,
        "parent": None
        if parent is None
        else {"conversation": parent.conversation, "from_turn": parent.from_turn, "to_turn": parent.to_turn},
    }


_MOST_DRAWN = 100
"""The most rows that are listed on a terminal without `--limit`: drawing costs 0.3 ms a row."""


def ls(
    options: GlobalOptions,
    *,
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", metavar="N", min=1, help="Only the N most recently used.")
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--label", metavar="K=V", help="Only those with this label; K alone matches any value; repeatable."
        ),
    ] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Only pinned ones.")] = False,
    archived: Annotated[
        bool, typer.Option("--archived", help="Only archived ones, which are omitted otherwise.")
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
    from jp.app.options import open_session, open_workspace
    from jp.app.targets import has_labels, parse_labels
    from jp.cli.output import is_drawn, print_result

    parse_labels(labels or (), option="--label")
    workspace = open_workspace(options)
    active = open_session(workspace).active()
    everything = sorted(workspace.conversations(), key=lambda info: (info.last_activity, info.id.deciseconds))
    for info in everything:
        if info.problem:
            options.notice(f"{info.id}: {info.problem}")
    found = [
        info
        for info in everything
        if (info.metadata.archived_at is not None) == archived
        and not (pinned and info.metadata.pinned_at is None)
        and has_labels(info.metadata.labels, labels or ())
    ]
    most = limit or (_MOST_DRAWN if is_drawn(options) else len(found))
    shown = found[-most:]
    if limit is None and len(shown) < len(found):
        options.notice(f"the {most} most recent of {len(found):,} conversations; `--limit {len(found)}` shows all")
    is_json = options.format == "json"
    text = [_table(shown, active)] if shown and not is_json else ""
    value = {"conversations": [as_value(info, active) for info in shown if is_json]}
    print_result(options, text=text, value=value, nothing=_nothing(everything))


def _nothing(everything: Sequence[ConversationInfo]) -> str:
    return "there are no such conversations here" if everything else "there are no conversations here yet"


def _table(found: Sequence[ConversationInfo], active: ConversationId | None) -> Table:
    from time import time

    from jp.app.targets import title_of
    from jp.app.values import ago
    from jp.render.tables import Table

    now = time()
    rows = [
        (
            "*" if info.id == active else "",
            info.id,
            ago(now - info.last_activity),
            marks(info, now=now),
            title_of(info),
        )
        for info in found
    ]
    return Table(head=("", "id", "used", "", "title"), rows=rows, keys=frozenset({1}))


def path(
    options: GlobalOptions,
    *,
    target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".",
    log: Annotated[bool, typer.Option("--log", help="The file that holds the entries.")] = False,
) -> None:
    """Print where a conversation is stored.

    Examples:
        ls "$(jp conversation path)"
        tail -1 "$(jp conversation path last --log)"
    """
    from jp.app.options import open_session, open_workspace
    from jp.app.targets import choose
    from jp.cli.output import print_result
    from jp.workspace.layout import EVENTS, ORIGINAL_EVENTS

    workspace = open_workspace(options)
    info = choose(options, target, workspace, open_session(workspace))
    place = info.directory
    if log:
        originals = info.directory / ORIGINAL_EVENTS
        is_originals = originals.exists() and not (info.directory / EVENTS).exists()
        place = originals if is_originals else info.directory / EVENTS
    print_result(options, text=str(place), value={"id": info.id, "path": str(place)})


def use(options: GlobalOptions, *, target: Annotated[str | None, typer.Argument(help=TARGET_HELP)] = None) -> None:
    """Make a conversation this terminal's active one: `jp query` continues it.

    Without a target, the one that was active before; where there was none, you pick one from a list.

    Examples:
        jp conversation use jp-c17800836875
        jp conversation use last
        jp conversation use '?'
    """
    from jp.app.options import open_session, open_workspace
    from jp.app.targets import choose, choose_other, title_of
    from jp.cli.output import print_result
    from jp.errors import UsageError
    from jp.workspace.session import session_key

    require_persistence(options, "jp conversation use")
    workspace = open_workspace(options)
    session = open_session(workspace)
    if session_key() is None:
        raise UsageError(
            "nothing tells this terminal from others, so no conversation can be active in it",
            hint="set JP_SESSION to any name, or name the conversation: `jp query --id ID`",
        )
    info = choose_other(options, workspace, session) if target is None else choose(options, target, workspace, session)
    if info.metadata.archived_at is not None:
        raise UsageError(
            f"conversation {str(info.id)!r} is archived",
            hint=f"bring it back with `jp conversation unarchive {info.id}`",
        )
    session.activate(info.id)
    print_result(options, text=f"{info.id}  {title_of(info)}", value={"id": info.id, "title": info.metadata.title})
