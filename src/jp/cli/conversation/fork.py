"""`jp conversation fork`, `import` and `rm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import asdict

from jp.app.targets import TARGET_HELP
from jp.app.values import split_turn
from jp.cli.command_line.loading import is_usual_profile, optional_value
from jp.cli.options import GlobalOptions, require_persistence
from jp.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jp.app.conversations import ImportedConversation
    from jp.app.management import DeletedConversation, ListedConversation


def fork(
    options: GlobalOptions,
    *,
    target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".",
    turn: Annotated[
        str | None,
        typer.Option("--turn", metavar="N|A..B", help="Copy these turns; they count from 0, -1 is the last"),
    ] = None,
    last: Annotated[int | None, typer.Option("--last", metavar="N", min=1, help="Copy the last N turns")] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Its title (default: that of its source)")
    ] = None,
    labels: Annotated[
        list[str] | None, typer.Option("--label", metavar="K=V", help="Another label; repeatable")
    ] = None,
    compact: Annotated[
        str | None,
        optional_value(
            "--compact",
            bare="",
            metavar="PROFILE",
            reads=is_usual_profile,
            help_text="Shrink its context; see `jp conversation compact`",
        ),
    ] = None,
    local: Annotated[bool, typer.Option("--local", help="Store it outside the workspace")] = False,
    no_local: Annotated[bool, typer.Option("--no-local", help="Store it in the workspace")] = False,
    no_use: Annotated[bool, typer.Option("--no-use", help="Do not make it the active conversation")] = False,
) -> None:
    """Copy turns of a conversation into a new one, which becomes the active one. Prints its id.

    All turns, or a range of whole ones: `--turn ..3` up to and including turn 3, `--turn 2..5`, `--turn -2..`. The fork
    keeps title, labels, settings and attachments, and is stored beside its source. Compactions are kept, except for a
    summary of turns that are not copied.

    Examples:
        jp conversation fork
        jp conversation fork --turn ..3 --title "Another way"
        jp conversation fork --compact=heavy
        jp query --id "$(jp conversation fork --no-use last)" "and in French?"
    """
    import anyio
    from msgspec import to_builtins

    from jp.app.fork import ForkRequest
    from jp.app.fork import fork as fork_conversation
    from jp.cli.output import print_result
    from jp.errors import UsageError

    require_persistence(options, "jp conversation fork")
    target, last_turn = split_turn(target)
    turn = f"..{last_turn}" if turn is None and last_turn is not None else turn
    if local and no_local:
        raise UsageError("--local and --no-local exclude each other", hint="remove one of them")
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


def remove(
    options: GlobalOptions,
    *,
    targets: Annotated[list[str], typer.Argument(help=TARGET_HELP, metavar="TARGET")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask")] = False,
) -> ExitCode | None:
    """Delete conversations permanently.

    On a terminal it asks; elsewhere it needs --yes. Drafts of the conversation are deleted with it. Attached content
    stays, because other conversations can share it.

    Examples:
        jp conversation rm jp-c17800836875
        jp conversation rm --yes last
    """
    from jp.app.management import delete
    from jp.cli.output import print_result

    require_persistence(options, "jp conversation rm")
    deleted = delete(options, targets) if yes else delete(options, targets, confirm=_confirm)
    if not deleted:
        options.notice("nothing was deleted")
        return ExitCode.FAILURE
    text = "\n".join(f"deleted {_named(item)}{_drafts_text(item.drafts)}" for item in deleted)
    print_result(options, text=text, value={"deleted": [item.id for item in deleted]})
    return None


def _drafts_text(count: int) -> str:
    return f" and {count} {'draft' if count == 1 else 'drafts'}" if count else ""


def _named(item: ListedConversation | DeletedConversation) -> str:
    from jp.render.sanitize import escape_line

    return f"{item.id} ({escape_line(item.name)})"


def _confirm(chosen: Sequence[ListedConversation]) -> bool:
    from functools import partial

    from jp.cli.terminal.approval import run_question
    from jp.errors import UsageError
    from jp.render.approval import Sheet
    from jp.render.prompts import About, ask_yes_no

    names = ", ".join(_named(info) for info in chosen)
    if len(chosen) == 1:
        ask = partial(ask_yes_no, f"Delete {names} permanently?", default=False)
    else:
        about = About(sheets=(Sheet(text="\n".join(_named(info) for info in chosen)),))
        ask = partial(
            ask_yes_no, f"Delete these {len(chosen):,} conversations permanently?", default=False, about=about
        )
    answer = run_question(ask)
    if answer is None:
        raise UsageError(f"deleting {names} needs consent, and nobody can be asked here", hint="add --yes")
    return answer


def import_conversations(
    options: GlobalOptions,
    *,
    paths: Annotated[
        list[str],
        typer.Argument(help="A directory of conversations, or a file to import", metavar="PATH"),
    ],
    local: Annotated[bool, typer.Option("--local", help="Store them outside the workspace")] = False,
) -> None:
    """Copy conversations of jp, JP (Rust), llm, Claude Code or Codex into this workspace.

    PATH is the directory of a conversation, a directory of such directories, a whole workspace, a bundle that
    `jp conversation export` wrote, `logs.db` of llm, or a JSONL session of Claude Code or Codex. Nothing there is
    changed. Titles, labels, pins and ids stay; a conversation whose id is taken gets the next free one. Either all of
    them are copied or none. Settings of theirs that run programs or use the network are ignored until you accept them:
    `jp workspace trust --id ID`.

    Examples:
        jp conversation import ~/old/.jp/conversations/17800836875-fix-the-build
        jp conversation import --local ~/old
        jp conversation import "$(llm logs path)"
    """
    from jp.app.conversations import import_
    from jp.cli.output import print_result

    require_persistence(options, "jp conversation import")
    report = import_(options, paths, local=local)
    for item in report.skipped:
        options.notice(f"{item.source!r} is here already, as {item.id}")
    value = {"imported": [*map(_as_value, report.imported)], "skipped": [*map(_as_value, report.skipped)]}
    print_result(options, text="\n".join(map(_line, report.imported)), value=value)


def _as_value(item: ImportedConversation) -> dict[str, object]:
    return {name: value for name, value in asdict(item).items() if name != "name"}


def _line(item: ImportedConversation) -> str:
    renamed = "" if item.original_id in {None, item.id} else f" (another conversation has the id {item.original_id})"
    return f"imported {item.id}  {item.name}{renamed}"
