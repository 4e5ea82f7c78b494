"""What a command does for the workspace when its own work is done: conversations that have expired go."""

from __future__ import annotations

from jp.cli.options import GlobalOptions
from jp.cli.output import log
from jp.cli.places import AnyWorkspace
from jp.errors import JpError


def tidy(options: GlobalOptions, workspace: AnyWorkspace) -> None:
    """Remove some of the conversations that have expired, which `-v` names. What fails is left for another time."""
    if not options.persist:
        return
    from jp.workspace.expiry import remove_expired
    from jp.workspace.workspace import Workspace

    if not isinstance(workspace, Workspace):
        return
    try:
        removed = remove_expired(workspace)
    except JpError as error:
        log(options, f"expired conversations were not looked for: {error.message}")
        return
    for info in removed:
        from jp.cli.drafts import discard_drafts, drafts_directory
        from jp.cli.targets import title_of
        from jp.cli.trust import trust_store

        trust_store(options, workspace, info).forget()
        discard_drafts(drafts_directory(workspace, info.id.digits, persistent=True, create=False))
        log(options, f"removed {info.id} ({title_of(info)}): it expired at {info.metadata.expires_at}")
