"""`jp conversation ls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jp.conversation.ids import ConversationId
    from jp.workspace.listing import ConversationInfo


def ls(
    options: GlobalOptions,
    *,
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", metavar="N", min=1, help="The N used last only.")
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="K=V", help="Those with this label, or with K at any value; repeatable."),
    ] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="The pinned ones only.")] = False,
    archived: Annotated[
        bool, typer.Option("--archived", help="The archived ones, which are left out otherwise.")
    ] = False,
) -> None:
    """List conversations: the one used last at the end, where the prompt is. `*` marks this terminal's active one.

    Examples:
        jp conversation ls
        jp conversation ls --limit 10
        jp conversation ls --label area=parser --pinned
        jp conversation ls --format json
    """
    from jp.cli.conversation.facts import as_value
    from jp.cli.labels import has_labels, parse_labels
    from jp.cli.output import notice, print_result
    from jp.cli.places import open_session, open_workspace

    parse_labels(labels or (), option="--label")
    workspace = open_workspace(options)
    active = open_session(workspace).active()
    everything = sorted(workspace.conversations(), key=lambda info: (info.last_activity, info.id.deciseconds))
    for info in everything:
        if info.problem:
            notice(options, f"{info.id}: {info.problem}")
    found = [
        info
        for info in everything
        if (info.metadata.archived_at is not None) == archived
        and not (pinned and info.metadata.pinned_at is None)
        and has_labels(info.metadata.labels, labels or ())
    ]
    shown = found if limit is None else found[-limit:]
    text = _table(options, shown, active) if shown else ""
    value = {"conversations": [as_value(info, active) for info in shown]}
    print_result(options, text=text, value=value, nothing=_nothing(everything))


def _nothing(everything: Sequence[ConversationInfo]) -> str:
    return "there are no such conversations here" if everything else "there are no conversations here yet"


def _table(options: GlobalOptions, found: Sequence[ConversationInfo], active: ConversationId | None) -> str:
    from time import time

    from jp.cli.conversation.facts import marks
    from jp.cli.looks import width_of_stdout
    from jp.cli.moments import ago
    from jp.cli.targets import title_of
    from jp.render.tables import text_table

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
    return text_table(("", "id", "used", "", "title"), rows, width=width_of_stdout(options))
