"""`jp conversation archive` and `unarchive`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.cli.targets import TARGET_HELP

if TYPE_CHECKING:
    from jp.cli.places import AnyWorkspace
    from jp.workspace.listing import ConversationInfo

Targets = Annotated[list[str], typer.Argument(help=TARGET_HELP, metavar="TARGET")]


def archive(options: GlobalOptions, *, targets: Targets) -> None:
    """Put conversations away. They leave `jp conversation ls` and are active in no terminal any more.

    They can be printed and forked; to continue one, bring it back with `jp conversation unarchive`.

    Examples:
        jp conversation archive .
        jp conversation ls --archived
    """
    from jp.workspace.stamp import SYSTEM, timestamp

    _set(options, targets, archived_at=timestamp(SYSTEM.now()))


def unarchive(options: GlobalOptions, *, targets: Targets) -> None:
    """Bring archived conversations back. Targets that are no ids are looked for among the archived ones.

    Examples:
        jp conversation unarchive jp-c17800836875
        jp conversation unarchive '?'
    """
    _set(options, targets, archived_at=None)


def _set(options: GlobalOptions, targets: list[str], *, archived_at: str | None) -> None:
    from msgspec.structs import replace

    from jp.cli.output import print_result
    from jp.cli.places import acquire, open_session, open_workspace
    from jp.cli.targets import choose_all
    from jp.cli.tidying import tidy
    from jp.workspace.metadata import Metadata

    word = "unarchived" if archived_at is None else "archived"
    require_persistence(options, f"jp conversation {word.removesuffix('d')}")
    workspace = open_workspace(options)
    session = open_session(workspace)
    chosen = choose_all(targets, workspace, session, archived=archived_at is None)

    def change(before: Metadata) -> Metadata:
        is_same = (before.archived_at is None) == (archived_at is None)
        return before if is_same else replace(before, archived_at=archived_at)

    for info in chosen:
        lock = workspace.lock(info)
        acquire(lock, options)
        with lock:
            workspace.update_metadata(info, lock, change)
    if archived_at is not None:
        _deactivate(workspace, chosen)
    lines = [f"{word} {_named(info)}" for info in chosen]
    print_result(options, text="\n".join(lines), value={word: [info.id for info in chosen]})
    tidy(options, workspace)


def _deactivate(workspace: AnyWorkspace, chosen: list[ConversationInfo]) -> None:
    from jp.workspace.layout import storage_at
    from jp.workspace.session import SESSIONS
    from jp.workspace.stamp import SYSTEM
    from jp.workspace.terminals import deactivate

    own = storage_at(workspace.root, workspace.user_data, local=True).directory
    deactivate(own / SESSIONS, {str(info.id) for info in chosen}, now=SYSTEM.now())


def _named(info: ConversationInfo) -> str:
    from jp.cli.targets import title_of

    return f"{info.id} ({title_of(info)})"
