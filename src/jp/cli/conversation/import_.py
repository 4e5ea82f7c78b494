"""`jp conversation import`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions, require_persistence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jp.workspace.import_source import ImportSource
    from jp.workspace.importing import Imported


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
    from jp.cli.output import notice, print_result
    from jp.cli.places import open_workspace
    from jp.errors import UsageError
    from jp.workspace.ephemeral import EphemeralWorkspace
    from jp.workspace.importing import import_conversations

    require_persistence(options, "jp conversation import")
    workspace = open_workspace(options)
    if isinstance(workspace, EphemeralWorkspace):
        raise UsageError("nothing is written here", hint="leave --no-persist out")
    done = import_conversations(workspace, _sources(paths), local=local)
    known = [item for item in done if not item.is_new]
    if len(known) == len(done):
        raise _nothing_new(known)
    for item in known:
        notice(options, f"{str(item.source.directory)!r} is here already, as {item.info.id}")
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
    from jp.workspace.import_source import find_sources, read_source

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
    from jp.cli.targets import title_of

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
