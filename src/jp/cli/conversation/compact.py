"""`jp conversation compact`: for each conversation preview, propose, apply, write or reset."""

from __future__ import annotations

from collections.abc import Sequence
from time import time
from typing import Annotated, Any

import msgspec
import typer
from msgspec.structs import replace

from jp.app.compaction.compact import (
    CompactionRequest,
    CompactionResult,
    append,
    chosen_compactions,
    frees_little,
    little_freed,
    make_compaction,
    over_budget,
    overlay_value,
    plan_compaction,
    preview_parts,
    preview_value,
    proposals_of,
    turns_text,
    undo_compactions,
)
from jp.app.compaction.order import (
    PolicyFlags,
    RangeFlags,
    bounds_of,
    listed_profiles,
    parse_budget,
    policies_text,
    profiles_table,
    profiles_value,
)
from jp.app.compaction.preview import Previewer
from jp.app.conversations import OpenConversation, ReadConversation, open_conversation, read_conversation
from jp.app.options import AnyWorkspace, open_session, open_workspace
from jp.app.targets import TARGET_HELP, choose_all, is_titled
from jp.cli.command_line.argv import is_number
from jp.cli.command_line.loading import bound_value, optional_value
from jp.cli.options import GlobalOptions, require_persistence
from jp.cli.output import print_result
from jp.cli.terminal.wording import worded
from jp.config.model import CompactionConfig
from jp.conversation.entries import AnyEntry, Compaction
from jp.conversation.turns import turns_of, undone
from jp.errors import ExitCode, UsageError
from jp.render.tables import Part, count_text


class CompactArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command, as they were written."""

    targets: tuple[str, ...]
    request: CompactionRequest = CompactionRequest()
    dry_run: bool = False
    propose: bool = False
    apply: str | None = None
    reset: str | None = None
    list_profiles: bool = False
    yes: bool = False


class _Report(msgspec.Struct, frozen=True, kw_only=True):
    """The report on one conversation. `did`: something was, or would be, compacted or undone."""

    text: Sequence[Part]
    value: dict[str, Any]
    did: bool


async def run_compact(options: GlobalOptions, arguments: CompactArguments) -> ExitCode:
    """Compact, and return the exit code: 0 if there was something to do in any of the conversations, else 12.

    Raises:
        JpError: it failed; conversations that were compacted before stay so.
    """
    _check(arguments)
    if arguments.list_profiles:
        found = listed_profiles(read_conversation(options, arguments.targets[0], optional=True).resolved)
        listed = [replace(profile, source=worded(profile.source)) for profile in found]
        print_result(options, text=[profiles_table(listed)], value=profiles_value(listed))
        return ExitCode.OK
    targets = _targets(options, arguments)
    reports: list[_Report] = []
    try:
        for target in targets:
            report = await _report(options, arguments, target)
            reports.append(report)
    finally:
        # What was done before a failure is said, too.
        if reports:
            _print(options, reports, several=len(targets) > 1)
    return ExitCode.OK if any(report.did for report in reports) else ExitCode.NOTHING_TO_DO


def _targets(options: GlobalOptions, arguments: CompactArguments) -> Sequence[str]:
    """Return the ids of the conversations, each once; all of them are looked up before any is compacted."""
    workspace = open_workspace(options)
    return [str(info.id) for info in choose_all(options, arguments.targets, workspace, open_session(workspace))]


def _print(options: GlobalOptions, reports: Sequence[_Report], *, several: bool) -> None:
    parts: list[Part] = []
    for report in reports:
        gap = [""] if parts and report.text else []
        parts += [*gap, *([str(report.value["id"])] if several else []), *report.text]
    value = {"conversations": [report.value for report in reports]} if several else reports[0].value
    print_result(options, text=parts, value=value)


def _check(arguments: CompactArguments) -> None:
    ways = {
        "--dry-run": arguments.dry_run,
        "--propose": arguments.propose,
        "--apply": arguments.apply is not None,
        "--reset": arguments.reset is not None and not arguments.dry_run,
        "--list-profiles": arguments.list_profiles,
    }
    given = [name for name, is_given in ways.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given[:2])} exclude each other", hint="remove one of them")
    request = arguments.request
    if request.is_local and request.model is not None:
        raise UsageError("--local and --model exclude each other", hint="--local writes the summary without a model")
    if arguments.apply is not None and len(arguments.targets) > 1:
        raise UsageError("--apply takes one conversation", hint="a proposal is for the one that it was made for")
    alone = {**ways, "--reset": arguments.reset is not None}
    for name in ("--apply", "--reset", "--list-profiles"):
        if alone[name] and request != CompactionRequest():
            raise UsageError(f"{name} takes no profile, policy or range", hint="remove them")
    # A value that has no meaning is refused before a conversation is looked for.
    bounds_of(CompactionConfig(), request.ranges)
    if request.budget is not None:
        parse_budget(request.budget, option="--budget")


async def _report(options: GlobalOptions, arguments: CompactArguments, target: str) -> _Report:
    if arguments.dry_run:
        return _dry_run(options, arguments, target)
    require_persistence(options, "jp conversation compact")
    with open_conversation(options, target) as held:
        if arguments.reset is not None:
            return _reset(held, arguments.reset, options)
        if arguments.apply is not None:
            return _apply(held, arguments.apply, options)
        return await _compact(held, arguments, options)


def _dry_run(options: GlobalOptions, arguments: CompactArguments, target: str) -> _Report:
    if arguments.reset is not None:
        read = read_conversation(options, target)
        found = chosen_compactions(read.entries, arguments.reset)
        lines = [f"would undo {_named(overlay)}" for overlay in found]
        value = {"id": _id(read), "reset": [overlay_value(overlay) for overlay in found]}
        return _Report(text=lines or ["there is no compaction to undo"], value=value, did=bool(found))
    planned = plan_compaction(options, target, arguments.request)
    read, preview = planned.conversation, planned.preview
    nothing = (_nothing(read.entries, arguments),)
    text = preview_parts(preview, base=_base(read.workspace)) if preview.frees else nothing
    return _Report(text=text, value={"id": _id(read), **preview_value(preview)}, did=preview.frees)


def _id(read: ReadConversation) -> str | None:
    return None if read.info is None else str(read.info.id)


async def _compact(held: OpenConversation, arguments: CompactArguments, options: GlobalOptions) -> _Report:
    made = await make_compaction(options, held, arguments.request)
    if not made.overlays:
        value: dict[str, Any] = {"id": held.info.id, "overlays": [], "frees": False}
        return _Report(text=[_nothing(held.log.entries, arguments)], value=value, did=False)
    if arguments.propose:
        return _propose(held, made)
    if not arguments.yes and frees_little(made.effect) and not await _confirm(made):
        return _Report(
            text=["nothing was changed"], value={**_value(held, made), "overlays": [], "frees": False}, did=False
        )
    return _written(held, made)


async def _confirm(made: CompactionResult) -> bool:
    """Return whether what frees little is wanted; where nobody can be asked, the command itself says so."""
    from jp.render.prompts import ask_yes_no

    return await ask_yes_no(f"{little_freed(made.effect).capitalize()}. Compact anyway?", default=False) is not False


def _propose(held: OpenConversation, made: CompactionResult) -> _Report:
    identity = proposals_of(held).keep(str(held.info.id), made.overlays, held.log.entries)
    lines = [f"proposed for {_named(overlay)}" for overlay in made.overlays]
    lines += [overlay.summary.text for overlay in made.overlays if overlay.summary is not None]
    lines.append(_tokens(made))
    lines.append(f"apply it with `jp conversation compact --apply {identity}{_where(held)}`")
    value = {"proposal": identity, **_value(held, made)}
    return _Report(text=lines, value=value, did=True)


def _apply(held: OpenConversation, identity: str, options: GlobalOptions) -> _Report:
    proposals = proposals_of(held)
    overlays = proposals.read(identity, str(held.info.id), held.log.entries)
    config = held.with_layers(()).config
    effect = Previewer(tuple(held.log.entries), config, held.log, now=time()).effect(overlays)
    if effect.freed <= 0:
        value: dict[str, Any] = {"id": held.info.id, "overlays": [], "frees": False}
        return _Report(text=["it would not make the view smaller any more"], value=value, did=False)
    report = _written(held, CompactionResult(overlays=overlays, effect=effect))
    proposals.forget(identity)
    return report


def _written(held: OpenConversation, made: CompactionResult) -> _Report:
    append(held.log, made.overlays)
    lines = [f"compacted {_named(overlay)}" for overlay in made.overlays]
    lines.append(_tokens(made))
    if made.budget is not None and made.effect.after > made.budget:
        lines.append(over_budget(made.budget, made.effect.after))
    if frees_little(made.effect):
        lines.append(little_freed(made.effect))
    if made.unsupported:
        lines.append(f"removed from the summary: {count_text(made.unsupported, 'claim')} without evidence")
    lines.append(f"undo it with `jp conversation undo{_where(held)}`")
    return _Report(text=lines, value=_value(held, made), did=True)


def _reset(held: OpenConversation, which: str, options: GlobalOptions) -> _Report:
    found = undo_compactions(held, which)
    value = {"id": held.info.id, "reset": [overlay_value(overlay) for overlay in found]}
    if not found:
        return _Report(text=["there is no compaction to undo"], value=value, did=False)
    lines = [f"undid {_named(overlay)}" for overlay in found]
    lines.append(f"bring it back with `jp conversation redo{_where(held)}`")
    return _Report(text=lines, value=value, did=True)


def _named(overlay: Compaction) -> str:
    return f"{turns_text(overlay.from_turn, overlay.to_turn)}: {policies_text(overlay)}"


def _tokens(made: CompactionResult) -> str:
    return f"tokens: about {made.effect.before:,} before, {made.effect.after:,} now"


def _value(held: OpenConversation, made: CompactionResult) -> dict[str, Any]:
    return {
        "id": held.info.id,
        "overlays": [overlay_value(overlay) for overlay in made.overlays],
        "tokens": {"before": made.effect.before, "after": made.effect.after, "freed": made.effect.freed},
        "frees": True,
    }


def _where(held: OpenConversation) -> str:
    return f" {held.info.id}"


def _nothing(entries: Sequence[AnyEntry], arguments: CompactArguments) -> str:
    gone = undone(entries)
    turns = sum(turn.id not in gone for turn in turns_of(entries))
    if not turns:
        return "nothing to compact: there is no turn"
    said = f"nothing to compact in {count_text(turns, 'turn')}"
    return said if arguments.request.ranges != RangeFlags() else f"{said}; `--keep 0` covers every turn"


def _base(workspace: AnyWorkspace) -> str:
    """Return the URI of the workspace's root, empty outside of any."""
    return "" if workspace.root is None else f"{workspace.root.as_uri()}/"


