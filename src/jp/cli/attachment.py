"""`jp attachment`: what a conversation carries along. The declarations are settings of the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar, TypeVarTuple, Unpack

import typer

from jp.app.targets import TARGET_HELP
from jp.cli.options import GlobalOptions, require_persistence
from jp.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from jp.app.attachments import ListedAttachment, SessionAttachments
    from jp.app.conversations import OpenConversation
    from jp.app.query.attachments import AttachmentSchemes
    from jp.conversation.resource import Resource

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

_NOTHING = "nothing is attached"

Target = Annotated[str, typer.Option("-i", "--id", metavar="TARGET", help=TARGET_HELP)]


def add(
    options: GlobalOptions,
    *,
    uris: Annotated[
        list[str],
        typer.Argument(
            help="Files, directories, globs, web addresses, cmd:COMMAND, clipboard:, gh:…, mcp+SERVER+URI, ids of "
            "conversations; !URI excludes",
            metavar="URI",
        ),
    ],
    target: Target = ".",
) -> ExitCode | None:
    """Attach sources to a conversation, to be read by its next query.

    Without an active conversation, the next one that this terminal starts gets them. A missing source may still be
    created before that; a note names it.

    Examples:
        jp attachment add src/main.py 'docs/**/*.md'
        jp attachment add '!*.lock'
        jp attachment add gh:pull/12 'jp-c17800836875?u,a:..'
    """
    from jp.app.attachments import declared_in, expectations, session_attachments
    from jp.app.conversations import open_conversation
    from jp.app.query.attachments import AttachmentSchemes

    require_persistence(options, "jp attachment")
    if (coming := session_attachments(options, target)) is not None:
        return _add_to_next(options, coming, uris)
    with open_conversation(options, target) as held:
        given = AttachmentSchemes(held.workspace, options).typed(uris)
        declared = held.resolved.config.conversation.attachments
        attachments = tuple(dict.fromkeys((*declared, *(declaration.text for declaration in given))))
        _write(options, held, attachments)
    whole = declared_in(held.resolved, options, held.workspace, held.info, texts=attachments)
    schemes = AttachmentSchemes(held.workspace, options, held.info)
    sentences, code = _interruptible(schemes, expectations, given, whole, schemes, held.log.entries)
    for sentence in sentences or ():
        options.notice(sentence)
    _print_declared(options, str(held.info.id), attachments)
    return code


def _add_to_next(options: GlobalOptions, coming: SessionAttachments, uris: Sequence[str]) -> ExitCode | None:
    from jp.app.attachments import declared_in, expectations
    from jp.app.query.attachments import AttachmentSchemes

    schemes = AttachmentSchemes(coming.workspace, options)
    given = schemes.typed(uris)
    texts = tuple(dict.fromkeys((*coming.texts, *(declaration.text for declaration in given))))
    coming.session.declare(texts)
    whole = declared_in(coming.resolved, options, coming.workspace, None, texts=texts)
    schemes.allow(texts)
    sentences, code = _interruptible(schemes, expectations, given, whole, schemes, ())
    for sentence in sentences or ():
        options.notice(sentence)
    options.notice("no conversation is active: the next one that this terminal starts gets this")
    _print_declared(options, None, texts)
    return code


def remove(
    options: GlobalOptions,
    *,
    uris: Annotated[
        list[str], typer.Argument(help="Sources as `jp attachment ls` shows them, or a part of one", metavar="URI")
    ],
    target: Target = ".",
) -> None:
    """Stop attaching sources. Earlier turns keep what was attached.

    Examples:
        jp attachment rm src/main.py
        jp attachment rm main '!*.lock'
    """
    from jp.app.attachments import find_declared, session_attachments
    from jp.app.conversations import open_conversation
    from jp.app.query.attachments import AttachmentSchemes

    require_persistence(options, "jp attachment")
    name = None
    if (coming := session_attachments(options, target)) is not None:
        gone = find_declared(uris, coming.texts, AttachmentSchemes(coming.workspace, options))
        attachments = tuple(text for text in coming.texts if text not in gone)
        coming.session.declare(attachments)
    else:
        with open_conversation(options, target) as held:
            declared = held.resolved.config.conversation.attachments
            gone = find_declared(uris, declared, AttachmentSchemes(held.workspace, options, held.info))
            attachments = tuple(text for text in declared if text not in gone)
            _write(options, held, attachments)
            name = str(held.info.id)
    for text, is_part in gone.items():
        if is_part:
            options.notice(f"no longer attached: {text!r}")
    _print_declared(options, name, attachments)


def ls(
    options: GlobalOptions,
    *,
    check: Annotated[bool, typer.Option("--check", help="Also check remote sources for changes")] = False,
    target: Target = ".",
) -> ExitCode | None:
    """List the attached sources of a conversation, with turn, size and changes.

    Files and conversations are compared with their newest copy; web pages, GitHub and MCP servers only with --check;
    commands never, because they would run. A `pending` source is read at the next turn; an `excluded` one matches an
    exclusion. Without an active conversation, it lists what new conversations start with.

    Examples:
        jp attachment ls
        jp attachment ls --check
        jp attachment ls --id prev --format json
    """
    from functools import partial

    from jp.app.attachments import declared_in, files_of, listed, session_attachments, standings
    from jp.app.conversations import read_conversation
    from jp.app.query.attachments import AttachmentSchemes
    from jp.cli.output import print_result

    read = read_conversation(options, target, optional=True)
    coming = session_attachments(options, target)
    waiting = () if coming is None else coming.texts
    texts = tuple(dict.fromkeys((*read.resolved.config.conversation.attachments, *waiting)))
    declared = declared_in(read.resolved, options, read.workspace, read.info, texts=texts)
    schemes = AttachmentSchemes(read.workspace, options, read.info)
    if coming is not None:
        schemes.allow(waiting)
    schemes.limit(read.resolved.config.attachments)
    schemes.servers.configure(read.resolved.config)
    found, code = _interruptible(schemes, partial(standings, reaches_out=check), declared, schemes, read.entries)
    if found is None:
        return code
    rows = [listed(text, status) for text, status in zip(declared.texts, found, strict=True)]
    paths = files_of(declared.texts, schemes)
    print_result(options, text=_table(rows), value={"attachments": rows}, nothing=_NOTHING, paths=paths)
    return None


def print_content(
    options: GlobalOptions,
    *,
    uris: Annotated[
        list[str] | None, typer.Argument(help="Sources; all attached ones if none is named", metavar="URI")
    ] = None,
    target: Target = ".",
) -> ExitCode | None:
    """Print the present content of sources, as it would be attached.

    Examples:
        jp attachment print
        jp attachment print src/main.py
    """
    from jp.app.attachments import session_attachments
    from jp.app.conversations import read_conversation
    from jp.app.query.attachments import AttachmentSchemes, resolve_now
    from jp.cli.output import print_result

    read = read_conversation(options, target, optional=True)
    schemes = AttachmentSchemes(read.workspace, options, read.info)
    config = read.resolved.config.conversation
    schemes.distrust(read.resolved)
    coming = session_attachments(options, target)
    waiting = () if coming is None else coming.texts
    declared = schemes.typed(uris) if uris else [*schemes.configured(config.attachments), *schemes.typed(waiting)]
    schemes.servers.configure(read.resolved.config)
    resolved, code = _interruptible(schemes, resolve_now, schemes, declared, config.max_attachment_bytes)
    if resolved is None:
        return code
    for sentence in resolved.notices:
        options.notice(sentence)
    text = "\n".join(map(_shown, resolved.resources))
    value = {"resources": [_as_value(item) for item in resolved.resources]}
    print_result(options, text=text, value=value, nothing=_NOTHING)
    return None


def _interruptible(
    schemes: AttachmentSchemes, work: Callable[[Unpack[Arguments]], Awaitable[T]], *arguments: *Arguments
) -> tuple[T | None, ExitCode | None]:
    """Return the result of `work`, or the exit code of its interruption. MCP servers that it needs run until then."""
    import anyio

    from jp.cli.terminal.signals import interruptions

    async def run() -> tuple[T | None, ExitCode | None]:
        result = None
        with interruptions() as interruption:
            async with schemes.servers:
                result = await work(*arguments)
        return result, interruption.exit_code

    return anyio.run(run)


def _write(options: GlobalOptions, held: OpenConversation, attachments: Sequence[str]) -> None:
    """Have the conversation declare `attachments`, and nothing else."""
    from jp.app.settings import accept_own
    from jp.config.sources import delta, flag_layer
    from jp.conversation.entries import ConfigDelta

    before = held.resolved.config.conversation.attachments
    whole = {"conversation": {"attachments": {"value": list(attachments), "strategy": "replace"}}}
    after = held.with_layers([flag_layer("jp attachment", whole)])
    if difference := delta(held.resolved, after):
        added = [text for text in attachments if text not in before]
        accept_own(difference, options, held.workspace, held.info, over=held.resolved, attachments=added)
        held.log.append(ConfigDelta(delta=difference))


def _print_declared(options: GlobalOptions, name: str | None, attachments: Sequence[str]) -> None:
    from jp.cli.output import print_result

    value = {"id": name, "attachments": list(attachments)}
    print_result(options, text="\n".join(attachments), value=value, nothing=_NOTHING)


def _shown(resource: Resource) -> str:
    from jp.conversation.resource import TextContent, content_of, size_in_bytes
    from jp.render.sanitize import one_line

    kind = resource.mime_type or "unknown type"
    size = f"{size_in_bytes(resource):,} bytes"
    head = f"── {one_line(resource.name or resource.uri)} ({size}, {kind})"
    match content_of(resource):
        case TextContent(text=text):
            return f"{head}\n{text}"
        case _:
            return f"{head}\n[binary: {kind}, {size}]"


def _as_value(resource: Resource) -> object:
    import msgspec

    return msgspec.to_builtins(resource)


def _table(rows: Sequence[ListedAttachment]) -> str:
    """Return a line for each declaration: its state, what the conversation has of it, and the declaration."""
    from typing import get_args

    from jp.attachment.comparison import State
    from jp.cli.terminal.wording import worded
    from jp.render.sanitize import one_line
    from jp.render.tables import cell_width, pad

    longest = max(map(len, get_args(State)))
    facts = [_facts(row) for row in rows]
    widest = max(map(cell_width, facts), default=0)
    lines: list[str] = []
    for row, said in zip(rows, facts, strict=True):
        cells = [pad(row.state, longest), *([pad(said, widest)] if widest else []), one_line(row.uri)]
        detail = f"  ({one_line(worded(row.detail))})" if row.detail else ""
        lines.append("  ".join(cells) + detail)
    return "\n".join(lines)


def _facts(row: ListedAttachment) -> str:
    from jp.render.tables import count_text, size_text

    if not row.files:
        return ""
    parts = (("changed", row.changed), ("added", row.added), ("removed", row.removed))
    is_plain = row.files == len(row.changed) == 1
    counts = [] if is_plain else [f"{len(uris):,} {word}" for word, uris in parts if uris]
    return ", ".join([
        f"turn {row.turn}",
        *([count_text(row.files, "resource")] if row.files > 1 else []),
        size_text(row.bytes),
        count_text(row.tokens, "token"),
        *counts,
        *([] if row.checked else ["not checked"]),
    ])
