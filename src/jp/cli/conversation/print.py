"""`jp conversation print` and `recall`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from jp.app.conversations import ReadConversation
from jp.app.targets import TARGET_HELP, split_turn
from jp.cli.options import GlobalOptions
from jp.cli.output import print_result
from jp.compaction.fact_lines import StatusLineFormatter
from jp.errors import JpError, UsageError
from jp.provider.base import WireRequest
from jp.provider.registry import ModelId, create_provider
from jp.turn.bound_reasoning import render_bound
from jp.turn.request import digests_of, rendering_version
from jp.turn.sent import SentRequest, sent_requests, thread_of

if TYPE_CHECKING:
    from jp.context.markers import Page
    from jp.provider.base import Provider
    from jp.render.transcript import Extent
    from jp.tool.context_tools import FoundContent


_FORM = "write TURN or TURN.CYCLE, such as --as-sent 3 or --as-sent -1.2"


def print_as_sent(options: GlobalOptions, read: ReadConversation, chosen: str) -> None:
    """Print the body of a request as it was sent; with `--format json` also its address and settings.

    Of a cycle with several attempts, it is the last. Requests contain no credentials.

    Raises:
        UsageError: `chosen` names no request of the conversation.
        JpError: the request cannot be rebuilt.
    """
    sent = _choose(sent_requests(read.entries), chosen)
    provider = _provider_of(read, sent)
    thread = thread_of(sent, read.entries, loader=read.loader, status_formatter=StatusLineFormatter())
    request = render_bound(provider, thread, read.entries[: sent.entries]).wire
    is_verified = _is_verified(provider, request, sent)
    if is_verified is False:
        options.notice(_difference(provider, sent))
    print_result(
        options,
        text=msgspec.json.encode(request.body).decode(),
        value={
            "turn": sent.turn,
            "cycle": sent.cycle,
            "attempt": sent.attempt,
            "model": f"{sent.context.provider}/{sent.context.model}",
            "verified": is_verified,
            "request": {"path": request.path, "headers": dict(request.headers), "body": request.body},
        },
    )


def _choose(sent: Sequence[SentRequest], chosen: str) -> SentRequest:
    turn_text, dot, cycle_text = chosen.partition(".")
    try:
        turn, cycle = int(turn_text), int(cycle_text) if dot else 0
    except ValueError:
        raise UsageError(f"--as-sent cannot be {chosen!r}", hint=_FORM) from None
    if not sent:
        raise UsageError("the log of this conversation does not say what was sent", hint="ask in it or in a fork of it")
    turn = turn if turn >= 0 else max(request.turn for request in sent) + 1 + turn
    of_turn = [request for request in sent if request.turn == turn]
    if not of_turn:
        known = sorted({request.turn for request in sent})
        raise UsageError(f"no request of turn {turn} is known", hint=f"known are those of {_numbers(known)}")
    cycles = sorted({request.cycle for request in of_turn})
    if cycle < 0:
        cycle += cycles[-1] + 1
    attempts = [request for request in of_turn if request.cycle == cycle]
    if not attempts:
        raise UsageError(f"turn {turn} has no cycle {cycle}", hint=f"its cycles are {_numbers(cycles)}")
    return attempts[-1]


def _numbers(numbers: Sequence[int]) -> str:
    if len(numbers) == numbers[-1] - numbers[0] + 1 > 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _provider_of(read: ReadConversation, sent: SentRequest) -> Provider:
    model = ModelId(sent.context.provider, sent.context.model)
    root = read.workspace.root
    try:
        return create_provider(
            read.resolved.config, model, environ=os.environ, root=root or read.workspace.user_data, needs_key=False
        )
    except JpError as error:
        error.hint = f"the request went to {str(model)!r}: {error.hint}"
        raise


def _is_verified(provider: Provider, request: WireRequest, sent: SentRequest) -> bool | None:
    """Return whether the log's hashes confirm that this was sent; None if it has none."""
    return None if sent.digests is None else digests_of(request.sections, ()) == sent.digests


def _difference(provider: Provider, sent: SentRequest) -> str:
    version = rendering_version(provider.renderer)
    if version != sent.context.renderer:
        return (
            f"this is not what was sent to the byte: it was rendered by version {sent.context.renderer} "
            f"of the rules for {provider.id!r}, this is version {version}"
        )
    return "this is not what was sent to the byte: the log was changed since, or is not whole"


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
    full: Annotated[
        bool, typer.Option("--full", help="Print attached content, tool output and settings in full.")
    ] = False,
    hide_reasoning: Annotated[bool, typer.Option("--hide-reasoning", help="Omit the model's reasoning.")] = False,
    hide_tools: Annotated[bool, typer.Option("--hide-tools", help="Omit tool calls and their output.")] = False,
    compacted: Annotated[
        bool, typer.Option("--compacted", help="Print what the model sees, under the numbers of the turns.")
    ] = False,
    as_sent: Annotated[
        str | None,
        typer.Option(
            "--as-sent", metavar="TURN[.CYCLE]", help="Print the request of this turn as it was sent to the provider."
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
    from jp.app.conversations import read_conversation
    from jp.cli.output import write_stdout
    from jp.cli.terminal.pager import write_paged

    target, of_target = split_turn(target)
    turn = turn or of_target
    read = read_conversation(options, target, lenient=True)
    if as_sent is not None:
        _refuse_both(compacted=compacted)

        print_as_sent(options, read, as_sent)
        return
    chosen = _chosen(read, turn, last)
    parts = _Parts(full=full, reasoning=not hide_reasoning, tools=not hide_tools, compacted=compacted)
    pieces = _pieces(options, read, chosen, parts)
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


def _chosen(read: ReadConversation, turn: str | None, last: int | None) -> frozenset[int] | None:
    """Return the numbers of the turns to print, None for all."""
    from jp.app.values import parse_turns
    from jp.conversation.turns import turns_of
    from jp.errors import UsageError

    if turn is not None and last is not None:
        raise UsageError("--turn and --last exclude each other", hint="remove one of them")
    turns = turns_of(read.entries)
    if turn is not None:
        found = parse_turns(turn, len(turns), option="--turn")
        return frozenset(range(found.first, found.last + 1))
    return None if last is None else frozenset(found.number for found in turns[-last:])


def recall(
    options: GlobalOptions,
    *,
    handle: Annotated[str, typer.Argument(metavar="HANDLE", help="The handle, or at least its first 8 digits.")],
    target: Annotated[str, typer.Option("-i", "--id", metavar="TARGET", help=TARGET_HELP)] = ".",
    offset: Annotated[
        int | None, typer.Option("--offset", metavar="N", min=0, help="First byte, counted from 0.")
    ] = None,
    lines: Annotated[int | None, typer.Option("--lines", metavar="N", min=1, help="At most N lines of text.")] = None,
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
