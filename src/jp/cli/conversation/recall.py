"""`jp conversation recall`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions
from jp.cli.targets import TARGET_HELP

if TYPE_CHECKING:
    from jp.context.pages import Page
    from jp.errors import UsageError
    from jp.tool.recall import FoundContent


def recall(
    options: GlobalOptions,
    *,
    handle: Annotated[
        str, typer.Argument(metavar="HANDLE", help="The handle, or at least 8 digits with which only one begins.")
    ],
    target: Annotated[str, typer.Option("-i", "--id", metavar="TARGET", help=TARGET_HELP)] = ".",
    offset: Annotated[
        int | None, typer.Option("--offset", metavar="N", min=0, help="Begin at this byte; they count from 0.")
    ] = None,
    lines: Annotated[int | None, typer.Option("--lines", metavar="N", min=1, help="At most N lines of text.")] = None,
) -> None:
    """Print what was left out of what the model is shown, by the handle that stands in its place.

    It comes as it is stored, from the log of this conversation only: a block that a tool returned, an attached
    snapshot, a string in the arguments of a call. Text comes in pages of at most 16 KiB, which end with a line, and
    the offset of the next page is said on stderr. Pictures and other binary content go whole to a pipe or a file, and
    not to a terminal. With --format json all content comes in pages, binary content as base64, and `next_offset` is
    null on the last one.

    Examples:
        jp conversation recall 0123abcd
        jp conversation recall 0123abcd --offset 16384 --lines 100
        jp conversation recall 0123abcd --id last > picture.png
    """
    import os

    from jp.cli.output import notice, print_result
    from jp.cli.places import open_session, open_workspace
    from jp.cli.recalled import recalled
    from jp.cli.streams import write_stdout_bytes
    from jp.cli.targets import choose

    workspace = open_workspace(options)
    info = choose(target, workspace, open_session(workspace))
    stream = workspace.read(info)
    for sentence in stream.notices:
        notice(options, sentence)
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
        notice(options, f"{shown}; go on with `jp conversation recall {found.handle}{more}`")


def _page(found: FoundContent, offset: int, lines: int | None, *, whole: bool) -> Page:
    """The page from `offset` on; `whole`: all that there is from there on."""
    from jp.context.pages import page_of_bytes, page_of_text
    from jp.errors import UsageError

    size = len(found.data)
    if offset and offset >= size:
        raise UsageError(f"--offset cannot be {offset}: the content has {size:,} bytes", hint="they count from 0")
    if found.is_text:
        return page_of_text(found.data, offset, lines=lines)
    if lines is not None:
        raise UsageError(f"{found.kind} has no lines", hint="leave out --lines")
    return page_of_bytes(found.data, offset, most=size) if whole else page_of_bytes(found.data, offset)


def _facts(found: FoundContent, page: Page) -> dict[str, object]:
    """A page as data."""
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
    """What is said of content that is nothing for a terminal."""
    from jp.errors import UsageError

    return UsageError(
        f"{found.kind} of {len(found.data):,} bytes is nothing for a terminal",
        hint=f"write it to a file: `jp conversation recall {found.handle} > FILE`",
    )
