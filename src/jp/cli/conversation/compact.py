"""`jp conversation compact`."""

from __future__ import annotations

from typing import Annotated

import typer

from jp.cli.argv import is_number
from jp.cli.candidates import is_titled
from jp.cli.options import GlobalOptions
from jp.cli.parameters import bound_value, optional_value
from jp.cli.targets import TARGET_HELP
from jp.errors import ExitCode


def compact(
    options: GlobalOptions,
    *,
    targets: Annotated[list[str] | None, typer.Argument(help=TARGET_HELP, metavar="TARGET")] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="What to do: default, heavy, light, or your own.")
    ] = None,
    start: Annotated[
        str | None,
        bound_value(
            "--from",
            bare="last",
            help_text="The first turn; bare: what follows the last compaction.",
            reads=is_titled,
        ),
    ] = None,
    end: Annotated[str | None, bound_value("--to", bare="-0", help_text="The last turn.", reads=is_titled)] = None,
    turn: Annotated[
        str | None, typer.Option("--turn", metavar="N|A..B", help="These turns; they count from 0, -1 is the last.")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep", "--keep-last", metavar="N", help="Leave the newest N turns alone, or 2h, or 20k tokens of them."
        ),
    ] = None,
    keep_first: Annotated[
        str | None, typer.Option("--keep-first", metavar="N", help="Leave the first N turns alone, in the same way.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget", metavar="N", help="Leave out no more than it takes to have 40k tokens, or 25% of them."
        ),
    ] = None,
    reasoning: Annotated[bool, typer.Option("-r", "--reasoning", help="Leave the model's reasoning out.")] = False,
    tools: Annotated[
        str | None,
        optional_value(
            "-t",
            "--tools",
            bare="strip",
            metavar="MODE",
            reads=("strip", "digest", "omit", "strip-requests", "strip-responses").__contains__,
            help_text="Tool calls: strip (bare), digest, omit, strip-requests or strip-responses.",
        ),
    ] = None,
    resources: Annotated[
        str | None,
        typer.Option("--resources", metavar="superseded", help="Leave out copies of what was delivered anew later."),
    ] = None,
    summarize: Annotated[
        str | None,
        optional_value(
            "-s",
            "--summarize",
            bare="",
            metavar="CONTEXT",
            reads=None,
            help_text="Have a summary written; CONTEXT is what matters.",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option("-m", "--model", metavar="ID", help="Who writes the summary.")] = None,
    local: Annotated[bool, typer.Option("--local", help="Write the summary from the log, without a model.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask where little would be freed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would come of it; write nothing.")] = False,
    propose: Annotated[bool, typer.Option("--propose", help="Have it made and shown; --apply ID writes it.")] = False,
    apply: Annotated[str | None, typer.Option("--apply", metavar="ID", help="Write what was proposed.")] = None,
    list_profiles: Annotated[
        bool, typer.Option("--list-profiles", help="List the profiles and what each does; change nothing.")
    ] = False,
    reset: Annotated[
        str | None,
        optional_value(
            "--reset",
            bare="all",
            metavar="N",
            reads=lambda word: word == "all" or is_number(word),
            help_text="Undo all compactions, or the Nth that `show` lists.",
        ),
    ] = None,
) -> ExitCode:
    """Leave old things out of what the model is shown. Nothing is deleted: it is undone with `jp conversation undo`.

    A profile says what is left out: `default` strips reasoning, tool calls and outdated copies of resources, `light`
    only reasoning, `heavy` has a model summarise whole turns; your own stand in `conversation.compaction.profiles`.
    Options that say what to do stand in its place. The newest three turns stay as they are, unless a range or --keep
    says otherwise.

    With --budget the least valuable things go first, and no more than needed: outdated copies, reasoning, arguments,
    results, those of the newest turns last; with --local or --summarize the oldest turns at last.

    A bound is the number of a turn, from 0 on; -3 is three turns before the last one; 5h is five hours ago; `last` is
    what follows the last compaction of the same kind.

    The exit code is 0 where something was, or would be, left out, and 12 where there is nothing to do.

    Examples:
        jp conversation compact --dry-run
        jp conversation compact --profile heavy --keep 20k
        jp conversation compact --tools=strip-responses --from 5h --to -3
        jp conversation compact --dry-run --format json last | jq .tokens
        jp conversation compact --budget 25% --local
        jp conversation compact --propose --summarize="the API"
        jp conversation compact --list-profiles
        jp conversation compact --reset
    """
    import anyio

    from jp.cli.compacting.command import CompactArguments, run_compact
    from jp.cli.compacting.order import PolicyFlags, RangeFlags

    arguments = CompactArguments(
        targets=tuple(targets or (".",)),
        profile=profile,
        policies=PolicyFlags(reasoning=reasoning, tools=tools, resources=resources, summary=summarize),
        ranges=RangeFlags(start=start, end=end, keep_first=keep_first, keep_last=keep, turn=turn),
        model=model,
        local=local,
        budget=budget,
        dry_run=dry_run,
        propose=propose,
        apply=apply,
        reset=reset,
        list_profiles=list_profiles,
        yes=yes,
    )
    return anyio.run(run_compact, options, arguments)
