"""`jp conversation path`."""

from __future__ import annotations

from typing import Annotated

import typer

from jp.cli.options import GlobalOptions
from jp.cli.targets import TARGET_HELP


def path(
    options: GlobalOptions,
    *,
    target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".",
    log: Annotated[bool, typer.Option("--log", help="The file that holds the entries.")] = False,
) -> None:
    """Print where a conversation is stored.

    Examples:
        ls "$(jp conversation path)"
        tail -1 "$(jp conversation path last --log)"
    """
    from jp.cli.output import print_result
    from jp.cli.places import open_session, open_workspace
    from jp.cli.targets import choose
    from jp.workspace.layout import EVENTS, ORIGINAL_EVENTS

    workspace = open_workspace(options)
    info = choose(target, workspace, open_session(workspace))
    place = info.directory
    if log:
        originals = info.directory / ORIGINAL_EVENTS
        is_originals = originals.exists() and not (info.directory / EVENTS).exists()
        place = originals if is_originals else info.directory / EVENTS
    print_result(options, text=str(place), value={"id": info.id, "path": str(place)})
