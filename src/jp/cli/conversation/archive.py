"""`jp conversation archive` and `unarchive`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.cli.targets import TARGET_HELP

if TYPE_CHECKING:
    from collections.abc import Callable

    from jp.cli.places import AnyWorkspace
    from jp.workspace.listing import ConversationInfo
    from jp.workspace.lock import Lock

Targets = Annotated[list[str], typer.Argument(help=TARGET_HELP, metavar="TARGET")]


def archive(options: GlobalOptions, *, targets: Targets) -> None:
    """Put conversations away. They leave `jp conversation ls` and are active in no terminal any more.

    They can be printed and forked; to continue one, bring it back with `jp conversation unarchive`.

    Examples:
        jp conversation archive .
        jp conversation ls --archived
    """
    _set(options, targets, _put_away, is_archived=True)


def unarchive(options: GlobalOptions, *, targets: Targets) -> None:
    """Bring archived conversations back. Targets that are no ids are looked for among the archived ones.

    Examples:
        jp conversation unarchive jp-c17800836875
        jp conversation unarchive '?'
    """
    _set(options, targets, _bring_back, is_archived=False)


def _put_away(workspace: AnyWorkspace, info: ConversationInfo, lock: Lock) -> None:
    from msgspec.structs import replace

    from jp.workspace.metadata import Metadata
    from jp.workspace.stamp import SYSTEM, timestamp

    def change(before: Metadata) -> Metadata:
        return replace(before, archived_at=before.archived_at or timestamp(SYSTEM.now()))

    if info.metadata.archived_at is None:
        workspace.update_metadata(info, lock, change)


def _bring_back(workspace: AnyWorkspace, info: ConversationInfo, lock: Lock) -> None:
    from jp.workspace.moving import unarchive_conversation
    from jp.workspace.workspace import Workspace

    if isinstance(workspace, Workspace):
        unarchive_conversation(workspace, info, lock)


def _set(
    options: GlobalOptions,
    targets: list[str],
    change: Callable[[AnyWorkspace, ConversationInfo, Lock], None],
    *,
    is_archived: bool,
) -> None:
    from jp.cli.output import print_result
    from jp.cli.places import acquire, open_session, open_workspace
    from jp.cli.targets import choose_all
    from jp.cli.tidying import tidy

    word = "archived" if is_archived else "unarchived"
    require_persistence(options, f"jp conversation {word.removesuffix('d')}")
    workspace = open_workspace(options)
    session = open_session(workspace)
    chosen = choose_all(targets, workspace, session, archived=not is_archived)

    for info in chosen:
        lock = workspace.lock(info)
        acquire(lock, options)
        with lock:
            change(workspace, info, lock)
    if is_archived:
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
