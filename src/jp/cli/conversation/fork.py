"""`jp conversation fork`."""

from __future__ import annotations

from typing import Annotated

import typer

from jp.app.targets import TARGET_HELP
from jp.cli.command_line.loading import is_usual_profile, optional_value
from jp.cli.options import GlobalOptions, require_persistence


def fork(
    options: GlobalOptions,
    *,
    target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".",
    turn: Annotated[
        str | None,
        typer.Option("--turn", metavar="N|A..B", help="Copy these turns; they count from 0, -1 is the last."),
    ] = None,
    last: Annotated[int | None, typer.Option("--last", metavar="N", min=1, help="Copy the last N turns.")] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Its title, in place of its source's.")
    ] = None,
    labels: Annotated[
        list[str] | None, typer.Option("--label", metavar="K=V", help="Another label; repeatable.")
    ] = None,
    compact: Annotated[
        str | None,
        optional_value(
            "--compact",
            bare="",
            metavar="PROFILE",
            reads=is_usual_profile,
            help_text="Shrink its context; see `jp conversation compact`.",
        ),
    ] = None,
    local: Annotated[bool, typer.Option("--local", help="Keep it out of the workspace.")] = False,
    no_local: Annotated[bool, typer.Option("--no-local", help="Keep it in the workspace.")] = False,
    no_use: Annotated[bool, typer.Option("--no-use", help="Keep the active conversation.")] = False,
) -> None:
    """Copy turns of a conversation into a new one, which becomes the active one. Prints its id.

    All turns, or a range of whole ones: `--turn ..3` up to and including turn 3, `--turn 2..5`, `--turn -2..`. The
    fork keeps title, labels, settings and attachments, and lies where its source lies. What was compacted stays so;
    only a summary that tells of turns which are not copied is left behind.

    Examples:
        jp conversation fork
        jp conversation fork --turn ..3 --title "Another way"
        jp conversation fork --compact=heavy
        jp query --id "$(jp conversation fork --no-use last)" "and in French?"
    """
    import anyio
    from msgspec import to_builtins

    from jp.app.forking import ForkRequest
    from jp.app.forking import fork as fork_conversation
    from jp.cli.output import print_result
    from jp.errors import UsageError

    require_persistence(options, "jp conversation fork")
    if local and no_local:
        raise UsageError("--local and --no-local exclude each other", hint="leave one of them out")
    request = ForkRequest(
        turns=turn,
        last=last,
        title=title,
        labels=tuple(labels or ()),
        compact=compact,
        local=True if local else False if no_local else None,
        activate=not no_use,
    )
    report = anyio.run(fork_conversation, options, target, request)
    print_result(options, text=report.id, value=to_builtins(report))
