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
    limit: Annotated[int | None, typer.Option("-n", "--limit", metavar="N", min=1, help="The newest N only.")] = None,
) -> None:
    """List conversations: the one used last at the end, where the prompt is. `*` marks this terminal's active one.

    Examples:
        jp conversation ls
        jp conversation ls --limit 10
        jp conversation ls --format json
    """
    from jp.cli.output import notice, print_result
    from jp.cli.places import open_session, open_workspace

    workspace = open_workspace(options)
    active = open_session(workspace).active()
    found = sorted(workspace.conversations(), key=lambda info: (info.last_activity, info.id.deciseconds))
    for info in found:
        if info.problem:
            notice(options, f"{info.id}: {info.problem}")
    shown = found if limit is None else found[-limit:]
    text = _table(options, shown, active) if shown else "there are no conversations here yet"
    print_result(options, text=text, value={"conversations": [_as_value(info, active) for info in shown]})


def _table(options: GlobalOptions, found: Sequence[ConversationInfo], active: ConversationId | None) -> str:
    from time import time

    from jp.cli.looks import width_of_stdout
    from jp.cli.moments import ago
    from jp.cli.targets import title_of
    from jp.render.listing import text_table

    now = time()
    rows = [
        (
            "*" if info.id == active else "",
            info.id,
            ago(now - info.last_activity),
            "local" if info.local else "",
            title_of(info),
        )
        for info in found
    ]
    return text_table(("", "id", "used", "", "title"), rows, width=width_of_stdout(options))


def _as_value(info: ConversationInfo, active: ConversationId | None) -> dict[str, object]:
    from jp.workspace.stamp import timestamp

    return {
        "id": info.id,
        "title": info.metadata.title,
        "active": info.id == active,
        "local": info.local,
        "last_activity": timestamp(int(info.last_activity * 1000)),
        "path": str(info.directory),
    }
