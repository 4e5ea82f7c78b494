"""`jp conversation use`."""

from __future__ import annotations

from typing import Annotated

import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.cli.targets import TARGET_HELP


def use(options: GlobalOptions, *, target: Annotated[str | None, typer.Argument(help=TARGET_HELP)] = None) -> None:
    """Make a conversation this terminal's active one: `jp query` continues it.

    Without a target, the one that was active before; where there was none, you pick one from a list.

    Examples:
        jp conversation use jp-c17800836875
        jp conversation use last
        jp conversation use '?'
    """
    from jp.cli.output import print_result
    from jp.cli.places import open_session, open_workspace
    from jp.cli.targets import choose, choose_other, title_of
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
    info = choose_other(workspace, session) if target is None else choose(target, workspace, session)
    if info.metadata.archived_at is not None:
        raise UsageError(
            f"conversation {str(info.id)!r} is archived",
            hint=f"bring it back with `jp conversation unarchive {info.id}`",
        )
    session.activate(info.id)
    print_result(options, text=f"{info.id}  {title_of(info)}", value={"id": info.id, "title": info.metadata.title})
