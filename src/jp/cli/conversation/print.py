"""`jp conversation print`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions
from jp.cli.targets import TARGET_HELP

if TYPE_CHECKING:
    from jp.cli.held import ReadConversation
    from jp.render.transcript import Extent

_TOOL_LINES = 10


def print_stream(
    options: GlobalOptions,
    *,
    target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".",
    turn: Annotated[
        str | None,
        typer.Option("--turn", metavar="N|A..B", help="These turns; they count from 0, -1 is the last."),
    ] = None,
    last: Annotated[int | None, typer.Option("--last", metavar="N", min=1, help="The last N turns only.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Attached content, tool output and settings whole.")] = False,
    hide_reasoning: Annotated[bool, typer.Option("--hide-reasoning", help="Leave out the model's reasoning.")] = False,
    hide_tools: Annotated[bool, typer.Option("--hide-tools", help="Leave out tool calls and their output.")] = False,
    compacted: Annotated[
        bool, typer.Option("--compacted", help="What the model is shown, under the numbers of the turns.")
    ] = False,
    as_sent: Annotated[
        str | None,
        typer.Option(
            "--as-sent", metavar="TURN[.CYCLE]", help="The request of this turn, as it went to the provider, instead."
        ),
    ] = None,
) -> None:
    """Print what was said: requests, answers, attachments, tool calls.

    With --format json, every entry as it is stored, one on each line, content inline; with --compacted, everything
    that the model is shown, one on each line.

    Examples:
        jp conversation print
        jp conversation print last --turn -1
        jp conversation print --format json | jq -r '.message // empty'
        jp conversation print --compacted
        jp conversation print --as-sent -1 | jq .messages
    """
    from jp.cli.held import read_conversation
    from jp.cli.output import write_stdout

    read = read_conversation(options, target, lenient=True)
    if as_sent is not None:
        _refuse_both(compacted=compacted)
        from jp.cli.conversation.as_sent import print_as_sent

        print_as_sent(options, read, as_sent)
        return
    chosen = _chosen(read, turn, last)
    parts = _Parts(full=full, reasoning=not hide_reasoning, tools=not hide_tools, compacted=compacted)
    for piece in _pieces(options, read, chosen, parts):
        write_stdout(piece)


def _refuse_both(*, compacted: bool) -> None:
    from jp.errors import UsageError

    if compacted:
        raise UsageError("--compacted and --as-sent exclude each other", hint="leave one of them out")


class _Parts:
    """What of a conversation is printed."""

    def __init__(self, *, full: bool, reasoning: bool, tools: bool, compacted: bool) -> None:
        self.full = full
        self.compacted = compacted
        self.reasoning = reasoning
        self.tools = tools


def _pieces(
    options: GlobalOptions, read: ReadConversation, chosen: frozenset[int] | None, parts: _Parts
) -> Iterator[str]:
    from jp.cli.looks import look_of_stdout
    from jp.render.history import json_history, pretty_history, text_history
    from jp.render.transcript import Extent

    if options.format == "json" and not parts.compacted:
        return json_history(read.entries, load=read.loader.load, turns=chosen)
    extent = Extent(
        turns=chosen,
        reasoning=parts.reasoning,
        tools=parts.tools,
        tool_lines=None if parts.full else _TOOL_LINES,
        attachment_lines=None if parts.full else 0,
    )
    if parts.compacted:
        return _view(options, read, extent)
    if options.format == "text":
        return text_history(read.entries, load=read.loader.load, extent=extent)
    look = look_of_stdout(options, read.resolved.config.style)
    return pretty_history(read.entries, load=read.loader.load, look=look, extent=extent)


def _view(options: GlobalOptions, read: ReadConversation, extent: Extent) -> Iterator[str]:
    """What the model is shown."""
    from jp.cli.looks import look_of_stdout
    from jp.compaction.fact_lines import FactLines
    from jp.compaction.projection import project
    from jp.render.history import pretty_of, text_of
    from jp.render.transcript import view_lines, view_parts

    view = project(read.entries, FactLines())
    if options.format == "json":
        return view_lines(view, load=read.loader.load, extent=extent)
    parts = view_parts(view, load=read.loader.load, extent=extent)
    if options.format == "text":
        return text_of(parts)
    return pretty_of(parts, look_of_stdout(options, read.resolved.config.style))


def _chosen(read: ReadConversation, turn: str | None, last: int | None) -> frozenset[int] | None:
    """The numbers of the turns to print, None for all."""
    from jp.cli.turn_range import parse_turns
    from jp.conversation.turns import turns_of
    from jp.errors import UsageError

    if turn is not None and last is not None:
        raise UsageError("--turn and --last exclude each other", hint="leave one of them out")
    turns = turns_of(read.entries)
    if turn is not None:
        found = parse_turns(turn, len(turns), option="--turn")
        return frozenset(range(found.first, found.last + 1))
    return None if last is None else frozenset(found.number for found in turns[-last:])
