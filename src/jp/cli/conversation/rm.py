"""`jp conversation rm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.cli.targets import TARGET_HELP
from jp.errors import ExitCode

if TYPE_CHECKING:
    from jp.workspace.listing import ConversationInfo


def remove(
    options: GlobalOptions,
    *,
    targets: Annotated[list[str], typer.Argument(help=TARGET_HELP, metavar="TARGET")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> ExitCode | None:
    """Delete conversations for good. This is the only command that takes anything out of a log.

    On a terminal it asks; elsewhere it needs --yes. Attached content stays, because other conversations may share it.

    Examples:
        jp conversation rm jp-c17800836875
        jp conversation rm --yes last
    """
    from jp.cli.output import notice, print_result
    from jp.cli.places import acquire, open_session, open_workspace
    from jp.cli.targets import choose_all
    from jp.cli.trust import trust_store

    require_persistence(options, "jp conversation rm")
    workspace = open_workspace(options)
    session = open_session(workspace)
    chosen = choose_all(targets, workspace, session)
    if not yes and not _agrees(chosen):
        notice(options, "nothing was deleted")
        return ExitCode.FAILURE
    for info in chosen:
        lock = workspace.lock(info)
        acquire(lock, options)
        with lock:
            workspace.remove(info, lock)
        trust_store(options, workspace, info).forget()
    lines = [f"deleted {_named(info)}" for info in chosen]
    print_result(options, text="\n".join(lines), value={"deleted": [info.id for info in chosen]})
    return None


def _named(info: ConversationInfo) -> str:
    from jp.cli.targets import title_of

    return f"{info.id} ({title_of(info)})"


def _agrees(chosen: list[ConversationInfo]) -> bool:
    from jp.errors import UsageError
    from jp.render.prompt import ask_yes_no

    names = ", ".join(_named(info) for info in chosen)
    answer = ask_yes_no(f"Delete {names} for good?", default=False)
    if answer is None:
        raise UsageError(f"deleting {names} needs consent, and nobody can be asked here", hint="add --yes")
    return answer
