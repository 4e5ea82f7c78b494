"""`jp conversation fork`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.app.targets import TARGET_HELP
from jp.cli.command_line.loading import is_usual_profile, optional_value
from jp.cli.options import GlobalOptions, require_persistence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jp.app.forking import Fork, Forking
    from jp.conversation.entries import AnyEntry
    from jp.conversation.forking import TurnRange
    from jp.conversation.ids import ConversationId
    from jp.workspace.listing import ConversationInfo
    from jp.workspace.session import Session


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
            help_text="Leave old things out of what is sent of it; see `jp conversation compact`.",
        ),
    ] = None,
    local: Annotated[bool, typer.Option("--local", help="Keep it out of the workspace.")] = False,
    no_local: Annotated[bool, typer.Option("--no-local", help="Keep it in the workspace.")] = False,
    no_use: Annotated[bool, typer.Option("--no-use", help="Leave the active conversation as it is.")] = False,
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
    from jp.app.forking import Forking, with_labels
    from jp.app.held import tidy
    from jp.app.places import open_session, open_workspace
    from jp.app.settings import read_sources
    from jp.app.targets import choose, parse_labels, title_of
    from jp.app.values import given_title
    from jp.cli.output import print_result
    from jp.errors import UsageError

    require_persistence(options, "jp conversation fork")
    if local and no_local:
        raise UsageError("--local and --no-local exclude each other", hint="leave one of them out")
    wanted = parse_labels(labels or (), option="--label")
    new_title = None if title is None else given_title(title)
    workspace = open_workspace(options)
    session = open_session(workspace)
    source = choose(options, target, workspace, session)
    forking = Forking(options=options, workspace=workspace, sources=read_sources(options, workspace))
    place = True if local else False if no_local else None
    prepared = forking.prepare(source, lambda entries: _turns(entries, turn, last), local=place)
    _check_profile(forking, prepared, compact)
    for text in prepared.notices:
        options.notice(text)
    info = forking.write(prepared, with_labels(prepared.metadata, title=new_title, labels=wanted))
    _compact(options, forking, info, compact)
    is_active = _used(session, info.id, stays=no_use)
    options.notice(_said(prepared, title_of(source), is_active=is_active))
    value = {
        "id": info.id,
        "title": info.metadata.title,
        "local": info.local,
        "path": str(info.directory),
        "parent": _parent(prepared),
        "active": is_active,
    }
    print_result(options, text=info.id, value=value)
    tidy(options, workspace)


def _used(session: Session, conversation: ConversationId, *, stays: bool) -> bool:
    """Make a conversation the active one, unless that is to stay; whether it is."""
    if not stays:
        session.activate(conversation)
    return session.active() == conversation


def _check_profile(forking: Forking, prepared: Fork, profile: str | None) -> None:
    """Look for the profile while there is no fork yet."""
    if profile is not None:
        from jp.app.compaction.order import order_of

        config = forking.sources.resolve(conversation=prepared.layers).config
        order_of(config.conversation.compaction, profile=profile or None)


def _compact(options: GlobalOptions, forking: Forking, info: ConversationInfo, profile: str | None) -> None:
    """Compact a fork that was just written, or remove it again where that fails."""
    if profile is None:
        return
    from jp.cli.conversation.compact import compact_with_profile

    try:
        compact_with_profile(options, info.id, profile)
    except BaseException:
        forking.take_back(info)
        raise


def _parent(fork: Fork) -> dict[str, object]:
    return {"conversation": fork.source.id, "from_turn": fork.turns.first, "to_turn": fork.turns.last}


def _said(fork: Fork, title: str, *, is_active: bool) -> str:
    first, last = fork.turns.first, fork.turns.last
    turns = f"turn {first}" if first == last else f"turns {first} to {last}"
    active = "; the fork is active now" if is_active else ""
    return f"copied {turns} of {fork.source.id} ({title}){active}"


def _turns(entries: Sequence[AnyEntry], turn: str | None, last: int | None) -> TurnRange:
    """The turns that are copied. Those that were undone come along where they stand between others."""
    from jp.app.forking import parse_turns
    from jp.conversation.forking import TurnRange
    from jp.conversation.turns import turns_of, undone
    from jp.errors import UsageError

    if turn is not None and last is not None:
        raise UsageError("--turn and --last exclude each other", hint="leave one of them out")
    turns = turns_of(entries)
    if turn is not None:
        return parse_turns(turn, len(turns), option="--turn")
    gone = undone(entries)
    standing = [found.number for found in turns if found.id not in gone]
    first = 0 if last is None or last >= len(standing) else standing[-last]
    return TurnRange(first=first, last=len(turns) - 1)
