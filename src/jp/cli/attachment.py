"""`jp attachment`: what a conversation carries along. The declarations are settings of the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.cli.targets import TARGET_HELP
from jp.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jp.attachment.base import Declaration
    from jp.conversation.resource import Resource

Target = Annotated[str, typer.Option("-i", "--id", metavar="TARGET", help=TARGET_HELP)]


def add(
    options: GlobalOptions,
    *,
    uris: Annotated[
        list[str],
        typer.Argument(help="Files, directories, globs, addresses, cmd:…, or !URI to exclude.", metavar="URI"),
    ],
    target: Target = ".",
) -> None:
    """Attach sources to a conversation. They are read when the next query of it is asked.

    Examples:
        jp attachment add src/main.py 'docs/**/*.md'
        jp attachment add '!*.lock'
        jp attachment add https://example.com/changelog 'cmd:git log --oneline -20'
        jp attachment add gh:pull/12 'jp-c17800836875?u,a:..'
    """

    def added(declared: tuple[str, ...], given: Sequence[Declaration]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*declared, *(declaration.text for declaration in given))))

    _change(options, uris, target, added)


def remove(
    options: GlobalOptions,
    *,
    uris: Annotated[list[str], typer.Argument(help="Sources as `jp attachment ls` shows them.", metavar="URI")],
    target: Target = ".",
) -> None:
    """Stop attaching sources. What was attached to earlier turns stays there.

    Examples:
        jp attachment rm src/main.py
    """
    from jp.attachment.web_address import without_credentials
    from jp.errors import UsageError

    def without(declared: tuple[str, ...], given: Sequence[Declaration]) -> tuple[str, ...]:
        for declaration in given:
            if declaration.text not in declared:
                written = without_credentials(declaration.written)
                raise UsageError(f"{written!r} is not attached", hint="list them with `jp attachment ls`")
        gone = {declaration.text for declaration in given}
        return tuple(text for text in declared if text not in gone)

    _change(options, uris, target, without)


def ls(options: GlobalOptions, *, target: Target = ".") -> None:
    """List what a conversation attaches, and which of it was sent already.

    Where no conversation is active, what new conversations start with.

    Examples:
        jp attachment ls
    """
    from jp.attachment.resolution import delivered_in
    from jp.cli.held import read_conversation
    from jp.cli.output import print_result

    read = read_conversation(options, target, optional=True)
    delivered = delivered_in(read.entries)
    declared = read.resolved.config.conversation.attachments
    lines = [f"{_state(text, delivered):<8}  {text}" for text in declared]
    value = [{"uri": text, "state": _state(text, delivered)} for text in declared]
    print_result(options, text="\n".join(lines) or "nothing is attached", value={"attachments": value})


def print_content(
    options: GlobalOptions,
    *,
    uris: Annotated[
        list[str] | None, typer.Argument(help="Sources; all attached ones if none is named.", metavar="URI")
    ] = None,
    target: Target = ".",
) -> ExitCode | None:
    """Print what sources hold now, as it would be attached.

    Examples:
        jp attachment print
        jp attachment print src/main.py
    """
    import anyio

    from jp.cli.held import read_conversation
    from jp.cli.output import notice, print_result
    from jp.cli.query.attachments import Schemes, resolve_now
    from jp.cli.trust import require_trust

    read = read_conversation(options, target, optional=True)
    schemes = Schemes(read.workspace, options, read.info)
    config = read.resolved.config.conversation
    if not uris:
        require_trust(read.resolved.layers, options, read.workspace, read.info)
    declared = schemes.typed(uris) if uris else schemes.configured(config.attachments)
    resolved = anyio.run(resolve_now, schemes, declared, config.max_attachment_bytes)
    for sentence in resolved.notices:
        notice(options, sentence)
    texts = [_shown(resource) for resource in resolved.resources]
    print_result(options, text="\n".join(texts), value={"resources": [_as_value(item) for item in resolved.resources]})
    return None


def _change(
    options: GlobalOptions,
    uris: Sequence[str],
    target: str,
    change: Callable[[tuple[str, ...], Sequence[Declaration]], tuple[str, ...]],
) -> None:
    from jp.cli.held import hold_conversation
    from jp.cli.output import print_result
    from jp.cli.query.attachments import Schemes
    from jp.cli.trust import accept_own
    from jp.config.sources import flag_layer
    from jp.config.stored import delta
    from jp.conversation.entries import ConfigDelta

    require_persistence(options, "jp attachment")
    with hold_conversation(options, target) as held:
        given = Schemes(held.workspace, options).typed(uris)
        before = held.resolved.config.conversation.attachments
        attachments = change(before, given)
        whole = {"conversation": {"attachments": {"value": list(attachments), "strategy": "replace"}}}
        after = held.with_layers([flag_layer("jp attachment", whole)])
        if difference := delta(held.resolved, after):
            added = [text for text in attachments if text not in before]
            layers = held.resolved.layers
            accept_own(difference, options, held.workspace, held.info, over=layers, attachments=added)
            held.log.append(ConfigDelta(delta=difference))
    text = "\n".join(attachments) or "nothing is attached"
    print_result(options, text=text, value={"id": held.info.id, "attachments": list(attachments)})


def _state(text: str, delivered: frozenset[str]) -> str:
    if text.startswith("!"):
        return "excluded"
    return "sent" if text in delivered else "pending"


def _shown(resource: Resource) -> str:
    from jp.conversation.resource import TextContent, content_of, size_in_bytes

    kind = resource.mime_type or "unknown type"
    head = f"── {resource.name or resource.uri} ({size_in_bytes(resource):,} bytes, {kind})"
    match content_of(resource):
        case TextContent(text=text):
            return f"{head}\n{text}"
        case _:
            return f"{head}\n[binary]"


def _as_value(resource: Resource) -> object:
    import msgspec

    return msgspec.to_builtins(resource)
