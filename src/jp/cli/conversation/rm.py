"""`jp conversation rm` and `import`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.app.targets import TARGET_HELP
from jp.cli.options import GlobalOptions, require_persistence
from jp.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jp.app.places import AnyWorkspace
    from jp.workspace.importing import Imported, ImportSource
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
    from jp.app.places import acquire, open_session, open_workspace
    from jp.app.settings import trust_store
    from jp.app.targets import choose_all
    from jp.cli.output import print_result

    require_persistence(options, "jp conversation rm")
    workspace = open_workspace(options)
    session = open_session(workspace)
    chosen = choose_all(options, targets, workspace, session)
    if not yes and not _agrees(chosen):
        options.notice("nothing was deleted")
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
    from jp.app.drafts import discard_drafts, drafts_directory

    directory = drafts_directory(workspace, info.id.digits, persistent=True, create=False)
    removed, kept = discard_drafts(directory)
    for path in kept:
        options.notice(f"somebody is writing a query to {info.id} right now, which stays in {str(path)!r}")
    return f" and {removed} {'draft' if removed == 1 else 'drafts'}" if removed else ""


def _named(info: ConversationInfo) -> str:
    from jp.app.targets import title_of
    from jp.render.escape import escape_line

    return f"{info.id} ({escape_line(title_of(info))})"


def _agrees(chosen: list[ConversationInfo]) -> bool:
    from functools import partial

    from jp.cli.terminal.dialogue import ask_alone
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


def import_conversations(
    options: GlobalOptions,
    *,
    paths: Annotated[
        list[str],
        typer.Argument(help="The directory of a conversation, or one that holds several.", metavar="PATH"),
    ],
    local: Annotated[bool, typer.Option("--local", help="Keep them out of the workspace, for yourself.")] = False,
) -> None:
    """Copy conversations from elsewhere into this workspace: jp's own, or those of the original JP.

    PATH is the directory of a conversation, a directory of such directories, or a whole workspace. Nothing there is
    changed. Titles, labels, pins and ids stay; where an id is taken by another conversation, the next free one is
    used. Either all of them come in or none. What they declare that runs or reaches out counts only once you have
    accepted it: `jp workspace trust --id ID`.

    Examples:
        jp conversation import ~/old/.jp/conversations/17800836875-fix-the-build
        jp conversation import --local ~/old
    """
    from jp.app.places import open_workspace
    from jp.cli.output import print_result
    from jp.errors import UsageError
    from jp.workspace.importing import import_conversations
    from jp.workspace.retention import EphemeralWorkspace

    require_persistence(options, "jp conversation import")
    workspace = open_workspace(options)
    if isinstance(workspace, EphemeralWorkspace):
        raise UsageError("nothing is written here", hint="leave --no-persist out")
    done = import_conversations(workspace, _sources(paths), local=local)
    known = [item for item in done if not item.is_new]
    if len(known) == len(done):
        raise _nothing_new(known)
    for item in known:
        options.notice(f"{str(item.source.directory)!r} is here already, as {item.info.id}")
    new = [item for item in done if item.is_new]
    print_result(
        options,
        text="\n".join(map(_line, new)),
        value={"imported": [_as_value(item) for item in new], "skipped": [_as_value(item) for item in known]},
    )


def _sources(paths: Sequence[str]) -> list[ImportSource]:
    """What is to be imported, each once, read and found to be whole."""
    from pathlib import Path

    from jp.errors import UsageError
    from jp.workspace.importing import find_sources, read_source

    found: dict[Path, Path] = {}
    for path in paths:
        if not path:
            raise UsageError("an empty path names no directory", hint="name the directory of a conversation")
        for directory in find_sources(Path(path).expanduser()):
            found.setdefault(directory.resolve(), directory)
    return [read_source(directory) for directory in found]


def _nothing_new(known: Sequence[Imported]) -> Exception:
    from jp.errors import UsageError

    first = known[0]
    what = repr(str(first.source.directory))
    if len(known) > 1:
        return UsageError(
            f"all {len(known)} conversations are here already, such as {what} as {first.info.id}",
            hint="list them with `jp conversation ls`",
        )
    return UsageError(
        f"{what} is here already, as {first.info.id}",
        hint=f"go on with it: `jp query --id {first.info.id}`; or copy it: `jp conversation fork {first.info.id}`",
    )


def _line(item: Imported) -> str:
    from jp.app.targets import title_of

    return f"imported {item.info.id}  {title_of(item.info)}{_renaming(item)}"


def _renaming(item: Imported) -> str:
    source = item.source.id
    return "" if source in {None, item.info.id} else f" (another conversation has the id {source})"


def _as_value(item: Imported) -> dict[str, object]:
    return {
        "id": item.info.id,
        "title": item.info.metadata.title,
        "path": str(item.info.directory),
        "source": str(item.source.directory),
        "original_id": item.source.id,
    }
