"""What the user has accepted of a stranger's files, what is ignored of them, and what cannot be done without."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, cast

from jp.cli.options import GlobalOptions
from jp.cli.output import notice
from jp.cli.places import AnyWorkspace
from jp.config.keys import KeyPath
from jp.config.layers import Ignored, Layer, Resolved
from jp.config.model import JsonObject, resolve_alias
from jp.config.trust import UntrustedError, listed, mark_of_attachment, mark_of_change, overlap

if TYPE_CHECKING:
    from jp.workspace.listing import ConversationInfo
    from jp.workspace.trust import TrustStore

_ACCOUNT = ("providers", "llm")
_ATTACHMENTS = ("conversation", "attachments")


def require_trust(resolved: Resolved, info: ConversationInfo | None = None, *, model: str | None = None) -> None:
    """Refuse to go on where that needs what nobody has accepted.

    Args:
        resolved: the configuration; what is ignored in it and not needed stays ignored.
        info: the conversation that it is for.
        model: what is about to be asked, as `provider/name` or an alias; its account may only be an untrusted file's.

    Raises:
        UntrustedError: something is needed; it says which values these are.
    """
    provider = "" if model is None else _provider(resolved, model)
    needed = [value for value in _ignored(resolved) if value.needed or _is_account(value, provider)]
    if needed:
        raise UntrustedError(needed, command=command_for(needed, info))


def require_none_ignored(resolved: Resolved, info: ConversationInfo) -> None:
    """Refuse to make a conversation the user's own of which something is ignored.

    Raises:
        UntrustedError: something is.
    """
    if resolved.ignored:
        raise UntrustedError(resolved.ignored, command=command_for(resolved.ignored, info))


def require_tool(resolved: Resolved, name: str, info: ConversationInfo | None = None) -> None:
    """Refuse to go on where `name` is a tool that only untrusted files define.

    Raises:
        UntrustedError: it is.
    """
    path = ("conversation", "tools", name)
    needed = [value for value in resolved.ignored if value.path[: len(path)] == path]
    if needed and name not in resolved.config.conversation.tools:
        raise UntrustedError(needed, command=command_for(needed, info))


def tell_ignored(options: GlobalOptions, resolved: Resolved, info: ConversationInfo | None = None) -> None:
    """Name what is ignored, in one notice."""
    if ignored := _ignored(resolved):
        notice(options, f"ignored until trusted: {listed(ignored)}; `{command_for(ignored, info)}` accepts it")


def untrusted_attachments(resolved: Resolved) -> tuple[Ignored, ...]:
    """The attachments that nobody has accepted: none is ignored, but nothing is read that they name."""
    return tuple(value for value in resolved.ignored if value.path == _ATTACHMENTS)


def _ignored(resolved: Resolved) -> list[Ignored]:
    return [value for value in resolved.ignored if value.path != _ATTACHMENTS]


def as_value(value: Ignored) -> dict[str, object]:
    """What is ignored, as JSON has it."""
    return {"key": value.key, "value": value.value, "origin": value.origin}


def command_for(values: Sequence[Ignored], info: ConversationInfo | None) -> str:
    """The command that accepts these values."""
    is_conversations = info is not None and any(value.conversation_marks for value in values)
    return f"jp workspace trust --id {info.id}" if info is not None and is_conversations else "jp workspace trust"


def _provider(resolved: Resolved, model: str) -> str:
    return resolve_alias(model, resolved.config.providers.llm.aliases).partition("/")[0]


def _is_account(value: Ignored, provider: str) -> bool:
    """Whether an ignored value says where the provider's requests go or with which key, and nobody else does."""
    *above, _ = value.path
    return provider != "" and tuple(above) == (*_ACCOUNT, provider) and not value.is_own


def distrusted(resolved: Resolved) -> Callable[[Layer, KeyPath], bool]:
    """Whether what a layer says at a key is ignored."""
    paths = [value.path for value in resolved.ignored]
    outside = {value.value for value in resolved.ignored if value.path == ("extends",)}

    def is_ignored(layer: Layer, path: KeyPath) -> bool:
        if not layer.foreign:
            return False
        return layer.reached in outside or any(overlap(other, path) for other in paths)

    return is_ignored


def accept(
    values: Sequence[Ignored], options: GlobalOptions, workspace: AnyWorkspace, info: ConversationInfo | None = None
) -> None:
    """Remember that the user has accepted `values` of the workspace's files, and of the conversation `info`.

    Raises:
        StorageError: that could not be written.
    """
    marks = {mark for value in values for mark in value.marks}
    if marks:
        trust_store(options, workspace).accept(marks)
    of_conversation = {mark for value in values for mark in value.conversation_marks}
    if info is not None and of_conversation:
        trust_store(options, workspace, info).accept(of_conversation)


def accept_own(
    change: JsonObject,
    options: GlobalOptions,
    workspace: AnyWorkspace,
    info: ConversationInfo,
    *,
    over: Resolved | None = None,
    attachments: Collection[str] = (),
) -> None:
    """Remember that jp has written `change` for its user into a conversation that lies where others can write.

    `change` is its base configuration, or a delta over what `over` resolves to: attachments that nobody has accepted of
    that are not by being repeated. `attachments` are declarations that were typed and may lie anywhere.

    Raises:
        StorageError: that could not be written.
    """
    marks = {mark_of_attachment(text) for text in attachments}
    repeats = over is not None and _repeats(change, {value.value for value in untrusted_attachments(over)})
    if workspace.root is not None and not info.local and not repeats:
        marks.add(mark_of_change(change))
    if marks:
        trust_store(options, workspace, info).accept(marks)


def _repeats(change: JsonObject, attachments: Collection[str]) -> bool:
    said = change.get("conversation", {}).get("attachments", [])
    texts: Sequence[str] = cast("JsonObject", said)["value"] if isinstance(said, dict) else said
    return not set(attachments).isdisjoint(texts)


def is_accepted_attachment(text: str, accepted: Collection[str]) -> bool:
    """Whether `accepted` has the declaration `text`, so that it may lead out of the workspace."""
    return mark_of_attachment(text) in accepted


def trust_store(options: GlobalOptions, workspace: AnyWorkspace, info: ConversationInfo | None = None) -> TrustStore:
    """What the user has accepted of the workspace, or of one conversation."""
    from jp.workspace.trust import TrustStore

    return TrustStore(
        workspace.root or workspace.user_data,
        user_data=workspace.user_data,
        conversation="" if info is None else info.id.digits,
        persistent=options.persist,
    )
