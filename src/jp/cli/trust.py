"""What a stranger's files declare holds only where the user has seen it (design: safety)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from jp.cli.options import GlobalOptions
from jp.cli.places import AnyWorkspace
from jp.config.keys import KeyPath, parse_key
from jp.config.layers import Layer
from jp.config.model import JsonObject
from jp.config.stored import conversation_layers
from jp.config.trust import Sensitive, UntrustedError, trust_hash, untrusted, values_needing_trust

if TYPE_CHECKING:
    from jp.workspace.listing import ConversationInfo
    from jp.workspace.trust import TrustStore


def require_trust(
    layers: Sequence[Layer], options: GlobalOptions, workspace: AnyWorkspace, info: ConversationInfo | None = None
) -> None:
    """Refuse to go on where the workspace's files, or the conversation `info`, declare what the user has not seen.

    Raises:
        UntrustedError: they do; it says which values these are.
    """
    missing = unaccepted(sensitive_values(layers, workspace), options, workspace, info)
    if not missing:
        return
    outside = sensitive_values([layer for layer in layers if layer.origin.kind != "conversation"], workspace)
    is_conversations = info is not None and any(value not in outside for value in missing)
    raise UntrustedError(missing, command=f"jp workspace trust --id {info.id}" if info and is_conversations else "")


def sensitive_values(layers: Sequence[Layer], workspace: AnyWorkspace) -> tuple[Sensitive, ...]:
    """What needs trust in `layers`; outside a workspace only what an imported conversation declares."""
    return values_needing_trust(layers, str(workspace.root or workspace.user_data))


def unaccepted(
    values: Sequence[Sensitive], options: GlobalOptions, workspace: AnyWorkspace, info: ConversationInfo | None = None
) -> tuple[Sensitive, ...]:
    """Those of `values` that were accepted neither for the workspace nor for the conversation."""
    if not values:
        return ()
    accepted = trust_store(options, workspace).accepted()
    if info is not None:
        accepted |= trust_store(options, workspace, info).accepted()
    return untrusted(values, accepted)


def distrusted(
    layers: Sequence[Layer], options: GlobalOptions, workspace: AnyWorkspace, info: ConversationInfo | None = None
) -> Callable[[Layer, KeyPath], bool]:
    """Whether what a layer says at a key waits for the user's trust."""
    import os

    missing = {
        trust_hash((value,)) for value in unaccepted(sensitive_values(layers, workspace), options, workspace, info)
    }
    waiting = [
        (layer.origin, value.key, value.value)
        for layer in layers
        for value in sensitive_values([layer], workspace)
        if trust_hash((value,)) in missing
    ]
    outside = {value for _, key, value in waiting if key == "extends"}

    def waits(layer: Layer, path: KeyPath) -> bool:
        if layer.foreign and os.path.realpath(layer.origin.where) in outside:
            return True
        return any(origin == layer.origin and _overlap(parse_key(key), path) for origin, key, _ in waiting)

    return waits


def _overlap(one: KeyPath, other: KeyPath) -> bool:
    return one[: len(other)] == other[: len(one)]


def accept(
    values: Sequence[Sensitive], options: GlobalOptions, workspace: AnyWorkspace, info: ConversationInfo | None = None
) -> None:
    """Remember that the user has accepted `values` for the workspace, or for one conversation.

    Raises:
        StorageError: that could not be written.
    """
    if values:
        trust_store(options, workspace, info).accept({trust_hash((value,)) for value in values})


def accept_own(
    change: JsonObject,
    options: GlobalOptions,
    workspace: AnyWorkspace,
    info: ConversationInfo,
    *,
    over: Sequence[Layer] = (),
    attachments: Collection[str] = (),
) -> None:
    """Accept for a conversation what its user lets it keep, or it would ask for trust in the user's own words.

    `change` is its base configuration, or a delta over the layers `over`: what was not accepted of these is not by
    being repeated in it. `attachments` are declarations that were typed and may lie anywhere.

    Raises:
        StorageError: that could not be written.
    """
    layers = conversation_layers({}, [("", change)], foreign=True).layers
    strange = {
        trust_hash((value,)) for value in unaccepted(sensitive_values(over, workspace), options, workspace, info)
    }
    kept = [value for value in sensitive_values(layers, workspace) if trust_hash((value,)) not in strange]
    accept([*kept, *map(_attachment, attachments)], options, workspace, info)


def is_accepted_attachment(text: str, accepted: Collection[str]) -> bool:
    """Whether `accepted` has the declaration `text`, so that it may lead out of the workspace."""
    return trust_hash((_attachment(text),)) in accepted


def trust_store(options: GlobalOptions, workspace: AnyWorkspace, info: ConversationInfo | None = None) -> TrustStore:
    """What the user has accepted of the workspace, or of one conversation."""
    from jp.workspace.trust import TrustStore

    return TrustStore(
        workspace.root or workspace.user_data,
        user_data=workspace.user_data,
        conversation="" if info is None else info.id.digits,
        persistent=options.persist,
    )


def _attachment(text: str) -> Sensitive:
    return Sensitive(key="conversation.attachments", value=text, origin="")
