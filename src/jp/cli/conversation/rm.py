"""`jp conversation rm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.cli.targets import TARGET_HELP
from jp.errors import ExitCode

if TYPE_CHECKING:
    from jp.cli.places import AnyWorkspace
    from jp.workspace.listing import ConversationInfo


def remove(
    options: GlobalOptions,
    *,
    targets: Annotated[list[str], typer.Argument(help=TARGET_HELP, metavar="TARGET")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> ExitCode | None:
    """Delete conversations for good. But for those that expire, nothing else takes anything out of a log.

    On a terminal it asks; elsewhere it needs --yes. What you wrote for a conversation in an editor and never sent goes
    with it. Attached content stays, because other conversations may share it.

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
    lines: list[str] = []
    for info in chosen:
        lock = workspace.lock(info)
        acquire(lock, options)
        with lock:
            workspace.remove(info, lock)
        trust_store(options, workspace, info).forget()
        lines.append(f"deleted {_named(info)}{_without_drafts(options, workspace, info)}")
    print_result(options, text="\n".join(lines), value={"deleted": [info.id for info in chosen]})
    return None


def _without_drafts(options: GlobalOptions, workspace: AnyWorkspace, info: ConversationInfo) -> str:
    """Remove what was written for a conversation and never sent; words about it."""
    from jp.cli.drafts import discard_drafts, drafts_directory
    from jp.cli.output import notice

    directory = drafts_directory(workspace, info.id.digits, persistent=True, create=False)
    removed, kept = discard_drafts(directory)
    for path in kept:
        notice(options, f"somebody is writing a query to {info.id} right now, which stays in {str(path)!r}")
    return f" and {removed} {'draft' if removed == 1 else 'drafts'}" if removed else ""


def _named(info: ConversationInfo) -> str:
    from jp.cli.targets import title_of
    from jp.render.escape import escape_line

    return f"{info.id} ({escape_line(title_of(info))})"


def _agrees(chosen: list[ConversationInfo]) -> bool:
    from functools import partial

    from jp.cli.dialogue import ask_alone
    from jp.errors import UsageError
    from jp.render.approval import Sheet
    from jp.render.prompts import About, ask_yes_no

    names = ", ".join(_named(info) for info in chosen)
    if len(chosen) == 1:
        ask = partial(ask_yes_no, f"Delete {names} for good?", default=False)
    else:
        about = About(sheets=(Sheet(text="\n".join(_named(info) for info in chosen)),))
        ask = partial(ask_yes_no, f"Delete these {len(chosen):,} conversations for good?", default=False, about=about)
    answer = ask_alone(ask)
    if answer is None:
        raise UsageError(f"deleting {names} needs consent, and nobody can be asked here", hint="add --yes")
    return answer