def compact(
    options: GlobalOptions,
    *,
    targets: Annotated[list[str] | None, typer.Argument(help=TARGET_HELP, metavar="TARGET")] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="Profile: default, heavy, light, or your own")
    ] = None,
    start: Annotated[
        str | None,
        bound_value(
            "--from",
            bare="last",
            help_text="The first turn; bare: what follows the last compaction",
            reads=is_titled,
        ),
    ] = None,
    end: Annotated[str | None, bound_value("--to", bare="-0", help_text="The last turn", reads=is_titled)] = None,
    turn: Annotated[
        str | None, typer.Option("--turn", metavar="N|A..B", help="These turns; they count from 0, -1 is the last")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep", "--keep-last", metavar="N", help="Keep the newest N turns, or 2h, or 20k tokens of them"
        ),
    ] = None,
    keep_first: Annotated[
        str | None,
        typer.Option("--keep-first", metavar="N", help="Keep the first N turns, or 2h, or 20k tokens of them"),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="N", help="Shrink the context to 40k tokens, or to 25% of it, and no further"),
    ] = None,
    reasoning: Annotated[bool, typer.Option("-r", "--reasoning", help="Strip the model's reasoning")] = False,
    tools: Annotated[
        str | None,
        optional_value(
            "-t",
            "--tools",
            bare="strip",
            metavar="MODE",
            reads=("strip", "digest", "omit", "strip-requests", "strip-responses").__contains__,
            help_text="Tool calls: strip (bare), digest, omit, strip-requests or strip-responses",
        ),
    ] = None,
    resources: Annotated[
        str | None,
        typer.Option("--resources", metavar="superseded", help="Hide outdated copies of refreshed files"),
    ] = None,
    summarize: Annotated[
        str | None,
        optional_value(
            "-s",
            "--summarize",
            bare="",
            metavar="CONTEXT",
            reads=None,
            help_text="Write a summary; CONTEXT says what matters",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("-m", "--model", metavar="ID", help="Model that writes the summary")
    ] = None,
    local: Annotated[bool, typer.Option("--local", help="Write the summary from the log, without a model")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask if little would be freed")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Preview; change nothing")] = False,
    propose: Annotated[
        bool, typer.Option("--propose", help="Write a summary for review; apply it with --apply ID")
    ] = False,
    apply: Annotated[str | None, typer.Option("--apply", metavar="ID", help="Apply the proposal ID")] = None,
    list_profiles: Annotated[
        bool, typer.Option("--list-profiles", help="List the profiles and what each does; change nothing")
    ] = False,
    reset: Annotated[
        str | None,
        optional_value(
            "--reset",
            bare="all",
            metavar="N",
            reads=lambda word: word == "all" or is_number(word),
            help_text="Undo all compactions, or the Nth that `show` lists",
        ),
    ] = None,
) -> ExitCode:
    """Shrink the context: hide or summarize old turns. Nothing is deleted; undo it with `jp conversation undo`.

    A profile selects what to do: `default` strips reasoning, tool calls and outdated copies of resources, `light` only
    reasoning, `heavy` lets a model summarize whole turns; your own profiles are in `conversation.compaction.profiles`.
    Options for what to do replace the profile. The newest three turns stay unchanged, unless a range or --keep says
    otherwise.

    With --budget the least valuable content is removed first, and no more than needed: outdated copies, reasoning,
    arguments, results, those of the newest turns last; with --local or --summarize the oldest turns are summarized
    last.

    A bound is the number of a turn, from 0 on; -3 is three turns before the last one; 5h is five hours ago; `last` is
    the end of the last compaction of the same kind.

    The exit code is 0 if something was, or would be, compacted, and 12 if there is nothing to do.

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

    arguments = CompactArguments(
        targets=tuple(targets or (".",)),
        request=CompactionRequest(
            profile=profile,
            policies=PolicyFlags(reasoning=reasoning, tools=tools, resources=resources, summary=summarize),
            ranges=RangeFlags(start=start, end=end, keep_first=keep_first, keep_last=keep, turn=turn),
            model=model,
            is_local=local,
            budget=budget,
        ),
        dry_run=dry_run,
        propose=propose,
        apply=apply,
        reset=reset,
        list_profiles=list_profiles,
        yes=yes,
    )
    return anyio.run(run_compact, options, arguments)
