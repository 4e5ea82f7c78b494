"""`jp conversation print` and `recall`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from msgspec.structs import asdict

from jp.app.targets import TARGET_HELP
from jp.app.values import split_turn
from jp.cli.options import GlobalOptions

if TYPE_CHECKING:
    from jp.app.conversations import ReadConversation
    from jp.context.markers import Page
    from jp.errors import UsageError
    from jp.render.transcript import Extent
    from jp.tool.context_tools import FoundContent


_TOOL_LINES = 10


def print_stream(
    options: GlobalOptions,
    *,
    target: Annotated[str, typer.Argument(help=TARGET_HELP)] = ".",
    turn: Annotated[
        str | None,
        typer.Option("--turn", metavar="N|A..B", help="These turns; they count from 0, -1 is the last"),
    ] = None,
    last: Annotated[int | None, typer.Option("--last", metavar="N", min=1, help="The last N turns only")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Print attached content, tool output and settings in full")
    ] = False,
    hide_reasoning: Annotated[bool, typer.Option("--hide-reasoning", help="Omit the model's reasoning")] = False,
    hide_tools: Annotated[bool, typer.Option("--hide-tools", help="Omit tool calls and their output")] = False,
    compacted: Annotated[
        bool, typer.Option("--compacted", help="Print what the model sees, under the numbers of the turns")
    ] = False,
    as_sent: Annotated[
        str | None,
        typer.Option(
            "--as-sent", metavar="TURN[.CYCLE]", help="Print the request of this turn as it was sent to the provider"
        ),
    ] = None,
) -> None:
    """Print requests, answers, attachments and tool calls.

    With --format json, every entry as it is stored, one on each line, content inline; with --compacted, everything
    that the model is shown, one on each line.

    Examples:
        jp conversation print
        jp conversation print last --turn -1
        jp conversation print jp-c17800836875:3
        jp conversation print --format json | jq -r '.message // empty'
        jp conversation print --compacted
        jp conversation print --as-sent -1 | jq .messages
    """
    from jp.app.transcripts import read_turns, request_as_sent
    from jp.cli.output import print_result, write_stdout
    from jp.cli.terminal.pager import write_paged

    target, of_target = split_turn(target)
    turn = turn or of_target
    if as_sent is not None:
        _refuse_both(compacted=compacted)
        sent = request_as_sent(options, target, as_sent)
        print_result(options, text=msgspec.json.encode(sent.request.body).decode(), value=asdict(sent))
        return
    read = read_turns(options, target, turns=turn, last=last)
    parts = _Parts(full=full, reasoning=not hide_reasoning, tools=not hide_tools, compacted=compacted)
    pieces = _pieces(options, read.conversation, read.turns, parts)
    if os.isatty(1) and options.format != "json":
        write_paged("".join(pieces))
        return
    for piece in pieces:
        write_stdout(piece)


def _refuse_both(*, compacted: bool) -> None:
    from jp.errors import UsageError

    if compacted:
        raise UsageError("--compacted and --as-sent exclude each other", hint="remove one of them")


class _Parts:
    """The parts of a conversation to print."""

    def __init__(self, *, full: bool, reasoning: bool, tools: bool, compacted: bool) -> None:
        self.full = full
        self.compacted = compacted
        self.reasoning = reasoning
        self.tools = tools


def _pieces(
    options: GlobalOptions, read: ReadConversation, chosen: frozenset[int] | None, parts: _Parts
) -> Iterator[str]:
    from jp.cli.output import look_of_stdout
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
    """Yield what the model sees."""
    from jp.cli.output import look_of_stdout
    from jp.compaction.fact_lines import StatusLineFormatter
    from jp.compaction.projection import project
    from jp.render.history import pretty_of, text_of
    from jp.render.transcript import view_lines, view_parts

    view = project(read.entries, StatusLineFormatter())
    if options.format == "json":
        return view_lines(view, load=read.loader.load, extent=extent)
    parts = view_parts(view, load=read.loader.load, extent=extent)
    if options.format == "text":
        return text_of(parts)
    return pretty_of(parts, look_of_stdout(options, read.resolved.config.style))


def recall(
    options: GlobalOptions,
    *,
    handle: Annotated[str, typer.Argument(metavar="HANDLE", help="The handle, or at least its first 8 digits")],
    target: Annotated[str, typer.Option("-i", "--id", metavar="TARGET", help=TARGET_HELP)] = ".",
    offset: Annotated[
        int | None, typer.Option("--offset", metavar="N", min=0, help="First byte, counted from 0")
    ] = None,
    lines: Annotated[int | None, typer.Option("--lines", metavar="N", min=1, help="At most N lines of text")] = None,
) -> None:
    """Print content that is hidden or shortened in the model's view, by its handle.

    It is printed as stored, from the log of this conversation only: a block that a tool returned, an attached snapshot,
    a string in the arguments of a call. Text is printed in pages of at most 16 KiB, which end at a line, and the offset
    of the next page is printed to stderr. Images and other binary content are written whole to a pipe or a file, and
    not to a terminal. With --format json all content is in pages, binary content as base64, and `next_offset` is null
    on the last one.

    Examples:
        jp conversation recall 0123abcd
        jp conversation recall 0123abcd --offset 16384 --lines 100
        jp conversation recall 0123abcd --id last > picture.png
    """
    import os

    from jp.app.options import open_session, open_workspace
    from jp.app.query.sources import recalled
    from jp.app.targets import choose
    from jp.cli.output import print_result
    from jp.cli.terminal.streams import write_stdout_bytes

    workspace = open_workspace(options)
    info = choose(options, target, workspace, open_session(workspace))
    stream = workspace.read(info)
    for sentence in stream.notices:
        options.notice(sentence)
    found = recalled(handle, stream)
    is_shown = os.isatty(1)
    if not found.is_text and options.format != "json" and is_shown:
        raise _refusal(found)
    is_whole = not found.is_text and options.format != "json"
    page = _page(found, offset or 0, lines, whole=is_whole)
    if options.format == "json" or is_shown or (options.format == "pretty" and found.is_text):
        print_result(
            options,
            text=page.data.decode("utf-8", "replace"),
            value={"id": info.id, **_facts(found, page)},
            nothing="the content is empty",
        )
    else:
        write_stdout_bytes(page.data)
    if page.next_offset is not None and options.format != "json":
        where = "" if target == "." else f" --id {info.id}"
        more = f"{where} --offset {page.next_offset}{'' if lines is None else f' --lines {lines}'}"
        shown = f"{page.next_offset:,} of {len(found.data):,} bytes"
        options.notice(f"{shown}; go on with `jp conversation recall {found.handle}{more}`")


def _page(found: FoundContent, offset: int, lines: int | None, *, whole: bool) -> Page:
    """Return the page from `offset` on; `whole`: everything from there on."""
    from jp.context.markers import page_of_bytes, page_of_text
    from jp.errors import UsageError

    size = len(found.data)
    if offset and offset >= size:
        raise UsageError(f"--offset cannot be {offset}: the content has {size:,} bytes", hint="they count from 0")
    if found.is_text:
        return page_of_text(found.data, offset, lines=lines)
    if lines is not None:
        raise UsageError(f"{found.kind} has no lines", hint="remove --lines")
    return page_of_bytes(found.data, offset, most=size) if whole else page_of_bytes(found.data, offset)


def _facts(found: FoundContent, page: Page) -> dict[str, object]:
    """Return a page as data."""
    content: dict[str, object] = (
        {"text": page.data.decode("utf-8", "replace")} if found.is_text else {"blob": page.data}
    )
    return {
        "handle": found.handle,
        "sha256": found.sha256,
        "uri": found.uri,
        "mime_type": found.mime_type,
        "size": len(found.data),
        "offset": page.offset,
        "next_offset": page.next_offset,
        **content,
    }


def _refusal(found: FoundContent) -> UsageError:
    """Return the error for content that cannot be shown on a terminal."""
    from jp.errors import UsageError

    return UsageError(
        f"{found.kind} of {len(found.data):,} bytes is nothing for a terminal",
        hint=f"write it to a file: `jp conversation recall {found.handle} > FILE`",
    )
